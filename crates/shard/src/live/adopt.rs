//! Provider truth: how a record is taken in (§9).

use std::sync::Arc;

use bigfleet_engine::{Action, ActionKind, NeedKey, Tracked, action::Acquisition, output::NeedIdx};
use bigfleet_model::{ClusterId, Machine, MachineId, MachineState, Stamp};

use super::{Begun, Cause, Desk, Entry, Pending, Stage, frame};
use crate::outcome::Outcome;

/// What a record of the provider came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adopted {
    /// Nothing new.
    Known,
    /// Other price, labels or host.
    Refreshed,
    /// Another state or cluster.
    Moved,
    /// Older than what we did; believe a later one.
    Skipped,
}

impl Desk<'_> {
    /// Takes in the provider's word (§9). The record passed the inventory gate.
    pub(crate) fn adopt(&mut self, record: Machine, begun: Begun) -> Adopted {
        let id = record.id.clone();
        if self.is_older(&record, begun) {
            return Adopted::Skipped;
        }
        // Another state, or late enough: a call that had no answer has arrived or
        // never will.
        self.live.holds.remove(&id);
        let Some(known) = self.tracked(&id) else {
            self.ingest(record);
            return Adopted::Moved;
        };
        self.live.unsaid.remove(&id);
        // While an operator is waited for, only other states than Configured get here.
        self.end_wait(&id);
        let same_state = known.machine.state == record.state;
        if same_state && known.machine.cluster == record.cluster {
            let waits = self.live.pending(&id).is_some();
            if waits || !is_refreshed(&known.machine, &record) {
                return Adopted::Known;
            }
            if let Some(entry) = self.open(&id) {
                let machine = &mut entry.tracked.machine;
                (machine.class, machine.host) = (record.class, record.host);
                machine.last_error = record.last_error;
                entry.dirty = true;
            }
            return Adopted::Refreshed;
        }
        let forced = !same_state && !known.machine.state.may_become(record.state);
        if forced {
            self.shard.metrics.reconcile_forced(known.machine.state, record.state);
        }
        let cause = if forced { Cause::Forced } else { Cause::Reconcile };
        self.follow_provider(&id, record, cause, 0);
        Adopted::Moved
    }

    /// Whether a record is older than what we did (§9 step 2).
    fn is_older(&self, record: &Machine, begun: Begun) -> bool {
        let live = &*self.live;
        let waits = |pending: &Pending| {
            pending.stage == Stage::ReclaimWait && record.state != MachineState::Configured
        };
        live.pending(&record.id).is_some_and(|pending| !waits(pending))
            || live.touches.touched_since(&record.id, begun)
            || live.holds.get(&record.id).is_some_and(|hold| hold.doubts(record.state, begun))
    }

    /// Takes in the word that a machine is another shard's: whoever it served here is
    /// told what became of it, and it is forgotten.
    pub(crate) fn disown(&mut self, record: Machine, begun: Begun) -> Adopted {
        let id = record.id.clone();
        if self.is_older(&record, begun) {
            return Adopted::Skipped;
        }
        self.live.holds.remove(&id);
        let Some(known) = self.tracked(&id) else { return Adopted::Known };
        self.end_wait(&id);
        if known.machine.cluster.is_some_and(|cluster| self.is_served(&cluster)) {
            self.follow_provider(&id, record, Cause::Reconcile, 0);
        }
        self.leave(&id);
        Adopted::Moved
    }

    /// Whether a cluster is told of its machines.
    fn is_served(&self, cluster: &ClusterId) -> bool {
        let shared = self.shard.shared.as_ref();
        shared.is_none_or(|shared| shared.in_force().ownership.holds(cluster))
    }

    /// A machine is no longer ours, and nobody else's business here.
    pub(crate) fn leave(&mut self, id: &MachineId) {
        let Some(entry) = self.open(id) else { return };
        let (machine, of) = (entry.tracked.machine.clone(), entry.association().cloned());
        let told = self.live.told.get(id).cloned().or(of);
        if let Some(cluster) = told.filter(|cluster| self.is_served(cluster)) {
            self.tell(&machine, &cluster, true);
        }
        if let Some(shared) = &self.shard.shared {
            // It may draw on our share still: the next List, which would say so, is to come.
            shared.neighbours().note(&shared.in_force().ownership, &machine, false);
        }
        self.forget_whole(id);
    }

    fn forget_whole(&mut self, id: &MachineId) {
        self.live.forget(id);
        if let Some(entry) = self.live.entries.get_mut(id) {
            (entry.gone, entry.dirty, entry.pending) = (true, true, None);
        }
        self.live.touches.touch(id);
    }

    /// The provider moved a machine for whose drain an operator was waited for.
    pub(crate) fn end_wait(&mut self, machine: &MachineId) {
        let waiting = self.live.pending(machine).filter(|one| one.stage == Stage::ReclaimWait);
        if let Some(decision) = waiting.map(|pending| pending.decision) {
            self.shard.reclaims.cancel(machine);
            self.end(machine);
            self.shard.record_outcome(decision, Outcome::StaleState, "", "");
        }
    }

    /// Writes a provider's record over what was known of a machine (§9 step 5).
    pub(crate) fn follow_provider(
        &mut self,
        id: &MachineId,
        record: Machine,
        cause: Cause,
        decision: i64,
    ) {
        let now = self.shard.clock.now();
        let second_half = self.second_half(id, &record);
        self.live.holds.remove(id);
        self.write(id, cause, decision, |tracked| {
            let before = &tracked.machine;
            let stamp = stamp_after(before, &record);
            let stays_idle =
                before.state == MachineState::Idle && record.state == MachineState::Idle;
            tracked.idle_since = match record.state {
                MachineState::Idle if stays_idle => tracked.idle_since,
                MachineState::Idle => Some(now),
                _ => None,
            };
            if record.state != MachineState::Draining {
                tracked.drain = None;
            }
            tracked.machine = Machine { stamp, shard_metadata: Default::default(), ..record };
        });
        if let Some(acquisition) = second_half {
            self.go_on(id, acquisition);
        }
    }

    /// What is left of a purchase that has just turned Idle, if the need it was
    /// made for is still there (§7).
    fn second_half(&self, id: &MachineId, record: &Machine) -> Option<Acquisition> {
        if self.live.pending(id).is_some() || record.state != MachineState::Idle {
            return None;
        }
        let known = self.tracked(id)?.machine;
        let stamp = known.stamp.filter(|_| known.state == MachineState::Creating)?;
        let cluster = stamp.for_cluster.clone()?;
        let need = NeedKey {
            cluster: cluster.clone(),
            fingerprint: stamp.fingerprint.clone(),
            group: stamp.group.clone(),
        };
        let wanted = self.engine().knows(&need);
        wanted.then(|| Acquisition { cluster, stamp, need: NeedIdx::default() })
    }

    /// Queues the second half of a purchase, in the write that made the first half
    /// end.
    fn go_on(&mut self, id: &MachineId, acquisition: Acquisition) {
        let action = Action {
            machine: id.clone(),
            kind: ActionKind::Bootstrap(acquisition),
            cost: f64::INFINITY,
            runner_up_cost: None,
            domain_rule: 0,
        };
        self.enqueue_second_half(action);
    }

    /// A machine never seen before.
    fn ingest(&mut self, record: Machine) {
        let now = self.shard.clock.now();
        let stamp = decoded(&record);
        let id = record.id.clone();
        let idle_since = (record.state == MachineState::Idle).then_some(now);
        let machine = Machine { stamp, shard_metadata: Default::default(), ..record };
        self.follow(&machine);
        if self.live.is_reconciled() {
            self.note(None, &machine, Cause::Ingest, 0);
        }
        let entry = Entry::new(Tracked { machine: machine.clone(), idle_since, drain: None });
        let of = entry.association().cloned();
        self.live.entries.insert(id, entry);
        if let Some(cluster) = of {
            self.tell(&machine, &cluster, false);
        }
    }

    /// Its provider dropped a machine (§9).
    pub(crate) fn remove(&mut self, id: &MachineId, cause: Cause) {
        let Some(entry) = self.open(id) else { return };
        let (mut machine, of) = (entry.tracked.machine.clone(), entry.association().cloned());
        let from = machine.state;
        machine.state = MachineState::Failed;
        machine.last_error = frame::REMOVED.to_owned();
        self.note(Some(from), &machine, cause, 0);
        if let Some(cluster) = self.live.told.get(id).cloned().or(of) {
            self.tell(&machine, &cluster, true);
        }
        self.end_wait(id);
        self.forget_whole(id);
    }
}

/// What a provider refreshes on a settled machine.
fn is_refreshed(known: &Machine, record: &Machine) -> bool {
    (!Arc::ptr_eq(&known.class, &record.class) && known.class != record.class)
        || known.host != record.host
        || known.last_error != record.last_error
}

/// Whether a machine in this state serves a need, or is on its way to or from one.
const fn carries_stamp(state: MachineState) -> bool {
    use MachineState::{Configured, Configuring, Creating, Draining};
    matches!(state, Creating | Configuring | Configured | Draining)
}

/// The stamp that a machine carries once its provider's record is taken in.
fn stamp_after(before: &Machine, record: &Machine) -> Option<Arc<Stamp>> {
    if !carries_stamp(record.state) {
        return None;
    }
    let bound = |stamp: &&Arc<Stamp>| {
        let of = before.cluster.as_ref().or(stamp.for_cluster.as_ref());
        record.cluster.is_none() || record.cluster.as_ref() == of
    };
    before.stamp.as_ref().filter(bound).cloned().or_else(|| decoded(record))
}

/// The echo of a stamp.
fn decoded(record: &Machine) -> Option<Arc<Stamp>> {
    if !carries_stamp(record.state) {
        return None;
    }
    let (stamp, malformed) = Stamp::from_metadata(&record.shard_metadata);
    for wrong in malformed {
        tracing::warn!(machine = %record.id, %wrong, "a part of the stamp is lost");
    }
    stamp.map(|stamp| Arc::new(Stamp { for_cluster: record.cluster.clone(), ..stamp }))
}
