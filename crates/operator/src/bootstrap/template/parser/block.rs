//! Actions, and the blocks that some of them open.

use super::{
    super::{
        literal,
        node::{Branch, Choice, Node, Range},
        token::{Kind, Token},
    },
    Ending, Item, Parser, Result,
};

/// The keywords that open a block of their own.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    If,
    With,
    Range,
}

impl Block {
    fn name(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }

    /// The keyword that may follow an `else` of this block.
    fn chains(self) -> Option<Kind> {
        match self {
            Self::If => Some(Kind::If),
            Self::With => Some(Kind::With),
            Self::Range => None,
        }
    }
}

impl<'s> Parser<'s> {
    /// From behind the opening braces.
    pub(super) fn action(&mut self) -> Result<Item> {
        let token = self.next_word();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.jump("{{break}}", Node::Break)?,
            Kind::Continue => self.jump("{{continue}}", Node::Continue)?,
            Kind::Else => {
                // `else if` and `else with` are taken apart by the block.
                if !matches!(self.peek_word().kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Item::Else);
            }
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::End);
            }
            Kind::If => self.control(Block::If)?,
            Kind::With => self.control(Block::With)?,
            Kind::Range => self.control(Block::Range)?,
            Kind::Template => self.template()?,
            _ => {
                self.body.stream.put_back();
                let position = self.peek().position;
                let pipeline = self.pipeline("command", Kind::RightDelim)?;
                Node::Action { position, pipeline }
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, name: &str, node: Node) -> Result<Node> {
        let token = self.next_word();
        if token.kind != Kind::RightDelim {
            return Err(self.unexpected(&token, name));
        }
        if self.body.loops == 0 {
            return Err(self.error(format!("{name} outside of {{{{range}}}}")));
        }
        Ok(node)
    }

    fn control(&mut self, block: Block) -> Result<Node> {
        let mark = self.body.scope.mark();
        self.enter()?;
        let mut branches = Vec::new();
        let otherwise = loop {
            let pipeline = self.pipeline(block.name(), Kind::RightDelim)?;
            self.body.loops += usize::from(block == Block::Range);
            let (body, ending) = self.list()?;
            self.body.loops -= usize::from(block == Block::Range);
            branches.push(Branch { pipeline, body });
            if ending == Ending::End {
                break None;
            }
            if block.chains() == Some(self.peek().kind) {
                self.next();
                continue;
            }
            let (body, ending) = self.list()?;
            if ending != Ending::End {
                return Err(self.error("expected {{end}}; found {{else}}"));
            }
            break Some(body);
        };
        self.leave();
        self.body.scope.forget_since(mark);
        Ok(match block {
            Block::If => Node::If(Choice { branches, otherwise }),
            Block::With => Node::With(Choice { branches, otherwise }),
            Block::Range => match branches.pop() {
                Some(Branch { pipeline, body }) => {
                    Node::Range(Box::new(Range { pipeline, body, otherwise }))
                }
                None => return Err(self.error("range without a pipeline")),
            },
        })
    }

    /// `{{template "name" pipeline}}`; the pipeline may be missing.
    fn template(&mut self) -> Result<Node> {
        let word = self.next_word();
        let name = self.template_name(word, "template clause")?;
        let argument = if self.next_word().kind == Kind::RightDelim {
            None
        } else {
            self.body.stream.put_back();
            Some(self.pipeline("template clause", Kind::RightDelim)?)
        };
        Ok(Node::Template { position: word.position, name, argument })
    }

    /// `{{block "name" pipeline}} … {{end}}`: a definition and its use.
    fn block(&mut self) -> Result<Node> {
        let word = self.next_word();
        let name = self.template_name(word, "block clause")?;
        let argument = self.pipeline("block clause", Kind::RightDelim)?;
        self.enter()?;
        let ending = self.inner_body(|parser| {
            let (body, ending) = parser.list()?;
            if ending == Ending::End {
                parser.define(name.clone(), body)?;
            }
            Ok(ending)
        })?;
        if ending != Ending::End {
            return Err(self.error("unexpected {{else}} in block clause"));
        }
        self.leave();
        Ok(Node::Template { position: word.position, name, argument: Some(argument) })
    }

    pub(super) fn template_name(&self, token: Token<'s>, context: &str) -> Result<Vec<u8>> {
        match token.kind {
            Kind::String | Kind::RawString => {
                literal::string(token.bytes).ok_or_else(|| self.error("bad string"))
            }
            _ => Err(self.unexpected(&token, context)),
        }
    }
}
