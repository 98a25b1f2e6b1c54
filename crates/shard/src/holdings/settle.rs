//! When a received machine is done with.

use std::time::Duration;

use bigfleet_model::MachineState;

/// A received machine that nobody used for so long goes home.
pub const UNUSED: Duration = Duration::from_secs(30 * 60);

/// A received machine, as its provider has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its state by the provider's word; none if the provider has no such machine.
    pub state: Option<MachineState>,
    /// How long it has been ours.
    pub since: Duration,
    /// Nothing is queued or under way on it, nor can a call of the process before arrive:
    /// the provider has answered this one's epoch.
    pub quiet: bool,
    /// Its home is ours, or its capacity is to be released.
    pub unwanted: bool,
}

/// Whether it is to be reported as settled. A local Configuring is not bound: it may
/// roll back, and `quiet` is false.
#[must_use]
pub fn done(machine: &Received) -> bool {
    use MachineState::{Configured, Configuring, Draining, Failed, Idle, Speculative};
    match machine.state {
        None => machine.quiet,
        Some(Configuring | Configured | Draining) => true,
        // Nobody can do anything with it.
        Some(Failed) => machine.quiet,
        Some(Idle | Speculative) => machine.quiet && (machine.unwanted || machine.since >= UNUSED),
        // On its way: the provider finishes, and then we know.
        Some(_) => false,
    }
}
