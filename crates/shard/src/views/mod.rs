//! How every need fared in the last cycle, for whoever reads (§15): one row per
//! need as sent, renewed only where the cycle decided something.
//!
//! Readers take the picture by its pointer and keep it as long as they like; the
//! next cycle copies only what it changes, and only if somebody still looks.

mod extras;
mod row;
mod snapshot;
pub(crate) mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_engine::{NeedKey, Reason};
use bigfleet_model::{ClusterId, PenaltyBucket};
use tokio::time::Instant;

pub(crate) use extras::Extras;
pub(crate) use row::NeedRow;
pub(crate) use snapshot::NeedSnapshot;
use snapshot::Put;

use crate::{
    metrics::PriorityClass,
    shard::{Decider, Shard},
};

/// What there is of needs, counted as rows come and go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Rows by interruption penalty.
    buckets: Vec<usize>,
    /// Unmet rows by base reason.
    unmet: [usize; 4],
}

impl Counts {
    fn bucket(&mut self, row: &NeedRow) -> &mut usize {
        let bucket = row.need.profile.interruption().to_wire();
        let at = usize::try_from(bucket).unwrap_or(0);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        &mut self.buckets[at]
    }

    fn add(&mut self, row: &NeedRow) {
        *self.bucket(row) += 1;
        if let Some(short) = &row.short {
            self.unmet[short.reason as usize] += 1;
        }
    }

    fn take_off(&mut self, row: &NeedRow) {
        *self.bucket(row) -= 1;
        if let Some(short) = &row.short {
            self.unmet[short.reason as usize] -= 1;
        }
    }

    /// Unmet rows for this reason.
    pub(crate) fn unmet_for(&self, reason: Reason) -> usize {
        self.unmet[reason as usize]
    }

    /// Unmet rows.
    pub(crate) fn unmet(&self) -> usize {
        self.unmet.iter().sum()
    }

    /// Rows by interruption penalty.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (PenaltyBucket, usize)> {
        let numbered = self.buckets.iter().zip(0..);
        numbered.filter_map(|(count, at)| Some((PenaltyBucket::from_wire(at)?, *count)))
    }
}

/// What a cycle changed in the rows.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Rows that are new or were looked at again.
    pub(crate) refreshed: Vec<Refreshed>,
    /// Needs that are gone.
    pub(crate) vanished: Vec<NeedKey>,
}

/// A row that a cycle made.
#[derive(Debug)]
pub(crate) struct Refreshed {
    pub(crate) row: Arc<NeedRow>,
    /// Its need was not there before.
    pub(crate) is_new: bool,
}

impl Changes {
    /// Rows of needs that were not there before.
    pub(crate) fn appeared(&self) -> impl Iterator<Item = &Arc<NeedRow>> {
        self.refreshed.iter().filter(|one| one.is_new).map(|one| &one.row)
    }
}

/// The cycle's hand on the rows.
#[derive(Default)]
pub(crate) struct NeedViews {
    pub(crate) counts: Counts,
}

/// The rows, where readers find them.
#[derive(Default)]
pub(crate) struct Published(Mutex<Arc<NeedSnapshot>>);

impl Published {
    fn lock(&self) -> MutexGuard<'_, Arc<NeedSnapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows as they are now.
    pub(crate) fn load(&self) -> Arc<NeedSnapshot> {
        self.lock().clone()
    }
}

impl NeedViews {
    /// Brings the rows up to the last cycle: those it decided, and those of clusters
    /// whose roll-up it took in.
    pub(crate) fn refresh(
        &mut self,
        shard: &Shard,
        decider: &Decider,
        cycle: u64,
        rolled_up: &[ClusterId],
    ) -> Changes {
        let (engine, now) = (&decider.engine, Instant::now());
        let reader = engine.reader();
        let rows: Vec<_> = engine.decided_needs().filter_map(|need| reader.row(&need)).collect();
        let mut changes = Changes::default();
        let mut current = shard.needs_read.lock();
        let snapshot = Arc::make_mut(&mut *current);
        snapshot.begin(cycle, shard.clock.wall());
        for row in rows {
            let Put { before, row } = snapshot.put(NeedRow::of(row, cycle, now));
            if let Some(before) = &before {
                self.counts.take_off(before);
                observe_wait(shard, before, &row, now);
            }
            self.counts.add(&row);
            changes.refreshed.push(Refreshed { row, is_new: before.is_none() });
        }
        for cluster in rolled_up {
            // Whatever is new was decided: unless rows are left over, none has gone.
            if engine.need_count(cluster) == snapshot.of(cluster).len() {
                continue;
            }
            for gone in snapshot.retain(cluster, |need| engine.knows_as_sent(need)) {
                self.counts.take_off(&gone);
                changes.vanished.push(gone.key());
            }
        }
        drop(current);
        follow_latency(shard, &changes);
        changes
    }
}

/// A need that was unmet is satisfied.
fn observe_wait(shard: &Shard, before: &NeedRow, row: &NeedRow, now: Instant) {
    if let (Some(short), None) = (&before.short, &row.short) {
        let class = PriorityClass::of(row.need.profile.priority());
        shard.metrics.need_waited(class, now.saturating_duration_since(short.since));
    }
}

/// Keeps account of needs that wait for their first machine.
fn follow_latency(shard: &Shard, changes: &Changes) {
    let mut live = shard.live();
    for Refreshed { row, is_new } in &changes.refreshed {
        let has_one = row.claimed > row.coming;
        if *is_new && !has_one {
            let rolled_up = shard.needs.accepted_at(&row.need.cluster);
            live.awaiting.insert(row.key(), rolled_up.unwrap_or_else(Instant::now));
        } else if has_one && !live.awaiting.is_empty() {
            // Machines of gangs that share one carry another need's stamp.
            shard.observe_first_machine(&mut live, &row.key());
        }
    }
    for need in &changes.vanished {
        live.awaiting.remove(need);
    }
}
