//! A parsed template.
//!
//! Without `Debug`: literals may be join tokens.

use std::{collections::HashMap, sync::Arc};

use super::{function::Function, literal::Number, text::Text};

/// The name of a variable, `$` included, or of a field.
pub(super) type Name = Arc<str>;

/// Byte of the source at which errors of a node are reported.
pub(super) type Position = usize;

/// A sequence, walked in order.
pub(super) type List = Vec<Node>;

/// The templates of one source by their names.
pub(super) type Definitions = HashMap<Vec<u8>, Definition>;

/// A named body.
pub(super) struct Definition {
    pub(super) body: List,
    /// Nothing but space: another body of the name may take its place.
    pub(super) blank: bool,
}

pub(super) enum Node {
    Text { position: Position, bytes: Text },
    Action { position: Position, pipeline: Pipeline },
    If(Choice),
    With(Choice),
    Range(Box<Range>),
    Template { position: Position, name: Vec<u8>, argument: Option<Pipeline> },
    Break,
    Continue,
}

/// `if` or `with`: the first branch whose pipeline is true. A chain of
/// `else if` is one choice, so it may be long without being deep.
pub(super) struct Choice {
    pub(super) branches: Vec<Branch>,
    pub(super) otherwise: Option<List>,
}

pub(super) struct Branch {
    pub(super) pipeline: Pipeline,
    pub(super) body: List,
}

pub(super) struct Range {
    pub(super) pipeline: Pipeline,
    pub(super) body: List,
    pub(super) otherwise: Option<List>,
}

/// `$a, $b := command | command`.
pub(super) struct Pipeline {
    pub(super) position: Position,
    pub(super) variables: Vec<Name>,
    /// `=` rather than `:=`.
    pub(super) assigns: bool,
    pub(super) commands: Vec<Command>,
}

/// A first word and its arguments.
pub(super) struct Command {
    pub(super) word: Operand,
    pub(super) arguments: Vec<Operand>,
}

pub(super) struct Operand {
    pub(super) position: Position,
    pub(super) term: Term,
}

pub(super) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    String(Text),
    /// `.A.B`.
    Field(Vec<Name>),
    /// `$x.A.B`.
    Variable(Name, Vec<Name>),
    Function(Function),
    Pipeline(Box<Pipeline>),
    /// `(…).A.B`, or a function's result the same way.
    Chain(Box<Operand>, Vec<Name>),
}

impl Term {
    /// Whether it may take the value of the command before it.
    pub(super) fn is_executable(&self) -> bool {
        !matches!(self, Self::Dot | Self::Nil | Self::Bool(_) | Self::Number(_) | Self::String(_))
    }
}
