//! `$x := command | command`.

use super::{
    super::{
        node::{Command, Name, Pipeline},
        token::{Kind, Token},
    },
    Parser, Result,
};

impl<'s> Parser<'s> {
    /// Up to the word that ends it; that one is consumed.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipeline> {
        let position = self.peek_word().position;
        let (variables, assigns) = self.declarations(context)?;
        let mut commands: Vec<Command> = Vec::new();
        loop {
            let token = self.next_word();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.body.stream.put_back();
                    commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
        if commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        if commands.iter().skip(1).any(|command| !command.word.term.is_executable()) {
            return Err(self.error("a pipe must lead into a function"));
        }
        Ok(Pipeline { position, variables, assigns, commands })
    }

    /// The variables in front of `:=` or `=`. Without one of these the words
    /// are put back: a variable may also be an argument.
    fn declarations(&mut self, context: &str) -> Result<(Vec<Name>, bool)> {
        let mut variables = Vec::new();
        loop {
            let variable = self.peek_word();
            if variable.kind != Kind::Variable {
                return Ok((variables, false));
            }
            self.next();
            let adjacent = self.peek();
            let next = self.peek_word();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next_word();
                    self.declare(&mut variables, variable);
                    return Ok((variables, next.kind == Kind::Assign));
                }
                Kind::Char if next.bytes == b"," => {
                    self.next_word();
                    self.declare(&mut variables, variable);
                    if context != "range" || variables.len() >= 2 {
                        return Err(self.error(format!("too many declarations in {context}")));
                    }
                    if !matches!(
                        self.peek_word().kind,
                        Kind::Variable | Kind::RightDelim | Kind::RightParen
                    ) {
                        return Err(self.error("range can only declare variables"));
                    }
                }
                _ => {
                    if adjacent.kind == Kind::Space {
                        self.body.stream.put_back_three(variable, adjacent);
                    } else {
                        self.body.stream.put_back_two(variable);
                    }
                    return Ok((variables, false));
                }
            }
        }
    }

    fn declare(&mut self, variables: &mut Vec<Name>, token: Token<'s>) {
        let name: Name = String::from_utf8_lossy(token.bytes).into();
        variables.push(Name::clone(&name));
        self.body.scope.declare(name);
    }

    /// Operands up to a pipe, which is consumed, or to the end, which is not.
    fn command(&mut self) -> Result<Command> {
        let mut operands = Vec::new();
        loop {
            self.peek_word();
            operands.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.body.stream.put_back();
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(self.unexpected(&token, "operand")),
            }
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            Some(word) => Ok(Command { word, arguments: operands.collect() }),
            None => Err(self.error("empty command")),
        }
    }
}
