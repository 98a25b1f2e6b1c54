use std::{io, path::PathBuf};

/// Why a demo does not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that contradict each other.
    #[error("{flag}: {problem}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file of the demo's own directory.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A child did not start.
    #[error("cannot start {part}: {source}")]
    Start {
        /// Which.
        part: String,
        /// Why.
        source: io::Error,
    },
    /// A child ended by itself.
    #[error("{part} ended by itself; its last words:\n{tail}")]
    Ended {
        /// Which.
        part: String,
        /// The end of its log.
        tail: String,
    },
    /// It takes too long to come up.
    #[error("not ready after {seconds} s: {missing}")]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// For what.
        missing: String,
    },
    /// Certificates.
    #[error("cannot issue certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The simulated clouds.
    #[error("simulated clouds: {0}")]
    Clouds(#[from] bigfleet_provider_sim::Error),
    /// The provider around them.
    #[error("provider: {0}")]
    Provider(#[from] bigfleet_provider_kit::Error),
    /// TLS, listening, signals.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),
    /// Bootstrap blobs of the operators.
    #[error(transparent)]
    Bootstrap(#[from] bigfleet_operator::bootstrap::Error),
    /// Real API servers.
    #[error("kubernetes: {0}")]
    Kubernetes(String),
    /// The dashboard.
    #[error("dashboard: {0}")]
    Dashboard(#[from] bigfleet_dashboard::Error),
    /// Threads, sockets, the terminal.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A list that was not played to its end has shown nothing.
    #[error("stopped after {played} of {of} runs")]
    Unfinished {
        /// Runs that ended.
        played: usize,
        /// Runs that were asked for.
        of: usize,
    },
    /// What the demo exists to show was not so.
    #[error("{0} of the scenarios failed their own claims; the table says which")]
    ClaimsFailed(usize),
}

impl Error {
    /// Whether other flags, rather than another world, would have helped.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Flag { .. })
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
