//! What can go wrong when a control plane is started.

use std::io;

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Binaries are absent.
    #[error(
        "{} not found in KUBEBUILDER_ASSETS or PATH; get them with \
         `export KUBEBUILDER_ASSETS=$(setup-envtest use -p path)`, or install etcd and the \
         Kubernetes server binaries of your distribution",
        .0.join(", ")
    )]
    Missing(Vec<&'static str>),

    /// A file or a process could not be made.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },

    /// A certificate could not be made.
    #[error("cannot make certificates: {0}")]
    Certificate(#[from] rcgen::Error),

    /// A command refused.
    #[error("{command} ended with {status}: {output}")]
    Command {
        /// As it was run.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it said.
        output: String,
    },

    /// A process came up and did not get ready.
    #[error("{reason}\n{logs}")]
    NotReady {
        /// What was seen.
        reason: String,
        /// The end of each process's log.
        logs: String,
    },
}

impl Error {
    /// Adds what was tried to an I/O error.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
