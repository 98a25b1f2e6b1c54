//! Phase 3: reclaim and release (§8).

use std::time::Duration;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::{CapacityType, MachineState, grace::VOLUNTARY_GRACE, order::release_order};

use crate::{cycle::Cycle, need::lowers, phase2::Inversion};

/// Reclaims by cluster in release order, then deletes by id (§8).
pub(crate) fn reclaim(cycle: &Cycle<'_>, inversion: &Inversion) -> Vec<Action> {
    let action = |machine: usize, kind: ActionKind| Action {
        machine: cycle.machine(machine).id.clone(),
        kind,
        cost: cycle.price(machine),
        runner_up_cost: None,
        domain_rule: 0,
    };
    let mut actions = Vec::new();
    for cluster in &cycle.input.ready {
        let mut excess: Vec<usize> = cycle
            .all()
            .filter(|machine| {
                let record = cycle.machine(*machine);
                record.state == MachineState::Configured && record.cluster.as_ref() == Some(cluster)
            })
            .filter(|machine| cycle.is_left(*machine))
            .filter(|machine| inversion.victim_of[*machine].is_none())
            .filter(|machine| !awaited(cycle, *machine))
            .collect();
        excess.sort_by(|a, b| release_order(cycle.machine(*a), cycle.machine(*b)));
        actions.extend(excess.into_iter().map(|machine| {
            let kind = ActionKind::Reclaim { cluster: cluster.clone(), grace: VOLUNTARY_GRACE };
            action(machine, kind)
        }));
    }
    let held_long_enough = |machine: &usize| {
        let hold = hold(cycle, *machine);
        cycle.machine(*machine).state == MachineState::Idle
            && cycle.claimed_by[*machine].is_none()
            && !hold.is_zero()
            && cycle.machines[*machine]
                .idle_since
                .is_some_and(|since| cycle.input.now.since(since) >= hold)
    };
    let released = cycle.all().filter(held_long_enough);
    actions.extend(released.map(|machine| action(machine, ActionKind::Delete)));
    actions
}

/// How long an idle machine is kept; zero for ever (§2).
fn hold(cycle: &Cycle<'_>, machine: usize) -> Duration {
    match cycle.machine(machine).class.capacity_type {
        CapacityType::OnDemand => cycle.input.release.on_demand,
        CapacityType::Spot => cycle.input.release.spot,
        CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => {
            Duration::ZERO
        }
    }
}

/// Make before break (§8): kept for a need that outgrew its kind; or usable, in the
/// same domain, for a need of its cluster whose Configured claims alone leave a
/// residual that it would lower.
pub(crate) fn awaited(cycle: &Cycle<'_>, machine: usize) -> bool {
    let record = cycle.machine(machine);
    cycle.kept.contains(&machine)
        || (0..cycle.needs.len()).any(|need| {
            let prepared = &cycle.needs[need];
            record.cluster.as_ref() == Some(&prepared.cluster)
                && prepared.usable(record)
                && prepared.within(prepared.domain.as_ref(), record)
                && lowers(&cycle.unready_residual(need), &prepared.contribution(record))
        })
}
