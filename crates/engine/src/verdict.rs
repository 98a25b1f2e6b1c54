//! How every prepared need fared, and how long gangs have been hopeless (§4.1, §9).

use std::collections::BTreeMap;

use bigfleet_model::MachineState;

use crate::{
    decide::key_of,
    input::{GangKey, HeldBack, NoAcquire},
    output::{Detail, Outcome, Reason, Verdict},
    phase1::{Constraint, Prepared, lowers},
    phase2::{Inversions, Resolution},
    world::{RunKind, World},
};

/// Verdicts in serving order, and the ages for the next cycle.
pub(crate) fn judge(
    world: &World<'_>,
    prepared: &[Prepared],
    inversions: &Inversions,
) -> (Vec<Verdict>, BTreeMap<GangKey, u32>) {
    let mut resolutions: Vec<Option<&Resolution>> = vec![None; prepared.len()];
    for resolution in &inversions.resolutions {
        resolutions[resolution.need] = Some(resolution);
    }
    let held_back = held_back(world);
    let mut ages = BTreeMap::new();
    let mut verdicts = Vec::with_capacity(prepared.len());
    for (need, resolution) in prepared.iter().zip(resolutions) {
        let verdict = verdict(world, need, resolution, &held_back);
        if verdict.gang_age > 0 {
            let key = GangKey {
                cluster: verdict.cluster.clone(),
                group: verdict.group.clone(),
                fingerprint: verdict.fingerprint.clone(),
            };
            ages.insert(key, verdict.gang_age);
        }
        verdicts.push(verdict);
    }
    (verdicts, ages)
}

/// Machines that would be acquirable if they were not held back.
fn held_back(world: &World<'_>) -> Vec<(HeldBack, usize)> {
    let acquirable = world.machines.iter().filter(|row| match row.state {
        MachineState::Idle | MachineState::Speculative => true,
        MachineState::Creating => row.stamp.is_none(),
        _ => false,
    });
    acquirable.filter_map(|row| Some((row.held_back?, row.class))).collect()
}

fn verdict(
    world: &World<'_>,
    need: &Prepared,
    resolution: Option<&Resolution>,
    held_back: &[(HeldBack, usize)],
) -> Verdict {
    let key = key_of(world, need);
    let deficit = need.residual();
    let satisfied = deficit.is_zero();
    let closed = resolution.is_some_and(|resolution| resolution.residual.is_zero());
    let provision = need.picked(world, RunKind::Speculative);
    let profile = world.profiles.row(need.profile);
    let supply = (0..world.classes.len())
        .any(|class| profile.matches[class] && world.capacity(class).covers(&need.unit));
    let reason = (!satisfied).then(|| {
        let hopeless =
            need.parked || (need.held.is_none() && (!need.satisfiable || need.domain.is_none()));
        if need.constraint == Constraint::Same && !closed && hopeless {
            Reason::TopologyUnsatisfiable
        } else if !supply {
            Reason::NoMatchingSupply
        } else if need.spread_stopped {
            Reason::TopologyUnsatisfiable
        } else if resolution.is_some_and(|r| r.preempted) && !closed {
            Reason::PreemptionExhausted
        } else {
            Reason::PriorityStarved
        }
    });
    let outcome = if !satisfied {
        Outcome::Unsatisfied
    } else if provision > 0 {
        Outcome::EmittedSpec
    } else if need.picked(world, RunKind::Idle) > 0 {
        Outcome::EmittedIdle
    } else {
        Outcome::AbsorbedBySupply
    };
    Verdict {
        cluster: key.cluster,
        fingerprint: key.fingerprint,
        group: key.group,
        aggregate: need.aggregate.clone(),
        min_unit: need.unit.clone(),
        folded: if need.is_fold() { need.members.len() as u32 } else { 0 },
        satisfied,
        claimed: need.claims().count() as u32,
        bootstrap: need.picked(world, RunKind::Idle) as u32,
        provision: provision as u32,
        domain: need
            .domain
            .filter(|_| need.constraint == Constraint::Same)
            .map(|domain| profile.domain_values(domain)),
        satisfiable: need.satisfiable,
        parked: need.parked,
        matching_supply_exists: supply,
        gang_age: gang_age(world, need, satisfied, closed),
        outcome,
        reason,
        detail: if satisfied { None } else { detail(world, need, closed, held_back) },
        deficit,
    }
}

/// A gang that neither acquires nor could be hosted grows older; its age stands
/// still while it is held.
fn gang_age(world: &World<'_>, need: &Prepared, satisfied: bool, closed: bool) -> u32 {
    if need.constraint != Constraint::Same || satisfied {
        return 0;
    }
    let age = world.needs[need.members[0]].age;
    if need.held.is_some() {
        age
    } else if !need.picks.is_empty() || need.satisfiable || closed {
        0
    } else {
        age.saturating_add(1)
    }
}

fn detail(
    world: &World<'_>,
    need: &Prepared,
    closed: bool,
    held_back: &[(HeldBack, usize)],
) -> Option<Detail> {
    match need.held {
        Some(NoAcquire::NoSession) => return Some(Detail::NoSession),
        Some(NoAcquire::BootstrapRefused) => return Some(Detail::BootstrapRefused),
        None => {}
    }
    if need.spread_stopped {
        return Some(Detail::SpreadUnsatisfiable);
    }
    let residual = need.residual();
    let would_serve = |wanted: HeldBack| {
        held_back.iter().any(|&(why, class)| {
            why == wanted
                && need.usable(world, class)
                // A machine without the key of a spread is no candidate.
                && (need.constraint != Constraint::Spread
                    || need.spread_domain(world, class).is_some())
                && lowers(&residual, &need.contribution(world.capacity(class)))
        })
    };
    if would_serve(HeldBack::ProviderFailing) {
        Some(Detail::ProviderFailing)
    } else if would_serve(HeldBack::Quota) {
        Some(Detail::QuotaExhausted)
    } else if closed {
        Some(Detail::PreemptionUnderWay)
    } else {
        None
    }
}
