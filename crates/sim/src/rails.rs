//! The reclaim cap (engine chapter §12): it slows the answer, never changes it.

use std::collections::BTreeMap;

use bigfleet_engine::{Action, ActionKind, CycleInput};
use bigfleet_model::{ClusterId, Machine, MachineState};

/// How many Reclaims of one cluster a cycle may carry out.
fn cap(fraction: f64, configured: usize) -> usize {
    ((fraction * configured as f64).floor() as usize).max(1)
}

/// What is carried out: of each cluster's Reclaims the head of the emitted order.
pub(crate) fn capped(fraction: Option<f64>, input: &CycleInput, actions: &[Action]) -> Vec<Action> {
    let Some(fraction) = fraction else { return actions.to_vec() };
    let mut left: BTreeMap<ClusterId, usize> = BTreeMap::new();
    let keeps = |action: &&Action| {
        let ActionKind::Reclaim { cluster, .. } = &action.kind else { return true };
        let budget = left.entry(cluster.clone()).or_insert_with(|| {
            let serves = |machine: &Machine| {
                machine.state == MachineState::Configured
                    && machine.cluster.as_ref() == Some(cluster)
            };
            cap(fraction, input.snapshot.iter().filter(|one| serves(&one.machine)).count())
        });
        let goes = *budget > 0;
        *budget = budget.saturating_sub(1);
        goes
    };
    actions.iter().filter(keeps).cloned().collect()
}
