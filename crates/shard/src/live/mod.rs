//! The inventory's moving part. Half a million machines rest in the engine's own
//! arrays, which nobody writes between two cycles; what moves meanwhile, and what
//! only this process knows of it, is here until the next cycle takes it in.
//!
//! All of it is behind one lock that is held for memory work only. Whoever writes
//! a machine holds the engine for reading, too: see [`Desk`].

mod adopt;
mod backoff;
mod desk;
mod entry;
pub(crate) mod frame;
mod history;
mod hold;
mod tell;
mod touch;

use bigfleet_engine::{Engine, HeldBack, NeedKey};
use bigfleet_model::{ClusterId, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use tokio::time::Instant;

pub(crate) use adopt::Adopted;
pub(crate) use backoff::Backoffs;
pub(crate) use desk::Desk;
pub(crate) use entry::{Entry, Pending, Stage};
pub(crate) use history::{Cause, History, Transition};
pub(crate) use hold::Hold;
pub(crate) use touch::{Begun, Touches};

type Map<V> = HashMap<MachineId, V, RandomState>;

/// Everything about machines that the engine does not hold.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Machines that moved since the last cycle, or that are in an action.
    pub(crate) entries: Map<Entry>,
    pub(crate) touches: Touches,
    /// Calls without an answer.
    pub(crate) holds: Map<Hold>,
    pub(crate) backoffs: Backoffs,
    pub(crate) history: History,
    /// Machines between two states, and since when.
    pub(crate) passing: Map<(MachineState, Instant)>,
    /// Machines between two states by our own word: their provider has not said so.
    pub(crate) unsaid: HashSet<MachineId, RandomState>,
    /// Which cluster was last told of a machine that is not bound to it.
    pub(crate) told: Map<ClusterId>,
    /// The last instruction of a machine that is over (§8).
    pub(crate) ended: Map<String>,
    /// Machines whose provider cannot delete them.
    pub(crate) undeletable: HashSet<MachineId, RandomState>,
    /// Ids that an incremental List told and we did not take in (§9 step 2).
    pub(crate) unread: HashSet<MachineId, RandomState>,
    /// Needs without a Configured machine so far, and when they were first rolled up.
    pub(crate) awaiting: HashMap<NeedKey, Instant, RandomState>,
    /// Machines known when the engine was last looked at.
    first_list_done: bool,
}

impl Live {
    /// The machine's entry, if it moves.
    pub(crate) fn entry(&self, machine: &MachineId) -> Option<&Entry> {
        self.entries.get(machine)
    }

    /// The action that a machine is in.
    pub(crate) fn pending(&self, machine: &MachineId) -> Option<&Pending> {
        self.entries.get(machine)?.pending.as_ref()
    }

    /// The action that a machine is in. Whoever changes it wants the engine to know.
    pub(crate) fn pending_mut(&mut self, machine: &MachineId) -> Option<&mut Pending> {
        let entry = self.entries.get_mut(machine)?;
        entry.dirty = true;
        entry.pending.as_mut()
    }

    /// Any action is queued, executed or waited for.
    pub(crate) fn anything_pending(&self) -> bool {
        self.entries.values().any(|entry| entry.pending.is_some())
    }

    /// The provider has been read once, so that what is missing is known to be.
    pub(crate) const fn is_reconciled(&self) -> bool {
        self.first_list_done
    }

    /// The first List is in.
    pub(crate) const fn set_reconciled(&mut self) {
        self.first_list_done = true;
    }

    /// Gives the engine what it has not seen, and forgets what rests again. `otherwise`:
    /// why a machine is held back that does not fail any more.
    pub(crate) fn absorb(
        &mut self,
        engine: &mut Engine,
        otherwise: impl Fn(&MachineId) -> Option<HeldBack>,
    ) {
        let mut seen = Vec::new();
        for (machine, entry) in &mut self.entries {
            if !std::mem::take(&mut entry.dirty) {
                continue;
            }
            if entry.gone {
                engine.remove(machine);
                continue;
            }
            let pending = entry.pending.as_ref();
            seen.push((&entry.tracked, pending.map(|pending| &pending.action)));
        }
        engine.upsert_all(&seen);
        self.entries.retain(|_, entry| entry.pending.is_some() && !entry.gone);
        self.backoffs.changes(|machine, held| {
            let why = if held { Some(HeldBack::ProviderFailing) } else { otherwise(machine) };
            engine.hold_back(machine, why);
        });
    }

    /// A machine is forgotten with everything about it but its history.
    fn forget(&mut self, machine: &MachineId) {
        self.holds.remove(machine);
        self.backoffs.clear(machine);
        self.passing.remove(machine);
        self.unsaid.remove(machine);
        self.told.remove(machine);
        self.ended.remove(machine);
        self.undeletable.remove(machine);
        self.unread.remove(machine);
    }
}
