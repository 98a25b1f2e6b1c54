//! What an operator knows of its machines and its needs, from frames alone.

use std::collections::BTreeMap;

use bigfleet_model::{Dimension, MachineState, Quantity, Resources};
use bigfleet_wire::v1alpha1::{
    self as wire, AvailableCapacityUpdate, NeedStatusUpdate, NodeStateUpdate,
};

/// A machine of this cluster.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where it stands.
    pub state: MachineState,
    /// What it can hold; what does not parse is left out.
    pub capacity: Resources,
    /// Its latest frame.
    pub frame: NodeStateUpdate,
    /// The session that brought it.
    pub session: u64,
}

/// A node that this operator made unschedulable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// By which instruction.
    pub instruction: String,
    /// In which session.
    pub session: u64,
    /// A frame since then showed the machine on its way out.
    pub seen_leaving: bool,
}

/// The derived picture of one cluster. It outlives sessions: what a new session
/// does not replay goes when that session says that its replay is complete.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// By machine id.
    pub machines: BTreeMap<String, Machine>,
    /// By machine id.
    pub cordons: BTreeMap<String, Cordon>,
    /// By `supersedes_key`.
    pub available: BTreeMap<String, AvailableCapacityUpdate>,
    /// By `supersedes_key`.
    pub needs: BTreeMap<String, NeedStatusUpdate>,
    /// This session's replay is complete.
    pub resynced: bool,
    /// Machine frames without an id or with a state of no known meaning.
    pub ignored: u64,
}

impl Picture {
    /// The machine's state, if it is this cluster's.
    #[must_use]
    pub fn state(&self, machine: &str) -> Option<MachineState> {
        self.machines.get(machine).map(|known| known.state)
    }

    /// Machines in this state.
    #[must_use]
    pub fn count(&self, state: MachineState) -> usize {
        self.machines.values().filter(|machine| machine.state == state).count()
    }

    /// Whether pods may be bound to it.
    #[must_use]
    pub fn schedulable(&self, machine: &str) -> bool {
        self.state(machine) == Some(MachineState::Configured) && !self.cordons.contains_key(machine)
    }

    /// How a need stands, as last told.
    #[must_use]
    pub fn need(&self, fingerprint: &str, group: &str) -> Option<&NeedStatusUpdate> {
        self.needs.get(&format!("need:{fingerprint}\0{group}"))
    }

    pub(super) fn begin_session(&mut self) {
        self.resynced = false;
        self.available.clear();
        self.needs.clear();
    }

    /// The replay is complete: what it left out is no longer ours. Only the
    /// first marker of a session says so.
    pub(super) fn resync(&mut self, session: u64) {
        if std::mem::replace(&mut self.resynced, true) {
            return;
        }
        self.machines.retain(|_, machine| machine.session == session);
        let machines = &self.machines;
        self.cordons.retain(|id, _| machines.contains_key(id));
    }

    pub(super) fn cordon(&mut self, machine: &str, instruction: &str, session: u64) {
        let cordon = Cordon { instruction: instruction.to_owned(), session, seen_leaving: false };
        self.cordons.insert(machine.to_owned(), cordon);
    }

    pub(super) fn node_state(&mut self, frame: NodeStateUpdate, session: u64) {
        let id = frame.machine_id.clone();
        let Some(state) = MachineState::from_wire(frame.state).filter(|_| !id.is_empty()) else {
            self.ignored += 1;
            return;
        };
        if frame.gone || self.has_left(&id, state) {
            self.machines.remove(&id);
            self.cordons.remove(&id);
            return;
        }
        if state == MachineState::Idle && !self.machines.contains_key(&id) {
            return;
        }
        if let Some(cordon) = self.cordons.get_mut(&id) {
            cordon.seen_leaving |= matches!(
                state,
                MachineState::Draining | MachineState::Idle | MachineState::Configuring
            );
        }
        let capacity = capacity(frame.resources.as_ref());
        self.machines.insert(id, Machine { state, capacity, frame, session });
    }

    /// Idle after having been ours, or on its way back to its provider.
    fn has_left(&self, id: &str, state: MachineState) -> bool {
        let was_here = matches!(
            self.state(id),
            Some(
                MachineState::Configuring
                    | MachineState::Configured
                    | MachineState::Draining
                    | MachineState::Failed
            )
        );
        state == MachineState::Deleting || (state == MachineState::Idle && was_here)
    }

    /// Lifts a cordon whose reclaim is over (kubernetes chapter §6.4): a
    /// CONFIGURED frame alone proves nothing, for instructions overtake frames.
    pub(super) fn uncordon(&mut self, id: &str, session: u64) {
        let (Some(machine), Some(cordon)) = (self.machines.get(id), self.cordons.get(id)) else {
            return;
        };
        let over = machine.frame.ended_instruction_id == cordon.instruction
            || cordon.session < session
            || cordon.seen_leaving;
        if machine.session == session && machine.state == MachineState::Configured && over {
            self.cordons.remove(id);
        }
    }
}

/// Never more than the machine has.
fn capacity(message: Option<&wire::Resources>) -> Resources {
    let entries = message.into_iter().flat_map(|message| &message.resources);
    entries
        .filter_map(|(name, text)| {
            let dimension = Dimension::intern(name).ok()?;
            let quantity: Quantity = text.parse().ok()?;
            Some((dimension, i64::try_from(quantity.millis_floor()).ok()?))
        })
        .collect()
}
