//! What can go wrong with a scripted peer.

use std::time::Duration;

use tonic::Status;

/// Why a script could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A condition did not come true in time.
    #[error("not within {waited:?}: {wanted}; {seen}")]
    Late {
        /// How long it was waited for.
        waited: Duration,
        /// What was waited for.
        wanted: &'static str,
        /// What had been seen by then.
        seen: String,
    },

    /// The session is over.
    #[error("the session has ended: {0}")]
    Ended(Status),

    /// There is no session to send on.
    #[error("no session: connect, or reconnect, first")]
    NoSession,

    /// An address, a certificate or a listener.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),

    /// Options that contradict each other.
    #[error("{option}: {problem}")]
    Option {
        /// The field.
        option: &'static str,
        /// What to do about it.
        problem: String,
    },
}
