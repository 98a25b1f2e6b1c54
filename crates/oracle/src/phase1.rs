//! Phase 1: assignment, one pass over tiers from highest to lowest (§6).

use std::collections::BTreeSet;

use crate::{credit::Free, cycle::Cycle, need::Prepared, order};

/// §6. Afterwards the cycle's needs are the prepared ones in §5 order.
pub(crate) fn assign(cycle: &mut Cycle<'_>, demand: Vec<Prepared>) {
    let mut prepared: Vec<usize> = Vec::new();
    let mut demand = demand.into_iter().peekable();
    while let Some(first) = demand.next() {
        let mut tier = vec![cycle.needs.len()];
        let precedence = order::precedence(&first);
        cycle.needs.push(first);
        while let Some(next) = demand.next_if(|next| order::precedence(next) == precedence) {
            tier.push(cycle.needs.len());
            cycle.needs.push(next);
        }
        prepared.extend(assign_tier(cycle, tier));
    }
    prepared.sort_by(|a, b| order::total(&cycle.needs[*a], &cycle.needs[*b]));
    credit_held(cycle, &prepared);
    number(cycle, &prepared);
}

/// Steps A, B and C of one tier; returns its prepared needs (§6).
fn assign_tier(cycle: &mut Cycle<'_>, mut tier: Vec<usize>) -> Vec<usize> {
    let folded = cycle.fold(&mut tier);
    let mut used = folded.used;
    let alone = |need: &usize| !folded.folds.contains(need) && !folded.members.contains(need);
    let of_kind = |cycle: &Cycle<'_>, same: bool, spread: bool| -> Vec<usize> {
        let kind = |need: &usize| {
            let need = &cycle.needs[*need];
            need.same() == same && need.spread().is_some() == spread
        };
        tier.iter().copied().filter(alone).filter(kind).collect()
    };
    let same = of_kind(cycle, true, false);
    let spread = of_kind(cycle, false, true);
    let plain = of_kind(cycle, false, false);
    let everybody = [&folded.folds[..], &same, &spread, &plain].concat();

    // A: the classes have credited while folding; gangs follow.
    for need in same.iter().copied() {
        let quiet = cycle.needs[need].quiet();
        let free = Free::at_first(quiet);
        cycle.choose_domain(&tier, need, free, &used);
        if cycle.needs[need].domain.is_some() {
            cycle.credit(&tier, need, free);
            if !quiet {
                used.extend(cycle.picks(need, &used).machines());
            }
        }
    }

    // B: spread and plain needs, then everybody from what tier-mates left.
    for need in [&spread[..], &plain].concat() {
        let free = Free::at_first(cycle.needs[need].quiet());
        cycle.credit(&tier, need, free);
    }
    for need in everybody.iter().copied() {
        cycle.keep_outgrown(need);
    }
    for need in everybody.iter().copied() {
        if cycle.needs[need].quiet() {
            continue;
        }
        if cycle.needs[need].same() && cycle.needs[need].domain.is_none() {
            cycle.choose_domain(&tier, need, Free::Everything, &used);
        }
        cycle.credit(&tier, need, Free::Everything);
    }

    // C: everybody acquires.
    for need in everybody.iter().copied() {
        if cycle.needs[need].quiet() || cycle.residual(need).is_zero() {
            continue;
        }
        let picks = cycle.picks(need, &BTreeSet::new());
        for pick in &picks.picks {
            cycle.claimed_by[pick.machine] = Some(need);
        }
        cycle.needs[need].picks = picks.picks;
        cycle.needs[need].spread_stopped = picks.spread_stopped;
        cycle.shed(need);
    }
    for need in spread {
        cycle.balance(need);
    }
    for need in everybody.iter().copied() {
        cycle.let_outgrown_go(need);
    }
    everybody
}

/// After the last tier each held, unparked need still short credits what nobody
/// in its cluster claimed (§4.3).
fn credit_held(cycle: &mut Cycle<'_>, prepared: &[usize]) {
    for need in prepared.iter().copied() {
        let prepared = &cycle.needs[need];
        if prepared.held.is_none() || prepared.parked || cycle.residual(need).is_zero() {
            continue;
        }
        if prepared.same() && prepared.domain.is_none() {
            cycle.choose_domain(&[], need, Free::Everything, &BTreeSet::new());
        }
        cycle.credit(&[], need, Free::Everything);
    }
}

/// Keeps the prepared needs only, each at its place in §5 order.
fn number(cycle: &mut Cycle<'_>, prepared: &[usize]) {
    let place = |old: usize| prepared.iter().position(|need| *need == old);
    for of in [&mut cycle.claimed_by, &mut cycle.outgrown_by] {
        *of = of.iter().map(|claim| claim.and_then(place)).collect();
    }
    cycle.needs = prepared.iter().map(|need| cycle.needs[*need].clone()).collect();
}
