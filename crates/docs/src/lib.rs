//! What keeps the documentation true. Nothing of it ships.
//!
//! [`page`] reads Markdown, [`links`] finds what leads nowhere, [`console`] runs a page's
//! commands and compares what they print, [`mod@reference`] writes the references that follow
//! from the protos, the CRDs and the binaries, [`commands`] finds commands that do not exist, and
//! [`site`] is what mdBook calls while it builds the site, and a look at what it built.

pub mod commands;
pub mod console;
pub mod links;
pub mod page;
pub mod reference;
pub mod site;

use std::{
    io,
    path::{Path, PathBuf},
};

/// The command that writes every generated page.
pub const GENERATE: &str = "cargo run -p bigfleet-docs -- generate";

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// Why the documentation could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A proto file does not compile.
    #[error("api/proto: {0}")]
    Proto(#[from] protox::Error),

    /// A manifest is no definition of a custom resource.
    #[error("{path}: {problem}")]
    Manifest {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A binary does not say its flags.
    #[error("{command}: {problem}")]
    Help {
        /// What was run.
        command: String,
        /// What came of it.
        problem: String,
    },

    /// mdBook sent something else than a book.
    #[error("standard input is not a book of mdBook 0.5: {0}")]
    Book(String),

    /// The site has dead links, or calls out.
    #[error("the site is not whole:\n{0}")]
    Site(String),
}

impl Error {
    /// For `map_err`, where a file is concerned.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// Reads a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = root().join(path);
    std::fs::read_to_string(&path).map_err(Error::file(path))
}
