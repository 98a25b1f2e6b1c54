//! What changes holdings, and what follows from it.

use std::collections::BTreeSet;

use bigfleet_model::{FleetId, MachineId};

use super::{
    Assignment, Holdings, Key, Keys, Out, TransferId,
    fleet::{Foreign, OldLeader},
};

/// Whatever may change the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A coordinator answered, whatever else it said.
    Heard {
        /// Its fleet; none from one that knows no fleets.
        fleet: Option<FleetId>,
        /// Its term.
        term: i64,
    },
    /// A coordinator said what is ours.
    Assigned(Assignment),
    /// Nothing is queued or under way on these, and no call of a dead predecessor can
    /// arrive any more.
    Quiet(Keys),
    /// A release instruction: these were chosen for a transfer.
    Picked {
        /// The transfer.
        transfer: TransferId,
        /// What goes.
        out: Out,
    },
    /// The drain for a transfer is over, for these machines with success.
    Drained {
        /// The transfer.
        transfer: TransferId,
        /// Those that are Idle.
        idle: BTreeSet<MachineId>,
    },
    /// Received machines that are bound, gone, unused or unwanted.
    Done(BTreeSet<(TransferId, MachineId)>),
}

/// What an event leads to, once the state behind it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing new starts on it. Already before the state is on disk: to stop early
    /// harms nobody.
    Stop(Key),
    /// It is ours, by reads of the provider that begin from now on.
    Hold(Key),
    /// Nothing more can come of it: reports no longer name it.
    Released(Key),
    /// An unbound machine is no longer ours. Like [`Effect::Stop`], at once.
    Disown(MachineId),
    /// An unbound machine is ours, by reads that begin from now on.
    Own(MachineId),
    /// The donor's answer to a transfer, the same however often it is asked.
    Answer {
        /// The transfer.
        transfer: TransferId,
        /// What goes; none of it is to be refused.
        out: Out,
    },
}

impl Effect {
    /// Whether less is ours than before.
    #[must_use]
    pub const fn takes(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Disown(_))
    }

    /// Whether more is ours than before.
    #[must_use]
    pub const fn gives(&self) -> bool {
        matches!(self, Self::Hold(_) | Self::Own(_))
    }
}

/// The state after an event, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// To be on disk before anything of it is used or reported.
    pub after: Holdings,
    /// What follows.
    pub effects: Vec<Effect>,
}

/// An event that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not our fleet.
    #[error(transparent)]
    Fleet(#[from] Foreign),
    /// An old leader.
    #[error(transparent)]
    Term(#[from] OldLeader),
    /// Older than what is in force.
    #[error("assignment of index {theirs}, while that of {ours} is in force")]
    OldAssignment {
        /// The answer's.
        theirs: i64,
        /// Ours.
        ours: i64,
    },
    /// No Assignment names the transfer as open.
    #[error("transfer {0} is not open by the last assignment; it is asked for again with the next")]
    NotOpen(TransferId),
    /// Nothing was chosen for it.
    #[error("transfer {0} waits for no drain of ours")]
    NotDraining(TransferId),
}
