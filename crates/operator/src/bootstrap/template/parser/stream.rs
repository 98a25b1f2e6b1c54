//! Tokens with up to three put back.

use super::super::{
    lexer::Lexer,
    token::{Kind, Token},
};

/// The tokens of one body. Errors name the line of the token that was read
/// last, so that one is kept at index 0.
pub(super) struct Stream<'s> {
    tokens: [Token<'s>; 3],
    pending: usize,
}

impl Default for Stream<'_> {
    fn default() -> Self {
        let none = Token { kind: Kind::Eof, position: 0, line: 1, bytes: &[] };
        Self { tokens: [none; 3], pending: 0 }
    }
}

impl<'s> Stream<'s> {
    pub(super) fn next(&mut self, lexer: &mut Lexer<'s>) -> Token<'s> {
        if self.pending > 0 {
            self.pending -= 1;
        } else {
            self.tokens[0] = lexer.next();
        }
        self.tokens[self.pending]
    }

    pub(super) fn next_word(&mut self, lexer: &mut Lexer<'s>) -> Token<'s> {
        loop {
            let token = self.next(lexer);
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    pub(super) fn peek(&mut self, lexer: &mut Lexer<'s>) -> Token<'s> {
        let token = self.next(lexer);
        self.put_back();
        token
    }

    /// Puts the last token back.
    pub(super) fn put_back(&mut self) {
        self.pending = (self.pending + 1).min(self.tokens.len());
    }

    /// Puts the last token back and `before` in front of it.
    pub(super) fn put_back_two(&mut self, before: Token<'s>) {
        self.tokens[1] = before;
        self.pending = 2;
    }

    /// Puts the last token back, and `first` and `second` in front of it.
    pub(super) fn put_back_three(&mut self, first: Token<'s>, second: Token<'s>) {
        self.tokens[1] = second;
        self.tokens[2] = first;
        self.pending = 3;
    }

    pub(super) fn line(&self) -> usize {
        self.tokens[0].line
    }
}
