//! A call without an answer may still arrive: the state it started from is not
//! believed for a while (§7).

use bigfleet_model::MachineState;
use tokio::time::Instant;

use super::Begun;

/// A call that got no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// Where the machine was when the call was sent.
    pub(crate) start: MachineState,
    /// It may arrive until then.
    pub(crate) until: Instant,
}

impl Hold {
    /// Whether a record that shows `state`, of a read that began then, tells
    /// nothing yet.
    pub(crate) fn doubts(&self, state: MachineState, begun: Begun) -> bool {
        state == self.start && begun.at < self.until
    }
}
