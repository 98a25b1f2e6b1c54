//! What is queued or executing but not yet visible in machine state (§3).
//! Without it slow actuation would be decided again every cycle.

use bigfleet_model::{ClusterId, MachineId, MachineState, Stamp};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::{
    action::{Action, ActionKind},
    input::{CycleInput, Drain, NeedKey, Time, Tracked},
};

/// A machine as the cycle sees it.
pub(super) struct Seen<'a> {
    pub(super) state: MachineState,
    pub(super) cluster: Option<&'a ClusterId>,
    pub(super) stamp: Option<&'a Stamp>,
    pub(super) drain: Option<SeenDrain<'a>>,
}

/// A drain as the cycle sees it.
pub(super) struct SeenDrain<'a> {
    pub(super) deadline: Option<Time>,
    pub(super) preemptor_priority: Option<i32>,
    pub(super) preemptor: Option<&'a NeedKey>,
}

impl<'a> From<&'a Drain> for SeenDrain<'a> {
    fn from(drain: &'a Drain) -> Self {
        Self {
            deadline: drain.deadline,
            preemptor_priority: drain.preemptor_priority,
            preemptor: drain.preemptor.as_ref(),
        }
    }
}

/// Pending actions by machine, in an order of their own where there are several.
pub(super) struct Overlay<'a> {
    by_machine: HashMap<&'a MachineId, SmallVec<[&'a Action; 1]>, FixedState>,
    now: Time,
}

/// Orders what should not be there twice.
fn order(action: &Action) -> (u8, String) {
    let rank = match action.kind {
        ActionKind::Bootstrap(_) => 0,
        ActionKind::Provision(_) => 1,
        ActionKind::Preempt { .. } => 2,
        ActionKind::Reclaim { .. } => 3,
        ActionKind::Delete => 4,
    };
    (rank, format!("{action:?}"))
}

impl<'a> Overlay<'a> {
    pub(super) fn of(input: &'a CycleInput) -> Self {
        let mut by_machine: HashMap<_, SmallVec<[&'a Action; 1]>, _> = HashMap::default();
        for action in &input.pending {
            by_machine.entry(&action.machine).or_default().push(action);
        }
        for actions in by_machine.values_mut().filter(|actions| actions.len() > 1) {
            actions.sort_by_cached_key(|action| order(action));
        }
        Self { by_machine, now: input.now }
    }

    /// An entry whose machine has left the action's start state changes nothing.
    pub(super) fn apply(&self, tracked: &'a Tracked) -> Seen<'a> {
        let machine = &tracked.machine;
        let as_it_is = Seen {
            state: machine.state,
            cluster: machine.cluster.as_ref(),
            stamp: machine.stamp.as_deref(),
            drain: tracked.drain.as_ref().map(SeenDrain::from),
        };
        let mut pending = self.by_machine.get(&machine.id).into_iter().flatten();
        let Some(action) = pending.find(|action| action.kind.start() == machine.state) else {
            return as_it_is;
        };
        match &action.kind {
            ActionKind::Bootstrap(acquisition) => Seen {
                state: MachineState::Configuring,
                cluster: Some(&acquisition.cluster),
                stamp: Some(&acquisition.stamp),
                drain: None,
            },
            ActionKind::Provision(acquisition) => Seen {
                state: MachineState::Creating,
                cluster: None,
                stamp: Some(&acquisition.stamp),
                drain: None,
            },
            ActionKind::Preempt { grace, preemptor_priority, preemptor, .. } => Seen {
                state: MachineState::Draining,
                drain: Some(SeenDrain {
                    deadline: Some(self.now.after(*grace)),
                    preemptor_priority: Some(*preemptor_priority),
                    preemptor: Some(preemptor),
                }),
                ..as_it_is
            },
            ActionKind::Reclaim { grace, .. } => Seen {
                state: MachineState::Draining,
                drain: Some(SeenDrain {
                    deadline: Some(self.now.after(*grace)),
                    preemptor_priority: None,
                    preemptor: None,
                }),
                ..as_it_is
            },
            ActionKind::Delete => Seen { state: MachineState::Deleting, ..as_it_is },
        }
    }
}
