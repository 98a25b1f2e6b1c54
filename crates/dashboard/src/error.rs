//! What keeps a dashboard from starting, or ends it.

/// Why a dashboard does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that do not fit each other.
    #[error("{0}")]
    Usage(String),
    /// Listening, certificates, addresses.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),
    /// `--kubeconfig`.
    #[error("kubeconfig {path}: {problem}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that a flag names.
    #[error("{flag} {path}: {problem}")]
    File {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The OpenID issuer.
    #[error("--oidc-issuer {issuer}: {problem}")]
    Issuer {
        /// As given.
        issuer: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Roots of trust, random numbers.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// Whether other flags, rather than another world, would have helped.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) => true,
            Self::Net(error) => error.is_usage(),
            _ => false,
        }
    }
}
