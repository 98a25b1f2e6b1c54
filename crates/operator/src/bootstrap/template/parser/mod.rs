//! Words to nodes.
//!
//! All that can be known before rendering is refused here, also in branches
//! that are never taken: unknown functions, undeclared variables, unbalanced
//! blocks, nesting too deep to be walked safely.

mod block;
mod operand;
mod pipeline;
mod scope;
mod stream;

use std::collections::hash_map::Entry;

use self::{scope::Scope, stream::Stream};
use super::{
    error::{NAME, ParseError},
    lexer::Lexer,
    node::{Definition, Definitions, List, Node},
    text::Text,
    token::{Kind, Token},
};

/// Blocks and parentheses around one another, and templates being called.
pub(super) const MAX_DEPTH: usize = 64;

type Result<T> = std::result::Result<T, ParseError>;

/// Reads every body of a source. The main one goes by [`NAME`].
pub(super) fn parse(source: &[u8]) -> Result<Definitions> {
    let mut parser = Parser {
        lexer: Lexer::new(source),
        definitions: Definitions::new(),
        body: Body::default(),
        depth: 0,
    };
    parser.main()?;
    Ok(parser.definitions)
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    definitions: Definitions,
    body: Body<'s>,
    depth: usize,
}

/// What belongs to the body being read: a template sees no variable and no
/// loop of the one around it.
#[derive(Default)]
struct Body<'s> {
    stream: Stream<'s>,
    scope: Scope,
    loops: usize,
    /// Line of the action being read; 0 outside of one.
    action_line: usize,
}

/// An element of a list, or the word that ends it.
enum Item {
    Node(Node),
    Else,
    End,
}

/// What ended a list.
#[derive(PartialEq)]
enum Ending {
    Else,
    End,
}

impl<'s> Parser<'s> {
    fn main(&mut self) -> Result<()> {
        let mut body = List::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_word().kind == Kind::Define {
                    self.inner_body(Self::definition)?;
                    continue;
                }
                self.body.stream.put_back_two(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => body.push(node),
                Item::Else => return Err(self.error("unexpected {{else}}")),
                Item::End => return Err(self.error("unexpected {{end}}")),
            }
        }
        self.define(NAME.into(), body)
    }

    /// Runs a step on a body of its own.
    fn inner_body<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::take(&mut self.body);
        let result = step(self);
        self.body = outer;
        result
    }

    /// `{{define "name"}} … {{end}}`, from behind the keyword.
    fn definition(&mut self) -> Result<()> {
        let word = self.next_word();
        let name = self.template_name(word, "define clause")?;
        self.expect(Kind::RightDelim, "define clause")?;
        let (body, ending) = self.list()?;
        if ending != Ending::End {
            return Err(self.error("unexpected {{else}} in define clause"));
        }
        self.define(name, body)
    }

    fn define(&mut self, name: Vec<u8>, body: List) -> Result<()> {
        let blank = body.iter().all(is_blank);
        match self.definitions.entry(name) {
            Entry::Vacant(free) => {
                free.insert(Definition { body, blank });
            }
            Entry::Occupied(mut taken) if taken.get().blank => {
                taken.insert(Definition { body, blank });
            }
            Entry::Occupied(_) if blank => {}
            Entry::Occupied(taken) => {
                let name = String::from_utf8_lossy(taken.key()).into_owned();
                return Err(self.error(format!("template {name:?} is defined twice")));
            }
        }
        Ok(())
    }

    /// Up to the word that ends it; that one is consumed.
    fn list(&mut self) -> Result<(List, Ending)> {
        let mut list = List::new();
        while self.peek_word().kind != Kind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => list.push(node),
                Item::Else => return Ok((list, Ending::Else)),
                Item::End => return Ok((list, Ending::End)),
            }
        }
        Err(self.error("unexpected end of the template; an {{end}} is missing"))
    }

    fn text_or_action(&mut self) -> Result<Item> {
        let token = self.next_word();
        match token.kind {
            Kind::Text => {
                let bytes = Text::from(token.bytes.to_vec());
                Ok(Item::Node(Node::Text { position: token.position, bytes }))
            }
            Kind::LeftDelim => {
                self.body.action_line = token.line;
                let item = self.action();
                self.body.action_line = 0;
                item
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn peek(&mut self) -> Token<'s> {
        self.body.stream.peek(&mut self.lexer)
    }

    fn next(&mut self) -> Token<'s> {
        self.body.stream.next(&mut self.lexer)
    }

    /// The next token that is not space.
    fn next_word(&mut self) -> Token<'s> {
        self.body.stream.next_word(&mut self.lexer)
    }

    fn peek_word(&mut self) -> Token<'s> {
        let token = self.next_word();
        self.body.stream.put_back();
        token
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'s>> {
        let token = self.next_word();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    fn unexpected(&self, token: &Token<'_>, context: &str) -> ParseError {
        let what = token.describe();
        let Kind::Error(_) = token.kind else {
            return self.error(format!("unexpected {what} in {context}"));
        };
        let started = self.body.action_line;
        if started != 0 && started != token.line {
            return self.error(format!("{what} (the action starts in line {started})"));
        }
        self.error(what)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.body.stream.line(), message: message.into() }
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(
                self.error(format!("blocks and parentheses are nested deeper than {MAX_DEPTH}"))
            );
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }
}

fn is_blank(node: &Node) -> bool {
    match node {
        Node::Text { bytes, .. } => {
            std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(char::is_whitespace))
        }
        _ => false,
    }
}
