//! One need as readers see it.

use std::{
    cmp::{Ordering, Reverse},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bigfleet_engine::{Detail, NeedKey, Preemption, Reason, Row};
use bigfleet_model::{Need, Totals};
use tokio::time::Instant;

use super::Extras;

/// How one need fared, without what is computed only when somebody reads it.
#[derive(Debug)]
pub(crate) struct NeedRow {
    pub(crate) need: Need,
    pub(crate) claimed: u32,
    pub(crate) bootstrap: u32,
    pub(crate) provision: u32,
    /// Claimed machines that are not Configured yet.
    pub(crate) coming: u32,
    /// Values of a gang's keys.
    pub(crate) domain: Option<Vec<(String, String)>>,
    pub(crate) satisfiable: bool,
    /// What is missing, if anything is.
    pub(crate) short: Option<Box<Short>>,
    extras: Mutex<Extras>,
}

/// What an unmet need lacks, and why.
#[derive(Debug)]
pub(crate) struct Short {
    pub(crate) reason: Reason,
    pub(crate) detail: Option<Detail>,
    pub(crate) deficit: Totals,
    pub(crate) preemption: Option<Preemption>,
    pub(crate) parked: bool,
    pub(crate) gang_age: u32,
    /// When it was first seen unmet, and by which cycle.
    pub(crate) since: Instant,
    pub(crate) since_cycle: u64,
}

impl NeedRow {
    pub(crate) fn of(row: Row, cycle: u64, now: Instant) -> Self {
        let Row { need, verdict, coming, preemption } = row;
        let short = (!verdict.satisfied).then(|| {
            Box::new(Short {
                // The engine gives one to whatever it leaves unmet.
                reason: verdict.reason.unwrap_or(Reason::PriorityStarved),
                detail: verdict.detail,
                deficit: verdict.deficit,
                preemption,
                parked: verdict.parked,
                gang_age: verdict.gang_age,
                since: now,
                since_cycle: cycle,
            })
        });
        Self {
            need,
            claimed: verdict.claimed,
            bootstrap: verdict.bootstrap,
            provision: verdict.provision,
            coming,
            domain: verdict.domain.map(|domain| domain.into_iter().collect()),
            satisfiable: verdict.satisfiable,
            short,
            extras: Mutex::default(),
        }
    }

    /// What was unmet before has been so for longer.
    pub(crate) fn inherit(&mut self, before: &Self) {
        if let (Some(short), Some(before)) = (&mut self.short, &before.short) {
            (short.since, short.since_cycle) = (before.since, before.since_cycle);
        }
    }

    pub(crate) fn key(&self) -> NeedKey {
        NeedKey::of(&self.need)
    }

    /// A gang.
    pub(crate) fn is_same(&self) -> bool {
        self.need.profile.same().next().is_some()
    }

    /// Cycles in a row that it has been unmet, up to this one.
    pub(crate) fn age(&self, cycle: u64) -> u64 {
        self.short.as_ref().map_or(0, |short| cycle.saturating_sub(short.since_cycle) + 1)
    }

    /// What is computed when somebody reads, as far as somebody has.
    pub(super) fn extras(&self) -> MutexGuard<'_, Extras> {
        self.extras.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> (Reverse<i32>, i64) {
        (Reverse(self.need.profile.priority()), self.need.arrival)
    }

    /// Order among the needs of one cluster.
    pub(super) fn order_in_cluster(&self, other: &Self) -> Ordering {
        let text = |row: &Self| (row.need.profile.fingerprint().clone(), row.need.group.clone());
        self.place().cmp(&other.place()).then_with(|| text(self).cmp(&text(other)))
    }

    /// Order among all: priority desc, arrival asc, cluster, fingerprint, group asc.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.place()
            .cmp(&other.place())
            .then_with(|| self.need.cluster.cmp(&other.need.cluster))
            .then_with(|| self.order_in_cluster(other))
    }
}
