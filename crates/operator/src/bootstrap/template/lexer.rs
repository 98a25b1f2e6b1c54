//! Cuts a template into words.
//!
//! Trim markers are dealt with here: the parser never sees the space that
//! they eat. A word is a slice of the source, and each byte is looked at a
//! bounded number of times.

use super::{
    error::newlines,
    text::first_char,
    token::{Kind, Mistake, Token},
};

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";
/// A minus and the space that makes it a trim marker.
const TRIM_MARKER: usize = 2;

pub(super) struct Lexer<'s> {
    source: &'s [u8],
    /// Next byte to read.
    at: usize,
    /// First byte of the current word.
    start: usize,
    /// Line of `start`, from 1.
    line: usize,
    inside_action: bool,
    open_parens: usize,
    /// The closing braces just read eat the space behind them.
    trims_behind: bool,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s [u8]) -> Self {
        Self {
            source,
            at: 0,
            start: 0,
            line: 1,
            inside_action: false,
            open_parens: 0,
            trims_behind: false,
        }
    }

    /// The next word; the end again and again after the end or a mistake.
    pub(super) fn next(&mut self) -> Token<'s> {
        if !self.inside_action {
            return self.text();
        }
        let token = match self.action_word() {
            Ok(kind) => self.emit(kind),
            Err(mistake) => return self.stop(mistake),
        };
        if std::mem::take(&mut self.trims_behind) {
            self.at += leading_spaces(self.rest());
            self.skip();
        }
        token
    }

    fn rest(&self) -> &'s [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        let (char, _) = first_char(self.rest())?;
        Some(char.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn bump(&mut self) -> Option<char> {
        let (char, width) = first_char(self.rest())?;
        self.at += width;
        Some(char.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn emit(&mut self, kind: Kind) -> Token<'s> {
        let bytes = self.source.get(self.start..self.at).unwrap_or_default();
        let token = Token { kind, position: self.start, line: self.line, bytes };
        self.skip();
        token
    }

    /// Drops what was read since the last word.
    fn skip(&mut self) {
        self.line += newlines(self.source.get(self.start..self.at).unwrap_or_default());
        self.start = self.at;
    }

    fn stop(&mut self, mistake: Mistake) -> Token<'s> {
        let token =
            Token { kind: Kind::Error(mistake), position: self.start, line: self.line, bytes: &[] };
        self.source = &[];
        (self.at, self.start, self.inside_action) = (0, 0, false);
        token
    }

    /// Text up to the next action, or the braces that open it. Comments are
    /// passed over.
    fn text(&mut self) -> Token<'s> {
        loop {
            let rest = self.rest();
            let Some(opening) = rest.windows(LEFT.len()).position(|two| two == LEFT) else {
                self.at = self.source.len();
                let kind = if self.at > self.start { Kind::Text } else { Kind::Eof };
                return self.emit(kind);
            };
            let (text, from_brace) = rest.split_at(opening);
            let inside = &from_brace[LEFT.len()..];
            let trims = has_left_marker(inside);
            let kept = if trims { text.len() - trailing_spaces(text) } else { text.len() };
            if kept > 0 {
                self.at += kept;
                return self.emit(Kind::Text);
            }
            self.at += opening;
            self.skip();
            self.at += LEFT.len();
            let marker = if trims { TRIM_MARKER } else { 0 };
            if inside.get(marker..).is_some_and(|inside| inside.starts_with(b"/*")) {
                self.at += marker;
                self.skip();
                match self.comment() {
                    Ok(()) => continue,
                    Err(mistake) => return self.stop(mistake),
                }
            }
            let token = self.emit(Kind::LeftDelim);
            self.at += marker;
            self.skip();
            self.inside_action = true;
            self.open_parens = 0;
            return token;
        }
    }

    fn comment(&mut self) -> Result<(), Mistake> {
        let body = self.rest().get(2..).unwrap_or_default();
        let end = body.windows(2).position(|two| two == b"*/").ok_or(Mistake::UnclosedComment)?;
        self.at += 2 + end + 2;
        let trims = self.at_right_delim().ok_or(Mistake::CommentBeforeDelim)?;
        self.at += RIGHT.len();
        if trims {
            self.at += TRIM_MARKER;
            self.at += leading_spaces(self.rest());
        }
        self.skip();
        Ok(())
    }

    /// At closing braces? Then whether they trim.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_marker(rest) && rest[TRIM_MARKER..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn right_delim(&mut self, trims: bool) -> Kind {
        self.inside_action = false;
        self.trims_behind = trims;
        if trims {
            self.at += TRIM_MARKER;
            self.skip();
        }
        self.at += RIGHT.len();
        Kind::RightDelim
    }

    fn action_word(&mut self) -> Result<Kind, Mistake> {
        if let Some(trims) = self.at_right_delim() {
            if self.open_parens > 0 {
                return Err(Mistake::UnclosedParen);
            }
            return Ok(self.right_delim(trims));
        }
        let char = self.peek().ok_or(Mistake::UnclosedAction)?;
        if is_space(char) {
            return Ok(self.space());
        }
        if matches!(char, '+' | '-' | '0'..='9') {
            return self.number();
        }
        self.bump();
        Ok(match char {
            '=' => Kind::Assign,
            ':' => match self.bump() {
                Some('=') => Kind::Declare,
                _ => return Err(Mistake::LoneColon),
            },
            '|' => Kind::Pipe,
            '"' => self.quoted('"', Mistake::UnterminatedString).map(|()| Kind::String)?,
            '\'' => self.quoted('\'', Mistake::UnterminatedChar).map(|()| Kind::CharConstant)?,
            '`' => self.raw()?,
            '$' => self.name(Kind::Variable, Kind::Variable)?,
            '.' => {
                if self.peek().is_none_or(|next| next.is_ascii_digit()) {
                    self.at -= 1;
                    return self.number();
                }
                self.name(Kind::Field, Kind::Dot)?
            }
            '(' => {
                self.open_parens += 1;
                Kind::LeftParen
            }
            ')' => {
                self.open_parens = self.open_parens.checked_sub(1).ok_or(Mistake::ExtraParen)?;
                Kind::RightParen
            }
            _ if is_alphanumeric(char) => {
                self.name(Kind::Identifier, Kind::Identifier)?;
                keyword(self.source.get(self.start..self.at).unwrap_or_default())
            }
            ' '..='~' => Kind::Char,
            _ => return Err(Mistake::Unrecognized(char)),
        })
    }

    /// A run of space, short of the one that belongs to a trim marker.
    fn space(&mut self) -> Kind {
        self.at += leading_spaces(self.rest());
        self.at -= 1;
        let marker = self.at_right_delim() == Some(true);
        if marker && self.at == self.start {
            return self.right_delim(true);
        }
        if !marker {
            self.at += 1;
        }
        Kind::Space
    }

    /// The rest of a name whose first character was read; `alone` if it has none.
    fn name(&mut self, kind: Kind, alone: Kind) -> Result<Kind, Mistake> {
        let after_sign = self.at;
        while self.peek().is_some_and(is_alphanumeric) {
            self.bump();
        }
        let ends = match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(char) => is_space(char) || self.rest().starts_with(RIGHT),
        };
        match self.peek() {
            Some(char) if !ends => Err(Mistake::Glued(char)),
            _ if self.at == after_sign => Ok(alone),
            _ => Ok(kind),
        }
    }

    fn quoted(&mut self, quote: char, mistake: Mistake) -> Result<(), Mistake> {
        loop {
            match self.bump() {
                None | Some('\n') => return Err(mistake),
                Some('\\') => match self.bump() {
                    None | Some('\n') => return Err(mistake),
                    Some(_) => {}
                },
                Some(char) if char == quote => return Ok(()),
                Some(_) => {}
            }
        }
    }

    fn raw(&mut self) -> Result<Kind, Mistake> {
        let end = self.rest().iter().position(|&byte| byte == b'`');
        self.at += end.ok_or(Mistake::UnterminatedRawString)? + 1;
        Ok(Kind::RawString)
    }

    /// Anything shaped like a number; the parser reads its value and is stricter.
    fn number(&mut self) -> Result<Kind, Mistake> {
        self.accept(b"+-");
        let mut digits: &[u8] = b"0123456789_";
        let mut exponent: &[u8] = b"eE";
        if self.accept(b"0") {
            if self.accept(b"xX") {
                (digits, exponent) = (b"0123456789abcdefABCDEF_", b"pP");
            } else if self.accept(b"oO") {
                (digits, exponent) = (b"01234567_", b"");
            } else if self.accept(b"bB") {
                (digits, exponent) = (b"01_", b"");
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        if self.accept(exponent) {
            self.accept(b"+-");
            self.accept_run(b"0123456789_");
        }
        match self.peek() {
            Some(char) if char == '+' || char == '-' || is_alphanumeric(char) => {
                Err(Mistake::BadNumber)
            }
            _ => Ok(Kind::Number),
        }
    }

    fn accept(&mut self, any: &[u8]) -> bool {
        let found = self.rest().first().is_some_and(|byte| any.contains(byte));
        self.at += usize::from(found);
        found
    }

    fn accept_run(&mut self, any: &[u8]) {
        while self.accept(any) {}
    }
}

fn trailing_spaces(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|&&byte| is_space(char::from(byte))).count()
}

fn leading_spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| is_space(char::from(byte))).count()
}

fn has_left_marker(inside: &[u8]) -> bool {
    matches!(inside, [b'-', space, ..] if is_space(char::from(*space)))
}

fn has_right_marker(rest: &[u8]) -> bool {
    matches!(rest, [space, b'-', ..] if is_space(char::from(*space)))
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(char: char) -> bool {
    char == '_' || char.is_ascii_digit() || char.is_alphabetic()
}

fn keyword(word: &[u8]) -> Kind {
    match word {
        b"true" | b"false" => Kind::Bool,
        b"block" => Kind::Block,
        b"break" => Kind::Break,
        b"continue" => Kind::Continue,
        b"define" => Kind::Define,
        b"else" => Kind::Else,
        b"end" => Kind::End,
        b"if" => Kind::If,
        b"nil" => Kind::Nil,
        b"range" => Kind::Range,
        b"template" => Kind::Template,
        b"with" => Kind::With,
        _ => Kind::Identifier,
    }
}
