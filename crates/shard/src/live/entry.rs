//! One machine that moves: its record, newer than the engine's, and the action
//! it is in.

use bigfleet_engine::{Action, ActionKind, Tracked};
use bigfleet_model::{ClusterId, Machine, MachineState};

/// A machine with what the engine does not know yet.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) tracked: Tracked,
    /// The one action it is in (R5).
    pub(crate) pending: Option<Pending>,
    /// The engine has not seen the record or the action as they are.
    pub(super) dirty: bool,
    /// Its provider dropped it.
    pub(super) gone: bool,
}

/// An action that is queued, executed or waited for.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) action: Action,
    /// Its number in the audit log.
    pub(crate) decision: i64,
    pub(crate) stage: Stage,
}

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In the queue.
    Queued,
    /// What is left of a purchase, for which the queue had no place.
    Unqueued,
    /// A worker has it.
    Running,
    /// The operator drains; no worker has it (§8).
    ReclaimWait,
}

impl Entry {
    pub(super) fn new(tracked: Tracked) -> Self {
        Self { tracked, pending: None, dirty: true, gone: false }
    }

    /// Whether its provider dropped it.
    pub(crate) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Which cluster the machine is of, or is coming to.
    pub(crate) fn association(&self) -> Option<&ClusterId> {
        let pending = self.pending.as_ref().map(|pending| &pending.action.kind);
        // What was bought and turned Idle is still its buyer's.
        let coming = || match pending {
            Some(ActionKind::Bootstrap(acquisition))
                if self.tracked.machine.state == MachineState::Idle =>
            {
                Some(&acquisition.cluster)
            }
            _ => None,
        };
        association(&self.tracked.machine).or_else(coming)
    }
}

/// Which cluster a machine is bound to or created for.
pub(crate) fn association(machine: &Machine) -> Option<&ClusterId> {
    let bought_for = || {
        let stamp = machine.stamp.as_ref().filter(|_| machine.state == MachineState::Creating)?;
        stamp.for_cluster.as_ref()
    };
    machine.cluster.as_ref().or_else(bought_for)
}
