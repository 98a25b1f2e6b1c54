//! Phase 3: reclaim what nobody needs, release what lies idle (§8).

use std::time::Duration;

use bigfleet_model::{CapacityType, MachineState};

use crate::{
    phase2::{Inversions, Standing},
    world::World,
};

/// Machines to reclaim, by cluster and inside it in release order: the dearest
/// first, so that a capped cycle frees the most money.
pub(crate) fn reclaim(
    world: &World<'_>,
    standing: &Standing,
    inversions: &Inversions,
) -> Vec<usize> {
    let mut is_victim = vec![false; world.machines.len()];
    for victim in &inversions.victims {
        is_victim[victim.machine] = true;
    }
    let mut reclaimed: Vec<usize> = standing
        .excess
        .iter()
        .copied()
        .filter(|&at| !is_victim[at] && !standing.awaited[at])
        .collect();
    // Stable: inside a cluster the release order stays.
    reclaimed.sort_by_key(|at| world.machines[*at].cluster);
    reclaimed
}

/// Idle machines that nobody claimed for as long as their kind is held.
pub(crate) fn release(world: &World<'_>, standing: &Standing) -> Vec<usize> {
    let policy = &world.input.release;
    let hold = |capacity_type: CapacityType| match capacity_type {
        CapacityType::OnDemand => policy.on_demand,
        CapacityType::Spot => policy.spot,
        CapacityType::Unspecified | CapacityType::BareMetal | CapacityType::Reserved => {
            Duration::ZERO
        }
    };
    let is_due = |&at: &usize| {
        let row = &world.machines[at];
        let hold = hold(world.classes[row.class].capacity_type);
        row.state == MachineState::Idle
            && standing.claimed_by[at].is_none()
            && !hold.is_zero()
            && row.idle_since.is_some_and(|since| world.input.now.since(since) >= hold)
    };
    (0..world.machines.len()).filter(is_due).collect()
}
