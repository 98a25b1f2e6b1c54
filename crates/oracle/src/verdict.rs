//! Verdicts, ages and the output in its order (§9, §4.1, §17).

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::{
    Action, ActionKind, CycleOutput, Detail, GangKey, HeldBack, NoAcquire, Outcome, Reason,
    Unresolved, Verdict, action::Acquisition, output::NeedIdx,
};
use bigfleet_model::{MachineId, MachineState};

use crate::{
    cycle::Cycle,
    need::Domain,
    phase2::{Inversion, grace},
    prepare::gang_key,
};

/// Merges the phases (§3, §17).
pub(crate) fn output(
    cycle: &Cycle<'_>,
    inversion: &Inversion,
    reclaim: Vec<Action>,
) -> CycleOutput {
    let gang_ages = ages(cycle, inversion);
    let needs = 0..cycle.needs.len();
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(needs.clone().flat_map(|need| acquisitions(cycle, need)));
    actions.extend(needs.clone().flat_map(|need| preempts(cycle, inversion, need)));
    actions.extend(reclaim);
    CycleOutput {
        verdicts: needs.map(|need| verdict(cycle, inversion, &gang_ages, need)).collect(),
        claims: by_machine(cycle, &cycle.claimed_by),
        outgrown: by_machine(cycle, &cycle.outgrown_by),
        actions,
        unresolved: inversion
            .unresolved
            .iter()
            .map(|(need, deficit)| Unresolved {
                need: number(*need),
                deficit: deficit.clone(),
                preempted: inversion.preempted(*need),
            })
            .collect(),
        gang_ages,
    }
}

fn by_machine(cycle: &Cycle<'_>, of: &[Option<usize>]) -> BTreeMap<MachineId, NeedIdx> {
    let pair = |machine: usize| Some((cycle.machine(machine).id.clone(), number(of[machine]?)));
    cycle.all().filter_map(pair).collect()
}

fn number(need: usize) -> NeedIdx {
    NeedIdx(u32::try_from(need).unwrap_or(u32::MAX))
}

/// Bootstraps and Provisions of one need by machine id (§17).
fn acquisitions(cycle: &Cycle<'_>, need: usize) -> Vec<Action> {
    let prepared = &cycle.needs[need];
    let stamp = Arc::new(prepared.stamp());
    let mut picks: Vec<_> = prepared.picks.iter().collect();
    picks.sort_by_key(|pick| pick.machine);
    picks
        .into_iter()
        .filter_map(|pick| {
            let acquisition = Acquisition {
                cluster: prepared.cluster.clone(),
                stamp: stamp.clone(),
                need: number(need),
            };
            let kind = match cycle.machine(pick.machine).state {
                MachineState::Idle => ActionKind::Bootstrap(acquisition),
                MachineState::Speculative => ActionKind::Provision(acquisition),
                // A reserved Creating machine: claimed, and nothing to do (§6.2).
                _ => return None,
            };
            Some(Action {
                machine: cycle.machine(pick.machine).id.clone(),
                kind,
                cost: pick.cost,
                runner_up_cost: pick.runner_up,
                domain_rule: prepared.domain_rule,
            })
        })
        .collect()
}

/// Preempts for one need by machine id (§7, §17).
fn preempts(cycle: &Cycle<'_>, inversion: &Inversion, need: usize) -> Vec<Action> {
    let prepared = &cycle.needs[need];
    cycle
        .all()
        .filter(|machine| inversion.victim_of[*machine] == Some(need))
        .filter_map(|machine| {
            let record = cycle.machine(machine);
            Some(Action {
                machine: record.id.clone(),
                kind: ActionKind::Preempt {
                    cluster: record.cluster.clone()?,
                    grace: grace(cycle, need, machine),
                    preemptor_priority: prepared.profile.priority(),
                    preemptor: prepared.key(),
                    need: number(need),
                },
                cost: cycle.price(machine),
                runner_up_cost: None,
                domain_rule: 0,
            })
        })
        .collect()
}

/// Phase 2 closed what Phase 1 left open.
fn closed(cycle: &Cycle<'_>, inversion: &Inversion, need: usize) -> bool {
    !cycle.residual(need).is_zero() && !inversion.unresolved.contains_key(&need)
}

/// Ages after this cycle. Keys not named here are forgotten (§4.1, §4.3).
fn ages(cycle: &Cycle<'_>, inversion: &Inversion) -> BTreeMap<GangKey, u32> {
    let mut ages = BTreeMap::new();
    for (number, need) in cycle.needs.iter().enumerate() {
        if !need.same() || cycle.residual(number).is_zero() {
            continue;
        }
        let key = gang_key(need);
        if need.held.is_some() {
            // Stands still.
            if let Some(age) = cycle.input.gang_ages.get(&key) {
                ages.insert(key, *age);
            }
        } else if need.picks.is_empty() && !need.satisfiable && !closed(cycle, inversion, number) {
            ages.insert(key, need.age.saturating_add(1));
        }
    }
    ages
}

/// §9.
fn verdict(
    cycle: &Cycle<'_>,
    inversion: &Inversion,
    ages: &BTreeMap<GangKey, u32>,
    need: usize,
) -> Verdict {
    let prepared = &cycle.needs[need];
    let deficit = cycle.residual(need);
    let satisfied = deficit.is_zero();
    let picked = |state: MachineState| {
        let picks = prepared.picks.iter();
        count(picks.filter(|pick| cycle.machine(pick.machine).state == state).count())
    };
    let (bootstrap, provision) = (picked(MachineState::Idle), picked(MachineState::Speculative));
    let domain = domain(cycle, inversion, need);
    let age = if prepared.same() { ages.get(&gang_key(prepared)).copied() } else { None };
    Verdict {
        cluster: prepared.cluster.clone(),
        fingerprint: prepared.profile.fingerprint().clone(),
        group: prepared.group.clone(),
        aggregate: prepared.aggregate.clone(),
        min_unit: prepared.min_unit.clone(),
        folded: count(prepared.members.len()),
        satisfied,
        claimed: count(cycle.claims(need).len()),
        bootstrap,
        provision,
        domain: domain.map(|values| {
            let keys = prepared.same_keys().into_iter().map(str::to_owned);
            keys.zip(values.iter().cloned()).collect()
        }),
        satisfiable: prepared.satisfiable,
        parked: prepared.parked,
        matching_supply_exists: matching_supply_exists(cycle, need),
        gang_age: age.unwrap_or(0),
        outcome: if !satisfied {
            Outcome::Unsatisfied
        } else if provision > 0 {
            Outcome::EmittedSpec
        } else if bootstrap > 0 {
            Outcome::EmittedIdle
        } else {
            Outcome::AbsorbedBySupply
        },
        reason: (!satisfied).then(|| reason(cycle, inversion, need)),
        detail: if satisfied { None } else { detail(cycle, inversion, need) },
        deficit,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The recorded domain: of Phase 1, or taken in Phase 2 (§6.3, §7).
fn domain<'a>(cycle: &'a Cycle<'_>, inversion: &'a Inversion, need: usize) -> Option<&'a Domain> {
    cycle.needs[need].domain.as_ref().or_else(|| inversion.domains.get(&need))
}

/// Any machine in any state, any cluster, usable for it (§9).
fn matching_supply_exists(cycle: &Cycle<'_>, need: usize) -> bool {
    cycle.all().any(|machine| cycle.usable(need, machine))
}

/// First that applies (§9).
fn reason(cycle: &Cycle<'_>, inversion: &Inversion, need: usize) -> Reason {
    let prepared = &cycle.needs[need];
    let hopeless = !prepared.satisfiable || domain(cycle, inversion, need).is_none();
    if prepared.same()
        && !closed(cycle, inversion, need)
        && (prepared.parked || (prepared.held.is_none() && hopeless))
    {
        Reason::TopologyUnsatisfiable
    } else if !matching_supply_exists(cycle, need) {
        Reason::NoMatchingSupply
    } else if prepared.spread_stopped {
        Reason::TopologyUnsatisfiable
    } else if inversion.unresolved.contains_key(&need) && inversion.preempted(need) {
        Reason::PreemptionExhausted
    } else {
        Reason::PriorityStarved
    }
}

/// First that applies, else none (§9).
fn detail(cycle: &Cycle<'_>, inversion: &Inversion, need: usize) -> Option<Detail> {
    let prepared = &cycle.needs[need];
    let lost_to = |why: HeldBack| would_be_candidate(cycle, inversion, need, why);
    match prepared.held {
        Some(NoAcquire::NoSession) => Some(Detail::NoSession),
        Some(NoAcquire::BootstrapRefused) => Some(Detail::BootstrapRefused),
        None if prepared.spread_stopped => Some(Detail::SpreadUnsatisfiable),
        None if lost_to(HeldBack::ProviderFailing) => Some(Detail::ProviderFailing),
        None if lost_to(HeldBack::Quota) => Some(Detail::QuotaExhausted),
        None if closed(cycle, inversion, need) => Some(Detail::PreemptionUnderWay),
        None => None,
    }
}

/// Some machine held back for this reason would be a candidate that lowers the
/// residual; for a gang in its domain, if it has one (§9).
fn would_be_candidate(
    cycle: &Cycle<'_>,
    inversion: &Inversion,
    need: usize,
    why: HeldBack,
) -> bool {
    let prepared = &cycle.needs[need];
    let residual = cycle.residual(need);
    let domain = domain(cycle, inversion, need);
    cycle.all().any(|machine| {
        let record = cycle.machine(machine);
        cycle.input.held_back.get(&record.id) == Some(&why)
            && cycle.claimed_by[machine].is_none()
            && cycle.acquirable_state(machine)
            && cycle.usable(need, machine)
            && cycle.lowers(need, machine, &residual)
            && (prepared.spread().is_none() || cycle.spread_value(need, machine).is_some())
            && (domain.is_none() || prepared.within(domain, record))
    })
}
