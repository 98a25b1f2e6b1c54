//! What is already under way counts as done (§3).

use bigfleet_engine::{Action, ActionKind, CycleInput, Drain, Tracked};
use bigfleet_model::MachineState;

/// Every machine by id, as it will be once the pending actions are visible (§3).
pub(crate) fn overlay(input: &CycleInput) -> Vec<Tracked> {
    let mut machines = input.snapshot.clone();
    machines.sort_by(|a, b| a.machine.id.cmp(&b.machine.id));
    let mut pending: Vec<&Action> = input.pending.iter().collect();
    // Two entries for one machine cannot come from one shard; should they, their
    // place in the list must not decide.
    pending.sort_by_cached_key(|action| (rank(&action.kind), format!("{:?}", action.kind)));
    for tracked in &mut machines {
        for action in &pending {
            if action.machine == tracked.machine.id && action.kind.start() == tracked.machine.state
            {
                apply(input, tracked, &action.kind);
            }
        }
    }
    machines
}

fn rank(kind: &ActionKind) -> u8 {
    match kind {
        ActionKind::Bootstrap(_) => 0,
        ActionKind::Provision(_) => 1,
        ActionKind::Preempt { .. } => 2,
        ActionKind::Reclaim { .. } => 3,
        ActionKind::Delete => 4,
    }
}

fn apply(input: &CycleInput, tracked: &mut Tracked, kind: &ActionKind) {
    let machine = &mut tracked.machine;
    match kind {
        ActionKind::Bootstrap(acquisition) => {
            machine.state = MachineState::Configuring;
            machine.cluster = Some(acquisition.cluster.clone());
            machine.stamp = Some(acquisition.stamp.clone());
        }
        ActionKind::Provision(acquisition) => {
            machine.state = MachineState::Creating;
            machine.stamp = Some(acquisition.stamp.clone());
        }
        ActionKind::Preempt { grace, preemptor_priority, preemptor, .. } => {
            machine.state = MachineState::Draining;
            tracked.drain = Some(Drain {
                deadline: Some(input.now.after(*grace)),
                preemptor_priority: Some(*preemptor_priority),
                preemptor: Some(preemptor.clone()),
            });
        }
        ActionKind::Reclaim { grace, .. } => {
            machine.state = MachineState::Draining;
            tracked.drain = Some(Drain {
                deadline: Some(input.now.after(*grace)),
                preemptor_priority: None,
                preemptor: None,
            });
        }
        ActionKind::Delete => machine.state = MachineState::Deleting,
    }
}
