use std::{io, path::PathBuf};

/// Why the suite could not run; all of these end it with exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that do not fit together.
    #[error("{0}")]
    Usage(String),

    /// The network side of the suite.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),

    /// The target does not answer.
    #[error("target {addr} does not answer: {problem}; is it running, and does it speak {speaks}?")]
    Unreachable {
        /// Where it should be.
        addr: String,
        /// What came instead.
        problem: String,
        /// plaintext or mTLS.
        speaks: &'static str,
    },

    /// The target could not be started.
    #[error("--target-cmd {program:?}: {problem}")]
    Boot {
        /// The program.
        program: String,
        /// Why not, with the end of its output.
        problem: String,
    },

    /// The issuing CA cannot be used.
    #[error(
        "--tls-issuer-cert, --tls-issuer-key: {0}; give a test CA that the target trusts, in PEM"
    )]
    Issuer(#[from] rcgen::Error),

    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// A directory for states and certificates.
    #[error("cannot make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
}
