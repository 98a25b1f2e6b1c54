//! When the provider is read: before each cycle, and every second while anything
//! is under way (§9).

use std::{sync::Arc, time::Duration};

use bigfleet_model::MachineId;
use tokio::time::Instant;

use super::read::GETS;
use crate::shard::Shard;

/// How often what is under way is looked at.
const SOON: Duration = Duration::from_secs(1);
/// How often removals are looked for where Lists tell only changes.
const FULL: Duration = Duration::from_secs(600);

/// The reconciler's loop; ends never.
pub(crate) async fn run(shard: Arc<Shard>) {
    let mut reader = Reader::default();
    loop {
        let listed = reader.round(&shard).await;
        let waited_for = !shard.live().is_reconciled();
        let told = shard.reconciler.ready().iter().any(super::Batch::tells_anything);
        if told || waited_for {
            shard.wake();
        }
        reader.rest(&shard, listed).await;
    }
}

impl super::Batch {
    fn tells_anything(&self) -> bool {
        let missing = self.missing.as_ref().is_some_and(|missing| !missing.ids.is_empty());
        missing || !self.records.is_empty() || !self.not_found.is_empty()
    }
}

/// What the reconciler remembers from round to round.
#[derive(Default)]
pub(crate) struct Reader {
    cursor: Vec<u8>,
    last_full: Option<Instant>,
    last_list: Option<Instant>,
    /// How long the last List took.
    took: Duration,
    /// The last of the machines that were read one by one.
    asked: Option<MachineId>,
    /// What was ours when the last full List began, of a shared provider.
    owned: u64,
}

impl Reader {
    /// Reads what is due; whether that was a List.
    pub(crate) async fn round(&mut self, shard: &Shard) -> bool {
        let incremental = shard.options.incremental_reconcile;
        let due = self.last_list.is_none_or(|last| {
            last.elapsed() + SOON / 2 >= shard.options.cycle_interval.saturating_sub(self.took)
        });
        if due || incremental || self.is_outdated(shard) {
            self.list(shard, incremental).await;
            return true;
        }
        let some = self.in_flight(shard);
        shard.get_some(some).await;
        false
    }

    pub(crate) async fn list(&mut self, shard: &Shard, incremental: bool) {
        let full = !incremental
            || self.cursor.is_empty()
            || self.is_outdated(shard)
            || self.last_full.is_none_or(|last| last.elapsed() >= FULL);
        let began = Instant::now();
        let cursor = (!full).then(|| self.cursor.clone());
        let owned = shard.shared.as_ref().map_or(0, |shared| shared.revision());
        match shard.list(cursor).await {
            Ok(revision) => {
                self.cursor = revision;
                if full {
                    self.last_full = Some(began);
                    self.owned = owned;
                }
            }
            Err(error) => {
                self.cursor.clear();
                tracing::warn!(%error, "the provider could not be listed; what was known stays");
            }
        }
        self.last_list = Some(began);
        self.took = began.elapsed();
        if incremental {
            shard.get_some(shard.unread()).await;
        }
    }

    /// Until the next round is due.
    async fn rest(&self, shard: &Shard, listed: bool) {
        let interval = shard.options.cycle_interval;
        let began = self.last_list.unwrap_or_else(Instant::now);
        // Ends by the tick, where the provider allows.
        let by_tick = shard.reconciler.state().next_tick.map(|tick| tick - self.took.min(interval));
        let next_list = by_tick.filter(|at| *at > Instant::now()).unwrap_or(began + interval);
        let soon = Instant::now() + SOON;
        loop {
            let presses = shard.anything_under_way() || self.is_outdated(shard);
            let at = if presses { soon.min(next_list) } else { next_list };
            tokio::select! {
                () = tokio::time::sleep_until(at) => return,
                () = shard.reconciler.soon.notified(), if listed || at > soon => {}
            }
        }
    }
}

impl Reader {
    /// Whether other machines are ours than when all were last read.
    fn is_outdated(&self, shard: &Shard) -> bool {
        shard.shared.as_ref().is_some_and(|shared| shared.revision() != self.owned)
    }

    /// Machines between two states: some of them, each in its turn.
    fn in_flight(&mut self, shard: &Shard) -> Vec<MachineId> {
        let live = shard.live();
        let waiting = live.unread.iter().chain(live.passing.keys());
        let mut waiting: Vec<MachineId> =
            waiting.filter(|id| live.pending(id).is_none()).cloned().collect();
        drop(live);
        waiting.sort_unstable();
        waiting.dedup();
        let asked = self.asked.as_ref();
        let first = waiting.partition_point(|id| asked.is_some_and(|asked| id <= asked));
        waiting.rotate_left(first);
        waiting.truncate(GETS);
        self.asked = waiting.last().cloned();
        waiting
    }
}

impl Shard {
    fn unread(&self) -> Vec<MachineId> {
        self.live().unread.iter().take(GETS).cloned().collect()
    }
}
