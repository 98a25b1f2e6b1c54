//! The functions there are, and how many arguments each takes.

/// A function of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Slice,
    Urlquery,
}

const NAMES: [(&str, Function); 19] = [
    ("and", Function::And),
    ("call", Function::Call),
    ("eq", Function::Eq),
    ("ge", Function::Ge),
    ("gt", Function::Gt),
    ("html", Function::Html),
    ("index", Function::Index),
    ("js", Function::Js),
    ("le", Function::Le),
    ("len", Function::Len),
    ("lt", Function::Lt),
    ("ne", Function::Ne),
    ("not", Function::Not),
    ("or", Function::Or),
    ("print", Function::Print),
    ("printf", Function::Printf),
    ("println", Function::Println),
    ("slice", Function::Slice),
    ("urlquery", Function::Urlquery),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }

    /// The fewest arguments, and whether more may follow.
    pub(super) fn arity(self) -> (usize, bool) {
        match self {
            Self::Html | Self::Js | Self::Print | Self::Println | Self::Urlquery => (0, true),
            Self::And
            | Self::Call
            | Self::Eq
            | Self::Index
            | Self::Or
            | Self::Printf
            | Self::Slice => (1, true),
            Self::Len | Self::Not => (1, false),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, false),
        }
    }

    /// All names, for an error that has to say what there is.
    pub(super) fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }
}
