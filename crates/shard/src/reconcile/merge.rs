//! Taking in what a read told: the cycle's part (§9).

use bigfleet_model::MachineId;
use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::{Batch, Missing};
use crate::{
    holdings::is_bound,
    live::{Cause, Desk},
    shard::Shard,
    shared::InForce,
};

/// Lists in a row that must agree before many machines are believed to be gone.
const AGREEING: u32 = 3;
/// Machines that may be gone at once, as one in so many, and at least.
const SHARE: usize = 10;
/// Entries after which the engine takes them over, so that the first List of half
/// a million machines needs no second half million.
const CHUNK: usize = 8192;

impl Shard {
    /// Merges whatever is ready; whether a machine changed.
    pub(crate) async fn merge_ready(&self) -> bool {
        let batches = std::mem::take(&mut *self.reconciler.ready());
        let mut changed = false;
        for batch in batches {
            changed |= self.merge(batch).await;
        }
        changed
    }

    async fn merge(&self, batch: Batch) -> bool {
        let Batch {
            begun,
            records,
            refused,
            missing,
            incremental,
            not_found,
            list,
            more,
            owned,
            neighbours,
        } = batch;
        for refused in refused {
            self.metrics.machine_rejected(refused.why.reason);
            tracing::warn!(%refused, "a record was refused; what was known stays");
        }
        let mut changed = !not_found.is_empty();
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            {
                let mut desk = self.desk().await;
                for record in records.by_ref().take(CHUNK) {
                    changed |= desk.merge_record(record, begun, incremental, owned.as_deref());
                }
            }
            self.absorb_if_many(CHUNK).await;
        }
        let mut desk = self.desk().await;
        for machine in not_found {
            desk.merge_removal(&machine, begun);
        }
        if let Some(missing) = missing {
            changed |= desk.merge_missing(missing, begun);
        }
        if more {
            return changed;
        }
        if let (Some(shared), Some(mut told)) = (&self.shared, neighbours) {
            if owned.as_ref().is_some_and(|owned| owned.revision != shared.revision()) {
                told.add_to_known();
            }
            // In the step in which its records are taken in, or a machine that came home
            // in between would be neither a neighbour's nor ours, and draw on nothing.
            let since = |machine: &MachineId| desk.live.touches.touched_since(machine, begun);
            shared.neighbours().replace(told, since);
        }
        desk.live.touches.end(begun);
        if list {
            desk.live.set_reconciled();
            let mut state = self.reconciler.state();
            state.last_good = Some(begun.at);
            state.last_good_wall = self.clock.wall();
            drop(state);
            if let (Some(shared), Some(owned)) = (&self.shared, owned.filter(|_| !incremental)) {
                shared.set_listed(owned.revision);
            }
            self.first_reconcile_done();
        }
        changed
    }

    /// Machines whose removal waits.
    fn suspects(&self, missing: Missing) -> Vec<MachineId> {
        let Missing { ids, known } = missing;
        let mut state = self.reconciler.state();
        let many = ids.len() > SHARE && ids.len() * SHARE > known;
        if !many {
            state.suspects.clear();
            state.agreeing = 0;
            return ids;
        }
        state.agreeing += 1;
        state.suspects = if state.agreeing == 1 {
            ids
        } else {
            let now: HashSet<MachineId, RandomState> = ids.into_iter().collect();
            let mut both = std::mem::take(&mut state.suspects);
            both.retain(|machine| now.contains(machine));
            both
        };
        if state.agreeing >= AGREEING {
            state.agreeing = 0;
            return std::mem::take(&mut state.suspects);
        }
        tracing::error!(
            machines = state.suspects.len(),
            of = known,
            "the provider's list lacks many machines: none is forgotten before three lists agree"
        );
        Vec::new()
    }
}

impl Desk<'_> {
    fn merge_record(
        &mut self,
        record: bigfleet_model::Machine,
        begun: crate::live::Begun,
        incremental: bool,
        owned: Option<&InForce>,
    ) -> bool {
        use crate::live::Adopted;
        let machine = record.id.clone();
        // What is bound is its cluster's, whoever has its domain.
        let stays = |record: &bigfleet_model::Machine| {
            is_bound(record.state) && self.state(&record.id).is_some()
        };
        let adopted = match owned {
            None => self.adopt(record, begun),
            Some(_) if !self.is_ours(&record) => self.disown(record, begun),
            // Gained since the read began: a later one tells of it, and of what whoever
            // had it before did to it meanwhile.
            Some(owned) if !owned.owns(&record) && !stays(&record) => return false,
            Some(_) => self.adopt(record, begun),
        };
        if incremental {
            if adopted == Adopted::Skipped {
                self.live.unread.insert(machine);
            } else {
                self.live.unread.remove(&machine);
            }
        }
        matches!(adopted, Adopted::Refreshed | Adopted::Moved)
    }

    /// Forgets what the provider does not have, unless we act on it or did since.
    fn merge_removal(&mut self, machine: &MachineId, begun: crate::live::Begun) -> bool {
        let acting = self.live.pending(machine).is_some();
        if acting || self.live.touches.touched_since(machine, begun) {
            return false;
        }
        self.remove(machine, Cause::Reconcile);
        true
    }

    fn merge_missing(&mut self, missing: Missing, begun: crate::live::Begun) -> bool {
        let gone = self.shard.suspects(missing);
        let mut changed = false;
        for machine in gone {
            changed |= self.merge_removal(&machine, begun);
        }
        changed
    }
}
