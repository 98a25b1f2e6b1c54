//! One word of a command, with the fields taken of it.

use super::{
    super::{
        function::Function,
        literal::{self, Number},
        node::{Name, Operand, Term},
        text::Text,
        token::Kind,
    },
    Parser, Result,
};

impl Parser<'_> {
    /// `None` if the next word is not an operand; it is left where it is.
    pub(super) fn operand(&mut self) -> Result<Option<Operand>> {
        let Some(operand) = self.term()? else { return Ok(None) };
        if self.peek().kind != Kind::Field {
            return Ok(Some(operand));
        }
        // Errors are reported at the first field of the chain.
        let position = self.peek().position;
        let mut fields: Vec<Name> = Vec::new();
        while self.peek().kind == Kind::Field {
            let field = self.next();
            fields.push(field_name(field.bytes));
        }
        let term = match operand.term {
            Term::Field(mut path) => {
                path.append(&mut fields);
                Term::Field(path)
            }
            Term::Variable(name, _) => Term::Variable(name, fields),
            Term::Function(_) | Term::Pipeline(_) | Term::Chain(..) => {
                Term::Chain(Box::new(operand), fields)
            }
            Term::Dot | Term::Nil | Term::Bool(_) | Term::Number(_) | Term::String(_) => {
                return Err(self.error("a literal has no fields; a space may be missing"));
            }
        };
        Ok(Some(Operand { position, term }))
    }

    fn term(&mut self) -> Result<Option<Operand>> {
        let token = self.next_word();
        let term = match token.kind {
            Kind::Identifier => {
                let name = String::from_utf8_lossy(token.bytes);
                Term::Function(Function::named(&name).ok_or_else(|| {
                    self.error(format!("no function {name:?}; there are {}", Function::names()))
                })?)
            }
            Kind::Dot => Term::Dot,
            Kind::Nil => Term::Nil,
            Kind::Bool => Term::Bool(token.bytes == b"true"),
            Kind::Variable => {
                let name = String::from_utf8_lossy(token.bytes);
                if !self.body.scope.knows(&name) {
                    return Err(self
                        .error(format!("undefined variable {name}; declare it with {name} := …")));
                }
                Term::Variable(name.into(), Vec::new())
            }
            Kind::Field => Term::Field(vec![field_name(token.bytes)]),
            Kind::CharConstant => match literal::character(token.bytes) {
                Some(value) => Term::Number(Number::Int(value)),
                None => return Err(self.error("bad character constant")),
            },
            Kind::Number => match literal::number(token.bytes) {
                Some(number) => Term::Number(number),
                None => return Err(self.error("bad number")),
            },
            Kind::String | Kind::RawString => match literal::string(token.bytes) {
                Some(bytes) => Term::String(Text::from(bytes)),
                None => return Err(self.error("bad string; look at its backslashes")),
            },
            Kind::LeftParen => {
                self.enter()?;
                let pipeline = self.pipeline("parentheses", Kind::RightParen)?;
                self.leave();
                let position = pipeline.position;
                let term = Term::Pipeline(Box::new(pipeline));
                return Ok(Some(Operand { position, term }));
            }
            _ => {
                self.body.stream.put_back();
                return Ok(None);
            }
        };
        Ok(Some(Operand { position: token.position, term }))
    }
}

fn field_name(bytes: &[u8]) -> Name {
    String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into()
}
