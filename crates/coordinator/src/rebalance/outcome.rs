//! What comes of a pass, and of what it began.

use std::collections::BTreeMap;

use crate::state::{Command, TransferKind};

/// Proposals of one pass, and why more was not proposed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// BeginTransfer commands, in the order of what they are for.
    pub begin: Vec<Command>,
    /// Shortfalls that are not covered, by reason; one may have several.
    pub skipped: BTreeMap<Skip, u64>,
}

/// Why a shortfall is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// Its machines must be of one domain, and never cross shards.
    Same,
    /// What was begun earlier covers it.
    OnTheWay,
    /// Nobody has what it lacks.
    NoDonor,
    /// Between the two something of that type and zone moved lately.
    Cooldown,
    /// The donor has too little of it.
    MinBenefit,
    /// The pass has moved as much as it may.
    Budget,
    /// As many transfers, or machines in them, as there may be.
    Limit,
    /// Its requirements are too large for the log.
    TooLarge,
    /// A new leader has not heard enough shards: no pass.
    Waiting,
    /// After a restore: no pass.
    Recovering,
}

impl Skip {
    /// As a metric's label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OnTheWay => "on_the_way",
            Self::NoDonor => "no_donor",
            Self::Cooldown => "cooldown",
            Self::MinBenefit => "min_benefit",
            Self::Budget => "budget",
            Self::Limit => "limit",
            Self::TooLarge => "too_large",
            Self::Waiting => "waiting",
            Self::Recovering => "recovering",
        }
    }
}

/// What became of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Move {
    /// It was committed.
    Begun,
    /// It was not.
    NotBegun,
    /// The donor let go.
    Moved,
    /// The donor had nothing, or let go of what cannot be moved.
    Refused,
    /// The donor was silent or is gone, or its machines were no longer to be moved.
    GivenUp,
    /// The recipient is done with all of it, or gone.
    Settled,
}

impl Move {
    /// As a metric's label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::NotBegun => "not_begun",
            Self::Moved => "moved",
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
            Self::Settled => "settled",
        }
    }
}

/// The tier of a kind, as a metric's label.
#[must_use]
pub const fn tier(kind: TransferKind) -> &'static str {
    match kind {
        TransferKind::Idle => "1",
        TransferKind::Speculative => "2",
        TransferKind::Drain => "3",
    }
}
