//! What happened to machines lately, for whoever asks (wire chapter §5.1).

use std::{collections::VecDeque, sync::Arc};

use bigfleet_model::{ClusterId, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Transitions kept of one machine.
const OF_MACHINE: usize = 32;
/// Transitions kept in all: what is older is forgotten machine by machine.
const IN_ALL: usize = 1 << 19;

/// Why a machine moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A worker began an action.
    Decision,
    /// The provider's answer to a call.
    Ack,
    /// The provider's record.
    Reconcile,
    /// An action was given up before the provider was touched.
    Rollback,
    /// The provider's record, against the order of states.
    Forced,
    /// First sight.
    Ingest,
}

impl Cause {
    /// As it travels.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Ack => "ack",
            Self::Reconcile => "reconcile",
            Self::Rollback => "rollback",
            Self::Forced => "forced",
            Self::Ingest => "ingest",
        }
    }
}

/// One move.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    /// None at first sight.
    pub(crate) from: Option<MachineState>,
    pub(crate) to: MachineState,
    /// Unix nanoseconds.
    pub(crate) wall: i64,
    pub(crate) cause: Cause,
    /// The decision behind it; 0 if none.
    pub(crate) decision: i64,
    pub(crate) error: Option<Arc<str>>,
    pub(crate) cluster: Option<ClusterId>,
}

/// The last moves of machines that moved. First sights at start are not kept:
/// half a million machines would be, and tell nothing.
#[derive(Debug, Default)]
pub(crate) struct History {
    of: HashMap<MachineId, VecDeque<Transition>, RandomState>,
    /// Whose oldest transition is the next to be forgotten.
    order: VecDeque<MachineId>,
}

impl History {
    pub(crate) fn note(&mut self, machine: &MachineId, transition: Transition) {
        let moves = self.of.entry_ref(machine).or_default();
        if moves.len() == OF_MACHINE {
            moves.pop_front();
        }
        moves.push_back(transition);
        self.order.push_back(machine.clone());
        while self.order.len() > IN_ALL {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) {
        let Some(machine) = self.order.pop_front() else { return };
        if let Some(moves) = self.of.get_mut(&machine) {
            // Full ones have forgotten by themselves.
            if moves.len() < OF_MACHINE {
                moves.pop_front();
            }
            if moves.is_empty() {
                self.of.remove(&machine);
            }
        }
    }

    /// Oldest first.
    pub(crate) fn of(&self, machine: &MachineId) -> impl Iterator<Item = &Transition> {
        self.of.get(machine).into_iter().flatten()
    }

    /// Since when it is where it is, if it moved in living memory.
    pub(crate) fn since(&self, machine: &MachineId) -> Option<i64> {
        let moves = self.of.get(machine)?;
        moves.back().map(|last| last.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(to: MachineState, wall: i64) -> Transition {
        Transition {
            from: None,
            to,
            wall,
            cause: Cause::Ack,
            decision: 0,
            error: None,
            cluster: None,
        }
    }

    #[test]
    fn the_last_32_of_a_machine_are_kept() {
        let mut history = History::default();
        let machine = MachineId::from("m");
        (0..40).for_each(|wall| history.note(&machine, to(MachineState::Idle, wall)));
        let walls: Vec<i64> = history.of(&machine).map(|one| one.wall).collect();
        assert_eq!(walls, (8..40).collect::<Vec<i64>>());
        assert_eq!(history.since(&machine), Some(39));
    }
}
