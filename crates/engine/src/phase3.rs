//! Phase 3: reclaim what nobody needs, release what lies idle (§8).

use std::time::Duration;

use bigfleet_model::CapacityType;

use crate::{
    handle::{ClusterIx, MachineIx, RunIx},
    input::{ReleasePolicy, Time},
    phase2::{Inversions, Standing, excess_of, release_order},
    world::World,
};

/// Machines to reclaim, by cluster and inside it in release order: the dearest
/// first, so that a capped cycle frees the most money.
pub(crate) fn reclaim(
    world: &World,
    standing: &mut Standing,
    inversions: &Inversions,
    reclaimed: &mut Vec<MachineIx>,
) {
    let ready = |(_, cluster): &(ClusterIx, &crate::world::ClusterRow)| {
        cluster.ready && !cluster.open.is_empty()
    };
    let mut clusters: Vec<ClusterIx> =
        world.names.clusters.iter().filter(ready).map(|(number, _)| number).collect();
    clusters.sort_unstable_by_key(|cluster| world.names.clusters[*cluster].rank);
    let mut runs: Vec<RunIx> = Vec::new();
    for cluster in clusters {
        runs.clear();
        let open = &world.names.clusters[cluster].open;
        runs.extend(open.iter().filter(|run| {
            let row = &world.runs[**run];
            let left = row.members.len() - (row.claimed + row.doomed) as usize;
            left > 0 && !standing.is_awaited(world, cluster, row.class)
        }));
        if runs.is_empty() {
            continue;
        }
        let kept = standing.kept_in(world, cluster);
        let start = reclaimed.len();
        for run in &runs {
            let unwanted = excess_of(world, *run).rev();
            let goes = |one: &MachineIx| !inversions.is_victim(*one) && !kept.contains(one);
            reclaimed.extend(unwanted.filter(goes));
        }
        if runs.len() > 1 {
            reclaimed[start..].sort_unstable_by(|a, b| release_order(world, *a, *b));
        }
    }
}

/// Idle machines that nobody claimed for as long as their kind is held, by id.
pub(crate) fn release(
    world: &World,
    policy: &ReleasePolicy,
    now: Time,
    released: &mut Vec<MachineIx>,
) {
    let hold = |capacity_type: CapacityType| match capacity_type {
        CapacityType::OnDemand => policy.on_demand,
        CapacityType::Spot => policy.spot,
        CapacityType::Unspecified | CapacityType::BareMetal | CapacityType::Reserved => {
            Duration::ZERO
        }
    };
    let shortest = [policy.on_demand, policy.spot].into_iter().filter(|hold| !hold.is_zero()).min();
    let Some(shortest) = shortest else { return };
    for &(since, machine) in &world.idle {
        if now.since(since) < shortest {
            break;
        }
        let row = &world.machines.rows[machine];
        let hold = hold(world.classes[row.class].capacity_type());
        if row.claimant.is_none() && !hold.is_zero() && now.since(since) >= hold {
            released.push(machine);
        }
    }
    released.sort_unstable_by_key(|machine| world.machines.rows[*machine].label);
}
