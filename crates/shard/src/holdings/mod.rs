//! What a shard owns that shares its provider with others (coordinator chapter §8,
//! §9): who may act on which machine, and how that changes hands.
//!
//! [`Holdings`] is one file, replaced whole before its effect is used or reported.
//! [`Holdings::apply`] is every way in which it changes: a state and an event in, a
//! state and effects out. Nothing here knows a clock, a network or a disk but [`mod@file`],
//! so that a model check can drive the very functions that a process runs on.

mod apply;
mod donate;
mod event;
pub mod file;
pub mod fleet;
mod key;
mod opening;
mod ownership;
mod quiet;
mod quota;
mod settle;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::{ClusterId, FleetId, MachineId, PenaltyBucket};

pub use donate::{Candidate, Chosen, Selector, Wanted, drained, may_be_lent, pick};
pub use event::{Effect, Event, Refused, Step};
pub use key::{Domain, DomainError, Key, Keys, TransferId};
pub use opening::{Attempt, Opening};
pub use ownership::{Ownership, is_bound};
pub use quiet::{Busy, quiet};
pub use quota::{Draw, Room, Slice};
pub use settle::{Received, UNUSED, done};
pub use wire::Malformed;

/// Everything in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Whose word counts; none before the first.
    pub fleet: Option<FleetId>,
    /// Highest term heard.
    pub term: i64,
    /// The last Assignment, without what is settled; none before the first.
    pub assignment: Option<Assignment>,
    /// Lost, but something may still be under way on it.
    pub releasing: Keys,
    /// Received machines that are done with, until the Assignment lacks them.
    pub settled: BTreeSet<TransferMachine>,
    /// What was let go of for a transfer that the coordinator has not moved yet.
    pub out: BTreeMap<TransferId, Out>,
}

/// What a shard has as of one index of the coordinator's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The index; 0 once another generation of the fleet was heard.
    pub version: i64,
    /// By which the coordinator sees that it is the one it sent; never 0.
    pub digest: u64,
    /// Domains and clusters.
    pub held: Keys,
    /// Machines of others, ours while they are unbound.
    pub machines_in: BTreeSet<TransferMachine>,
    /// Machines of our domains that others have.
    pub machines_out: BTreeSet<TransferMachine>,
    /// What may be drawn from the provider's accounts.
    pub slices: Vec<Slice>,
    /// Transfers that wait for us to let go.
    pub open_transfers: BTreeSet<TransferId>,
}

/// A machine away from its home. Ordered by transfer and machine, which name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferMachine {
    /// By this transfer.
    pub transfer: TransferId,
    /// The machine.
    pub machine: MachineId,
    /// Where it goes back to.
    pub home: Domain,
    /// Who gave it.
    pub from: String,
}

/// What a donor chose for a transfer: the same for as long as it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// The one domain that they are all of.
    pub home: Domain,
    /// The machines.
    pub machines: BTreeSet<MachineId>,
    /// They are drained first, for somebody of this priority.
    pub drain: Option<Drain>,
}

/// How machines that must be drained first stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Of whoever asks for them.
    pub priority: i32,
    /// The asker's interruption penalty: what a victim does must be cheaper. Not given by
    /// a file of an earlier version, and then nothing is.
    pub bucket: PenaltyBucket,
    /// The drain is over: `machines` are those that made it.
    pub over: bool,
}

impl Out {
    /// Whether there is nothing more to wait for.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.drain.is_none_or(|drain| drain.over)
    }
}

impl Holdings {
    /// The version of the Assignment that is in force; 0 for none.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.assignment.as_ref().map_or(0, |assignment| assignment.version)
    }

    /// What it may have of whose account; without any, nothing limits it.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        self.assignment.as_ref().map_or(&[], |assignment| &assignment.slices)
    }

    /// What a report says of the Assignment: never 0, which would be a shard that
    /// shares nothing.
    #[must_use]
    pub fn digest(&self) -> u64 {
        // No set of entries has this digest, so that a first Assignment always comes.
        const NONE: u64 = 1;
        self.assignment.as_ref().map_or(NONE, |assignment| assignment.digest.max(NONE))
    }

    /// Domains and clusters held; what is being released is not.
    #[must_use]
    pub fn held(&self) -> Option<&Keys> {
        self.assignment.as_ref().map(|assignment| &assignment.held)
    }

    /// Whether the cluster is ours.
    #[must_use]
    pub fn holds_cluster(&self, cluster: &ClusterId) -> bool {
        self.held().is_some_and(|held| held.clusters.contains(cluster))
    }
}

#[cfg(test)]
pub(crate) mod tests;
