use std::{io, path::PathBuf};

use bigfleet_net::grpc::code_name;
use tonic::{Code, Status};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was typed cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// A mutation without consent, where nobody can be asked.
    #[error(
        "standard input is not a terminal, so nobody can be asked; add --yes to go ahead, or \
         --dry-run to see only what would change"
    )]
    NobodyToAsk,
    /// The question was answered with no.
    #[error("nothing was changed")]
    Declined,
    /// The configuration file cannot be used.
    #[error("{}: {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file that does not say what it should.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody leads, or whoever does cannot be reached.
    #[error("no coordinator leader reachable: {0}")]
    NoLeader(String),
    /// Our certificate does not open this.
    #[error("permission denied: {0}")]
    Denied(String),
    /// A server refused.
    #[error("{what}: {message} ({code})")]
    Refused {
        /// What was asked.
        what: String,
        /// The status code's name.
        code: &'static str,
        /// Its text.
        message: String,
    },
    /// What was found is not what the command needs.
    #[error("{0}")]
    Failed(String),
    /// Not every shard did as it was told.
    #[error("{0}")]
    Partly(String),
    /// Certificates or addresses.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),
    /// The terminal or a pipe.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

impl Error {
    /// 1 failure, 2 usage, 3 no leader reachable, 4 permission.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::NobodyToAsk => 2,
            Self::NoLeader(_) => 3,
            Self::Denied(_) => 4,
            _ => 1,
        }
    }

    /// What a server's refusal of `what` means to whoever asked.
    #[must_use]
    pub fn refused(what: impl Into<String>, status: &Status) -> Self {
        let what = what.into();
        let message = status.message().to_owned();
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated => {
                Self::Denied(format!("{what}: {message}"))
            }
            code => Self::Refused { what, code: code_name(code), message },
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_failures_apart() {
        let status = |code| Error::refused("list-shards", &Status::new(code, "because"));
        for (error, code) in [
            (Error::Failed("x".into()), 1),
            (Error::Declined, 1),
            (status(Code::NotFound), 1),
            (status(Code::Unavailable), 1),
            (Error::Usage("x".into()), 2),
            (Error::NobodyToAsk, 2),
            (Error::NoLeader("x".into()), 3),
            (status(Code::PermissionDenied), 4),
            (status(Code::Unauthenticated), 4),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
        }
        assert_eq!(status(Code::NotFound).to_string(), "list-shards: because (NOT_FOUND)");
    }
}
