//! The words of a template.

/// Kind of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not a word; says why.
    Error(Mistake),
    Eof,
    /// Outside of actions.
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Bool,
    /// A sign without a meaning of its own, such as the comma.
    Char,
    CharConstant,
    Number,
    String,
    RawString,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    Dot,
    /// `.Name`.
    Field,
    /// `$` or `$name`.
    Variable,
    /// A function's name.
    Identifier,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

/// What the lexer cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    UnclosedComment,
    CommentBeforeDelim,
    UnclosedParen,
    UnclosedAction,
    LoneColon,
    ExtraParen,
    Unrecognized(char),
    Glued(char),
    UnterminatedChar,
    BadNumber,
    UnterminatedString,
    UnterminatedRawString,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UnclosedComment => "comment is never closed; end it with */}}",
            Self::CommentBeforeDelim => "comment must end right before the closing braces: */}}",
            Self::UnclosedParen => "a parenthesis is not closed",
            Self::UnclosedAction => "action is never closed; end it with }}",
            Self::LoneColon => "expected := after the colon",
            Self::ExtraParen => "a parenthesis is closed that was not opened",
            Self::Unrecognized(char) => return write!(f, "{char:?} has no meaning in an action"),
            Self::Glued(char) => {
                return write!(f, "bad character {char:?} after a name; put a space before it");
            }
            Self::UnterminatedChar => "character constant is not closed on its line",
            Self::BadNumber => "bad number",
            Self::UnterminatedString => "quoted string is not closed on its line",
            Self::UnterminatedRawString => "backquoted string is never closed",
        })
    }
}

/// One word and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'s> {
    pub(super) kind: Kind,
    pub(super) position: usize,
    pub(super) line: usize,
    pub(super) bytes: &'s [u8],
}

impl Token<'_> {
    /// What to call the word in an error; literals are not shown.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            Kind::Error(mistake) => mistake.to_string(),
            Kind::Eof => "the end of the template".into(),
            Kind::Text => "text".into(),
            Kind::LeftDelim => "{{".into(),
            Kind::RightDelim => "}}".into(),
            Kind::Space => "a space".into(),
            Kind::CharConstant => "a character constant".into(),
            Kind::Number => "a number".into(),
            Kind::String | Kind::RawString => "a string".into(),
            _ => String::from_utf8_lossy(self.bytes).into_owned(),
        }
    }
}
