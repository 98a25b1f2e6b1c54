//! A call without an answer may still arrive: the state it started from is not
//! believed for a while (§7).

use std::time::Duration;

use bigfleet_model::MachineState;
use tokio::time::Instant;

use super::Begun;

/// How long a call without an answer may still arrive.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(60);

/// A call that got no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// Where the machine was when the call was sent.
    pub(crate) start: MachineState,
    /// When it was sent.
    pub(crate) sent: Instant,
}

impl Hold {
    /// Whether a record that shows `state`, of a read that began then, tells
    /// nothing yet.
    pub(crate) fn doubts(&self, state: MachineState, begun: Begun) -> bool {
        state == self.start && begun.at < self.sent + UNANSWERED
    }
}
