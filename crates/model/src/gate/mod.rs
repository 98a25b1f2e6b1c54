//! Where foreign input enters, once, at the gRPC edge (wire chapter §8). Inside
//! live only the types of this crate.
//!
//! Enums are checked on the raw number. Nothing is half-applied: what was known
//! before a refused value stays. Only the resource names that it was read with
//! stay interned (see [`Dimension`](crate::Dimension)).

pub mod demand;
pub mod inventory;
mod quantities;

use std::fmt;

pub use quantities::{AmountError, amount, unit_amount};

/// Why input was refused: which field, and what is wrong with it. Prints as
/// `<path>: <reason>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Field, from the root of the message.
    pub path: String,
    /// In words.
    pub reason: String,
}

impl Refusal {
    /// At this path, for this reason.
    pub fn new(path: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self { path: path.into(), reason: reason.to_string() }
    }

    pub(crate) fn out_of_range(path: impl Into<String>, got: i32, low: i32, high: i32) -> Self {
        Self::new(path, format_args!("{got} out of range [{low},{high}]"))
    }

    /// The same, seen from the message that holds this one.
    #[must_use]
    pub(crate) fn inside(mut self, parent: fmt::Arguments<'_>) -> Self {
        self.path = format!("{parent}.{}", self.path);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for Refusal {}

/// Foreign text in a message of ours: quoted, escaped, and cut so that a peer
/// cannot fill our logs.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 128;
        match self.0.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}
