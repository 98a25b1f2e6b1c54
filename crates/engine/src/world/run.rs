//! Machines that differ only in id, as one.

use std::{cmp::Ordering, num::NonZeroU32};

use smallvec::SmallVec;

use crate::handle::{AccountIx, ClassIx, ClusterIx, MachineIx, StampIx};

/// What a run's machines are to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RunKind {
    /// Configured or Configuring.
    Bound,
    /// Creating, bought for the need in its stamp.
    Bought,
    /// Idle.
    Idle,
    /// Creating, for nobody knows whom.
    Creating,
    /// Could be bought.
    Speculative,
    /// On its way to Idle.
    Draining,
    /// Acquirable but for its failing provider.
    ProviderFailing,
    /// Acquirable but for a quota.
    Quota,
}

impl RunKind {
    /// In the order in which they are taken.
    pub(crate) const ACQUIRABLE: [Self; 3] = [Self::Idle, Self::Creating, Self::Speculative];
}

/// Place of a run's machines in a walk over bound supply, but for their ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepLevel {
    pub(crate) kind: RunKind,
    pub(crate) price: f64,
    /// Dollars in the stamp; what is worth more is kept first.
    pub(crate) reclamation: f64,
}

impl KeepLevel {
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        self.kind
            .cmp(&other.kind)
            .then_with(|| self.price.total_cmp(&other.price))
            .then_with(|| other.reclamation.total_cmp(&self.reclamation))
    }
}

/// Machines: four fit inside, and most runs and needs have few.
pub(crate) type Few = SmallVec<[MachineIx; 4]>;

/// A place in a list, in no more space than a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(NonZeroU32);

impl Place {
    pub(crate) fn at(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Machines of one kind, class, cluster and stamp, in id order.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) kind: RunKind,
    pub(crate) class: ClassIx,
    /// Whom they are bound to, or bought for.
    pub(crate) cluster: Option<ClusterIx>,
    pub(crate) stamp: Option<StampIx>,
    /// Whose they are by their stamp.
    pub(crate) account: Option<AccountIx>,
    pub(crate) members: Few,
    /// How many are claimed.
    pub(crate) claimed: u32,
    /// How many that nobody claims the last Phase 2 picked.
    pub(crate) doomed: u32,
    /// Members before this one are claimed.
    pub(crate) next: u32,
    /// First member that is neither claimed nor planned for, in `view`.
    pub(crate) cursor: u32,
    /// How many are planned for in `view`.
    pub(crate) planned: u32,
    pub(crate) view: u32,
    /// Its place in the list of runs with unclaimed machines of its cluster.
    pub(crate) open_at: Option<Place>,
    /// Is in the lists of its account, of its class and of its cluster's shelf.
    pub(crate) listed: bool,
}

impl RunRow {
    pub(crate) fn new(
        kind: RunKind,
        class: ClassIx,
        cluster: Option<ClusterIx>,
        stamp: Option<StampIx>,
        account: Option<AccountIx>,
    ) -> Self {
        Self {
            kind,
            class,
            cluster,
            stamp,
            account,
            members: Few::new(),
            claimed: 0,
            doomed: 0,
            next: 0,
            cursor: 0,
            planned: 0,
            view: 0,
            open_at: None,
            listed: false,
        }
    }

    /// What makes its machines one run.
    pub(crate) const fn id(&self) -> super::RunId {
        (self.kind, self.class, self.cluster, self.stamp)
    }

    pub(crate) fn has_unclaimed(&self) -> bool {
        (self.claimed as usize) < self.members.len()
    }
}
