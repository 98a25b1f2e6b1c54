//! The double-brace language in which charts are written, without Sprig
//! (kubernetes chapter §5).
//!
//! Source → `lexer` → `parser` → `node`s → `eval` → bytes. Whatever the
//! source, parsing takes time in proportion to its length, and rendering stops
//! at its [`Limits`].

mod error;
mod escape;
mod eval;
mod function;
mod lexer;
mod literal;
mod node;
mod parser;
mod print;
mod text;
mod token;
mod value;

use std::{fmt, time::Duration};

pub use error::{ParseError, RenderError};
pub use text::Text;
pub use value::{Field, Late, List, Struct, Value};

use self::node::Definitions;

/// A template that parsed.
pub struct Template {
    source: Vec<u8>,
    definitions: Definitions,
}

/// What one rendering may use.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bytes of the output, and of any string on the way.
    pub output: usize,
    /// Time by `clock`.
    pub time: Duration,
    /// A clock that never goes back.
    pub clock: fn() -> Duration,
}

impl Limits {
    /// 1 MiB and 100 ms by the given clock.
    #[must_use]
    pub fn by(clock: fn() -> Duration) -> Self {
        Self { output: 1 << 20, time: Duration::from_millis(100), clock }
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// Refuses whatever can be known to be wrong before rendering.
    pub fn parse(source: impl Into<Vec<u8>>) -> Result<Self, ParseError> {
        let source = source.into();
        let definitions = parser::parse(&source)?;
        Ok(Self { source, definitions })
    }

    /// Renders with `data` as the dot.
    ///
    /// # Errors
    ///
    /// On what only shows with the data at hand, and past a limit. What was
    /// written until then is dropped.
    pub fn render(&self, data: &Value, limits: Limits) -> Result<Vec<u8>, RenderError> {
        eval::render(self, data, limits)
    }
}

impl fmt::Debug for Template {
    /// Not the source: it may carry a join token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template of {} bytes", self.source.len())
    }
}
