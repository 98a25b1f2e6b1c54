//! The table itself.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bigfleet_model::{ClusterId, Need};
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use tokio::time::Instant;

use super::{
    guard::{Guard, Size},
    ingest,
};
use crate::session::RollUpAnswer;

/// Demand of all clusters, between their sessions and the cycle.
pub(crate) struct Needs {
    empty_rollup_guard: bool,
    max_needs: usize,
    clusters: Mutex<BTreeMap<ClusterId, Cluster>>,
    /// Clusters with something that the cycle has not taken, each once. Taken with
    /// the clusters locked: a cycle must not look at ten thousand of them for one.
    staged: Mutex<Vec<ClusterId>>,
}

#[derive(Default)]
struct Cluster {
    /// Accepted, not yet taken by the cycle.
    staged: Option<Vec<Need>>,
    guard: Guard,
    accepted: Option<Accepted>,
    rejected: u64,
    last_rejection: String,
}

#[derive(Clone, Copy)]
struct Accepted {
    at: Instant,
    unix_nanos: i64,
}

/// What there is to see of a cluster's demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterDemand {
    /// Whose.
    pub(crate) cluster: ClusterId,
    /// Rows of the last accepted roll-up.
    pub(crate) rows: usize,
    /// When the last roll-up was accepted; none before the first. With one, the
    /// cluster is ready.
    pub(crate) accepted_at: Option<Instant>,
    /// The same by the wall clock; 0 before the first.
    pub(crate) accepted_unix_nanos: i64,
    /// Roll-ups held in a row.
    pub(crate) held: u32,
    /// Roll-ups refused since start.
    pub(crate) rejected: u64,
    /// Why the last refused one was; empty if none was.
    pub(crate) last_rejection: String,
}

impl Needs {
    /// Empty: no cluster has reported.
    pub(crate) fn new(empty_rollup_guard: bool) -> Self {
        Self {
            empty_rollup_guard,
            max_needs: ingest::MAX_NEEDS,
            clusters: Mutex::default(),
            staged: Mutex::default(),
        }
    }

    /// Takes in a whole roll-up, or changes nothing. `wall_now` is in unix
    /// nanoseconds, `configured` the number of Configured machines that the cluster
    /// holds. `still_current` is asked with the table locked, right before anything
    /// is changed.
    pub(crate) fn ingest(
        &self,
        cluster: &ClusterId,
        message: ClusterCapacityNeeds,
        wall_now: i64,
        configured: usize,
        still_current: &dyn Fn() -> bool,
    ) -> RollUpAnswer {
        // What takes long comes before the lock.
        let checked = ingest::checked(cluster, message, wall_now, self.max_needs)
            .map(|needs| (Size::of(&needs), needs));
        let mut clusters = self.lock();
        if !still_current() {
            return RollUpAnswer::Dropped;
        }
        let entry = clusters.entry(cluster.clone()).or_default();
        let (size, mut needs) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                return entry.reject(error);
            }
        };
        if entry.guard.holds(size, configured, self.empty_rollup_guard) {
            tracing::warn!(
                %cluster, held = entry.guard.held(), configured,
                "roll-up held: demand all but vanished; it applies if sent again"
            );
            return RollUpAnswer::Held;
        }
        let replaced = entry.staged.take();
        // Of needs that the cycle has taken, the engine keeps the arrival.
        if let Some(untaken) = &replaced {
            ingest::keep_arrivals(untaken, &mut needs);
        }
        entry.staged = Some(needs);
        if replaced.is_none() {
            self.lock_staged().push(cluster.clone());
        }
        entry.accepted = Some(Accepted { at: Instant::now(), unix_nanos: wall_now });
        drop(clusters);
        drop(replaced);
        RollUpAnswer::Accepted
    }

    /// What was accepted since the last call, by cluster. A cluster in it is ready
    /// from now on, even with no need; the engine must learn both at once, so there
    /// is no other way to ask who is ready.
    pub(crate) fn take_staged(&self) -> Vec<(ClusterId, Vec<Need>)> {
        let mut clusters = self.lock();
        let mut staged = std::mem::take(&mut *self.lock_staged());
        staged.sort_unstable();
        let take = |cluster: ClusterId| {
            let needs = clusters.get_mut(&cluster)?.staged.take()?;
            Some((cluster, needs))
        };
        staged.into_iter().filter_map(take).collect()
    }

    /// Refuses a roll-up unread.
    pub(crate) fn reject(&self, cluster: &ClusterId, error: String) -> RollUpAnswer {
        self.lock().entry(cluster.clone()).or_default().reject(error)
    }

    /// A cluster is no longer this shard's: as if it had never sent anything.
    pub(crate) fn forget(&self, cluster: &ClusterId) {
        self.lock().remove(cluster);
    }

    /// All clusters that sent anything since start, by cluster.
    pub(crate) fn views(&self) -> Vec<ClusterDemand> {
        self.lock().iter().map(|(cluster, entry)| entry.view(cluster)).collect()
    }

    /// When a cluster's last roll-up was accepted.
    pub(crate) fn accepted_at(&self, cluster: &ClusterId) -> Option<Instant> {
        self.lock().get(cluster)?.accepted.map(|accepted| accepted.at)
    }

    /// One cluster, if it sent anything since start.
    pub(crate) fn view(&self, cluster: &ClusterId) -> Option<ClusterDemand> {
        self.lock().get(cluster).map(|entry| entry.view(cluster))
    }

    fn lock_staged(&self) -> MutexGuard<'_, Vec<ClusterId>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClusterId, Cluster>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    fn reject(&mut self, error: String) -> RollUpAnswer {
        self.rejected += 1;
        self.last_rejection.clone_from(&error);
        RollUpAnswer::Rejected(error)
    }

    fn view(&self, cluster: &ClusterId) -> ClusterDemand {
        ClusterDemand {
            cluster: cluster.clone(),
            rows: self.guard.rows(),
            accepted_at: self.accepted.map(|accepted| accepted.at),
            accepted_unix_nanos: self.accepted.map_or(0, |accepted| accepted.unix_nanos),
            held: self.guard.held(),
            rejected: self.rejected,
            last_rejection: self.last_rejection.clone(),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
