//! What goes wrong.

use std::{io, path::PathBuf};

/// Why simulated clouds do not start, or do not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that makes no sense; the field is its path in the document.
    #[error("{field}: {problem}")]
    Field {
        /// `clouds[0].tiers[2].price`, or a field of an admin request.
        field: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Not a document at all.
    #[error("{0}")]
    Syntax(String),
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Listening failed.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),
}

impl Error {
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }
}
