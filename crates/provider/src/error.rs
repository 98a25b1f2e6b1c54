//! What can go wrong with a call, in both directions: a client reads these from
//! statuses, a server writes them as statuses (wire chapter §3).

use std::error::Error as _;

use tonic::{Code, Status};

use crate::{
    mutant::{Mutant, active},
    protocol::{BadArgument, FenceRefusal, Refused, Reject},
};

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:ident, $text:literal;)*) => {
        /// A call that came to nothing, with the text of whoever refused it.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum Error {
            $($(#[$doc])* #[error($text)] $name(String),)*
            /// Any other status.
            #[error("{code:?}: {text}")]
            Other {
                /// As it was.
                code: Code,
                /// As it was.
                text: String,
            },
        }

        impl Error {
            /// The status code of this error.
            pub const fn code(&self) -> Code {
                match self { $(Self::$name(_) => Code::$code,)* Self::Other { code, .. } => *code }
            }

            /// The text of the status.
            pub fn text(&self) -> &str {
                match self { $(Self::$name(text) => text,)* Self::Other { text, .. } => text }
            }

            fn from_code(code: Code, text: String) -> Self {
                match code { $(Code::$code => Self::$name(text),)* code => Self::Other { code, text } }
            }
        }
    };
}

errors! {
    /// A newer process of this shard has been here. Alert; no blind retry.
    Fenced = FailedPrecondition, "fenced: {0}";
    /// No such machine.
    NotFound = NotFound, "not found: {0}";
    /// This provider has no such call.
    NotSupported = Unimplemented, "not supported: {0}";
    /// The request can never be right.
    InvalidArgument = InvalidArgument, "invalid argument: {0}";
    /// The caller's certificate is not that of its shard.
    PermissionDenied = PermissionDenied, "permission denied: {0}";
    /// The machine serves another cluster.
    AlreadyExists = AlreadyExists, "already exists: {0}";
    /// Too much under way; send less.
    Exhausted = ResourceExhausted, "exhausted: {0}";
    /// Nobody there, or nothing can be stored now.
    Unavailable = Unavailable, "unavailable: {0}";
    /// No answer in time.
    DeadlineExceeded = DeadlineExceeded, "deadline exceeded: {0}";
    /// No answer: the call was given up on the way.
    Cancelled = Cancelled, "cancelled: {0}";
    /// Out of position, or a fault of the backend.
    Internal = Internal, "{0}";
}

impl Error {
    /// There was no answer, so a mutation may have happened, or may yet.
    pub const fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::DeadlineExceeded(_) | Self::Cancelled(_))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let text = status.message().to_owned();
        match (status.code(), status.source()) {
            // Made on this side, from a connection that broke under the call: a peer's
            // own status has no source. The transport knows no better code for it.
            (Code::Unknown | Code::Internal, Some(source)) => {
                Self::Unavailable(format!("{text}: {source}"))
            }
            (code, _) => Self::from_code(code, text),
        }
    }
}

impl From<Error> for Status {
    /// Whatever is not of this service's table is INTERNAL (provider chapter §8).
    fn from(error: Error) -> Self {
        match error {
            Error::Other { code, text } => Self::internal(format!("{code:?}: {text}")),
            known => Self::new(known.code(), known.text()),
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let text = refused.to_string();
        match refused {
            Refused::Fence(FenceRefusal::Stale(_)) => Self::Fenced(text),
            Refused::Fence(FenceRefusal::TokenRequired) => Self::InvalidArgument(text),
            Refused::NotFound(_) if active(Mutant::UnknownIsFenced) => Self::Fenced(text),
            Refused::NotFound(_) if active(Mutant::UnknownIsInternal) => Self::Internal(text),
            Refused::NotFound(_) => Self::NotFound(text),
            Refused::Lifecycle(Reject::OtherCluster) => Self::AlreadyExists(text),
            Refused::Lifecycle(_) if active(Mutant::PositionIsFenced) => Self::Fenced(text),
            Refused::Lifecycle(Reject::Position { .. }) => Self::Internal(text),
        }
    }
}

impl From<BadArgument> for Error {
    fn from(bad: BadArgument) -> Self {
        let text = bad.to_string();
        match bad.field {
            "machine_id" | "id" if active(Mutant::EmptyIdNotFound) => Self::NotFound(text),
            "grace_period_seconds" if active(Mutant::NegativeGraceFenced) => Self::Fenced(text),
            "bootstrap_blob" if active(Mutant::BigBlobFenced) => Self::Fenced(text),
            _ => Self::InvalidArgument(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> impl Iterator<Item = Code> {
        (1..=16).map(Code::from_i32)
    }

    /// As a provider that is killed leaves the calls it was at.
    #[test]
    fn a_connection_that_broke_is_no_answer() {
        let broken = Status::from_error("connection reset".into());
        assert_eq!(broken.code(), Code::Unknown);
        let error = Error::from(broken);
        assert!(error.is_unanswered(), "{error:?}");
        assert!(error.text().ends_with(": connection reset"), "{error}");
        assert!(!Error::from(Status::unknown("the peer's own")).is_unanswered());
    }

    #[test]
    fn a_status_is_read_with_its_text_and_written_back() {
        for code in codes() {
            let error = Error::from(Status::new(code, "why"));
            assert_eq!((error.code(), error.text()), (code, "why"));
            let status = Status::from(error.clone());
            match error {
                Error::Other { .. } => {
                    assert_eq!(status.code(), Code::Internal, "{code:?} is unmapped");
                    assert_eq!(status.message(), format!("{code:?}: why"));
                }
                _ => assert_eq!((status.code(), status.message()), (code, "why")),
            }
        }
    }

    #[test]
    fn the_three_named_by_the_contract() {
        let read = |code| Error::from(Status::new(code, "t"));
        assert_eq!(read(Code::FailedPrecondition), Error::Fenced("t".into()));
        assert_eq!(read(Code::NotFound), Error::NotFound("t".into()));
        assert_eq!(read(Code::Unimplemented), Error::NotSupported("t".into()));
    }

    #[test]
    fn no_answer_is_deadline_cancel_or_unavailable() {
        let unanswered: Vec<Code> =
            codes().filter(|code| Error::from(Status::new(*code, "")).is_unanswered()).collect();
        assert_eq!(unanswered, [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable]);
    }
}
