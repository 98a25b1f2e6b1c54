//! Where machines are written: one step changes the record, remembers the move
//! and tells the cluster, so that no frame is ever older than one sent before.

use std::{
    ops::Deref,
    sync::{Arc, MutexGuard},
};

use bigfleet_engine::{Action, Engine, Tracked};
use bigfleet_model::{ClusterId, Machine, MachineId, MachineState, Stamp};
use bigfleet_provider::protocol::Kind;
use tokio::{sync::RwLockReadGuard, time::Instant};

use super::{Cause, Entry, Live, Pending, Stage, Transition};
use crate::shard::{Decider, Shard};

/// The engine for reading and the moving part for writing. It cannot be held
/// while anything is awaited.
pub(crate) struct Desk<'a> {
    pub(crate) shard: &'a Shard,
    pub(crate) decider: RwLockReadGuard<'a, Decider>,
    pub(crate) live: MutexGuard<'a, Live>,
}

impl<'a> Desk<'a> {
    /// Lets go of the moving part.
    pub(crate) fn into_decider(self) -> RwLockReadGuard<'a, Decider> {
        self.decider
    }
}

impl Desk<'_> {
    pub(super) fn engine(&self) -> &Engine {
        &self.decider.engine
    }

    /// A machine as it is now.
    pub(crate) fn tracked(&self, machine: &MachineId) -> Option<Tracked> {
        match self.live.entries.get(machine) {
            Some(entry) if entry.gone => None,
            Some(entry) => Some(entry.tracked.clone()),
            None => self.engine().tracked(machine),
        }
    }

    /// Where a machine is now.
    pub(crate) fn state(&self, machine: &MachineId) -> Option<MachineState> {
        match self.live.entries.get(machine) {
            Some(entry) if entry.gone => None,
            Some(entry) => Some(entry.tracked.machine.state),
            None => self.engine().view(machine).map(|view| view.state()),
        }
    }

    /// The stamp that a machine carries now.
    pub(crate) fn stamp(&self, machine: &MachineId) -> Option<Arc<Stamp>> {
        match self.live.entries.get(machine) {
            Some(entry) if entry.gone => None,
            Some(entry) => entry.tracked.machine.stamp.clone(),
            None => self.engine().view(machine)?.stamp().map(Arc::new),
        }
    }

    /// The machine's entry, which is made of the engine's record if it rests.
    pub(super) fn open(&mut self, machine: &MachineId) -> Option<&mut Entry> {
        if !self.live.entries.contains_key(machine) {
            let tracked = self.decider.engine.tracked(machine)?;
            self.live.entries.insert(machine.clone(), Entry::new(tracked));
        }
        self.live.entries.get_mut(machine).filter(|entry| !entry.gone)
    }

    /// Begins an action. The caller has seen that the machine is in none.
    pub(crate) fn begin(&mut self, action: Action, decision: i64) {
        let machine = action.machine.clone();
        if let Some(entry) = self.open(&machine) {
            entry.pending = Some(Pending { action, decision, stage: Stage::Queued });
            entry.dirty = true;
        }
    }

    /// An action is over, whatever came of it. A List begun while it ran may have
    /// been read before the call arrived.
    pub(crate) fn end(&mut self, machine: &MachineId) {
        if let Some(entry) = self.live.entries.get_mut(machine) {
            entry.pending = None;
            entry.dirty = true;
        }
        self.live.touches.touch(machine);
        self.leave_if_lost(machine);
        self.shard.reconciler.look_soon();
    }

    /// Writes a machine's record.
    pub(crate) fn write(
        &mut self,
        machine: &MachineId,
        cause: Cause,
        decision: i64,
        change: impl FnOnce(&mut Tracked),
    ) {
        let Some(entry) = self.open(machine) else { return };
        let before = entry.tracked.clone();
        let before_of = entry.association().cloned();
        change(&mut entry.tracked);
        entry.dirty = true;
        debug_assert!(is_sound(&entry.tracked), "shard invariant 5: {:?}", entry.tracked);
        let after = entry.tracked.machine.clone();
        if cause == Cause::Decision {
            self.live.unsaid.insert(machine.clone());
        } else {
            self.live.unsaid.remove(machine);
        }
        self.live.touches.touch(machine);
        self.moved(&before.machine, before_of, &after, cause, decision);
    }

    /// Follows a change of state or binding.
    fn moved(
        &mut self,
        before: &Machine,
        before_of: Option<ClusterId>,
        after: &Machine,
        cause: Cause,
        decision: i64,
    ) {
        if (before.state, &before.cluster) == (after.state, &after.cluster) {
            return;
        }
        self.note(Some(before.state), after, cause, decision);
        self.shard.observe_move(&mut self.live, before, after);
        self.follow(after);
        if before.state == MachineState::Draining && after.state == MachineState::Idle {
            // The closing frame of a drain.
            if let Some(cluster) = before_of {
                self.live.told.remove(&after.id);
                self.tell(after, &cluster, true);
            }
            return;
        }
        self.tell_association(after, before_of);
    }

    pub(super) fn note(
        &mut self,
        from: Option<MachineState>,
        to: &Machine,
        cause: Cause,
        decision: i64,
    ) {
        let error = Some(to.last_error.as_str()).filter(|error| !error.is_empty());
        let transition = Transition {
            from,
            to: to.state,
            wall: self.shard.clock.wall(),
            cause,
            decision,
            error: error.map(Into::into),
            cluster: to.cluster.clone(),
        };
        self.live.history.note(&to.id, transition);
    }

    /// Keeps account of machines between two states.
    pub(super) fn follow(&mut self, machine: &Machine) {
        if Kind::running(machine.state).is_some() {
            self.live.passing.insert(machine.id.clone(), (machine.state, Instant::now()));
        } else {
            self.live.passing.remove(&machine.id);
        }
    }
}

impl Deref for Desk<'_> {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

/// What every record is like (§5): what passed the gate, and what only we can
/// break.
fn is_sound(tracked: &Tracked) -> bool {
    use MachineState::{Draining, Idle, Speculative};
    let machine = &tracked.machine;
    let bare = machine.cluster.is_none() && machine.stamp.is_none();
    match machine.state {
        Idle | Speculative => bare && tracked.drain.is_none(),
        Draining => machine.cluster.is_some(),
        _ => tracked.drain.is_none(),
    }
}
