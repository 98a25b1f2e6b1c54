//! Explanations of one need.

use std::collections::BTreeMap;

use bigfleet_engine::{ActionKind, CycleInput, Engine, Funnel, NeedKey};
use bigfleet_model::{Attributes, MachineState, Need};
use bigfleet_oracle::worlds;

use crate::{
    decided,
    plain::{Plain, capacity, in_order, units, usable},
    seeds,
};

/// The funnel, machine by machine.
fn funnel(plain: &Plain<'_>, need: &Need, claimed: u32) -> Funnel {
    let mut funnel = Funnel { claimed, ..Funnel::default() };
    for tracked in &plain.input.snapshot {
        let machine = &tracked.machine;
        funnel.matching += u32::from(need.profile.matches(&*machine.class));
        if !usable(need, tracked) {
            continue;
        }
        funnel.usable += 1;
        let (state, cluster, _) = plain.seen(tracked);
        let held_back = plain.input.held_back.contains_key(&machine.id);
        let taken = plain.output.claims.contains_key(&machine.id);
        *match state {
            MachineState::Configured | MachineState::Configuring => {
                if cluster.as_ref() == Some(&need.cluster) {
                    &mut funnel.bound_here
                } else {
                    &mut funnel.bound_elsewhere
                }
            }
            MachineState::Idle | MachineState::Speculative if held_back => &mut funnel.held_back,
            MachineState::Idle | MachineState::Speculative if taken => &mut funnel.taken,
            MachineState::Idle => &mut funnel.idle_free,
            MachineState::Speculative => &mut funnel.speculative_free,
            MachineState::Failed => &mut funnel.failed,
            _ => &mut funnel.in_transition,
        } += 1;
    }
    funnel
}

#[test]
fn a_funnel_sums_exactly_to_what_is_usable() {
    for seed in seeds() {
        let (input, engine, output) = decided(seed);
        let plain = Plain { input: &input, output: &output };
        let reader = engine.reader();
        for need in &input.demand {
            let key = NeedKey::of(need);
            let told = reader.funnel(&key).unwrap();
            assert_eq!(told.split(), told.usable, "seed {seed}");
            let claimed = reader.row(&key).unwrap().verdict.claimed;
            assert_eq!(told, funnel(&plain, need, claimed), "seed {seed}: {key:?}");
            let supply = reader.supply(&key).unwrap();
            for state in [MachineState::Idle, MachineState::Configured, MachineState::Draining] {
                let of_state = input.snapshot.iter().filter(|tracked| usable(need, tracked));
                let count = of_state.filter(|tracked| plain.seen(tracked).0 == state).count();
                assert_eq!(supply.in_state(state) as usize, count, "seed {seed}: {key:?}");
            }
        }
    }
}

/// Who claims or preempts how many machines that a need could use, of those before
/// it.
fn ahead(plain: &Plain<'_>, need: &Need, before: &[NeedKey]) -> BTreeMap<NeedKey, u32> {
    let mut ahead: BTreeMap<NeedKey, u32> = BTreeMap::new();
    let preempted = plain.output.actions.iter().filter_map(|action| match &action.kind {
        ActionKind::Preempt { need, .. } => Some((&action.machine, need)),
        _ => None,
    });
    for (number, verdict) in plain.output.verdicts.iter().enumerate() {
        let mut count = |holder: NeedKey| {
            if before.contains(&holder) {
                *ahead.entry(holder).or_default() += 1;
            }
        };
        let claims = plain.output.claims.iter();
        let machines = claims.chain(preempted.clone()).filter(|(_, of)| of.0 as usize == number);
        if verdict.folded == 0 {
            for (machine, _) in machines {
                if usable(need, plain.tracked(machine)) {
                    count(NeedKey {
                        cluster: verdict.cluster.clone(),
                        fingerprint: verdict.fingerprint.clone(),
                        group: verdict.group.clone(),
                    });
                }
            }
            continue;
        }
        let members = plain.members(number);
        let mut first = 0;
        for claim in plain.claims(number) {
            let member = members[first.min(members.len() - 1)];
            if usable(need, claim.tracked) {
                count(NeedKey::of(member));
            }
            first += units(&capacity(claim.tracked), &verdict.min_unit);
        }
    }
    ahead
}

#[test]
fn who_is_ahead_really_has_machines_that_the_need_could_use() {
    let mut exact = 0;
    for seed in seeds().step_by(2) {
        let (input, engine, output) = decided(seed);
        let plain = Plain { input: &input, output: &output };
        let mut needs: Vec<&Need> = input.demand.iter().collect();
        in_order(&mut needs);
        // What needs wait for is not in the output: without drains, reclaims and
        // preempting folds it tells everything.
        let silent = input.snapshot.iter().all(|one| plain.seen(one).0 != MachineState::Draining)
            && output.actions.iter().all(|action| match &action.kind {
                ActionKind::Reclaim { .. } => false,
                ActionKind::Preempt { need, .. } => output.verdicts[need.0 as usize].folded == 0,
                _ => true,
            });
        for (at, need) in needs.iter().enumerate() {
            let explanation = engine.explain(&NeedKey::of(need)).unwrap();
            let what = format!("seed {seed}: {:?}", NeedKey::of(need));
            assert_eq!(explanation.rank as usize, at + 1, "{what}");
            assert_eq!(explanation.of as usize, needs.len(), "{what}");
            let before: Vec<NeedKey> = needs[..at].iter().map(|need| NeedKey::of(need)).collect();
            let told: BTreeMap<NeedKey, u32> =
                explanation.ahead.iter().map(|one| (one.need.clone(), one.machines)).collect();
            assert!(explanation.ahead.is_sorted_by(|a, b| a.machines >= b.machines), "{what}");
            assert!(told.keys().all(|key| before.contains(key)), "{what}");
            let usable = input.snapshot.iter().filter(|one| usable(need, one)).count() as u32;
            assert!(told.values().all(|count| (1..=usable).contains(count)), "{what}");
            if silent {
                assert_eq!(told, ahead(&plain, need, &before), "{what}");
                exact += told.len();
            }
        }
    }
    assert!(exact > 100, "hardly any world was told exactly");
}

#[test]
fn domains_are_what_a_gang_claims_and_what_is_left() {
    let mut several = 0;
    for seed in seeds() {
        let (input, engine, output) = decided(seed);
        let plain = Plain { input: &input, output: &output };
        let reader = engine.reader();
        for need in &input.demand {
            let key = NeedKey::of(need);
            let domains = reader.domains(&key, None);
            let keys: Vec<&str> = need.profile.same().map(|same| same.key.as_str()).collect();
            if keys.is_empty() {
                assert!(domains.is_empty(), "seed {seed}");
                continue;
            }
            let Some(verdict) = plain.verdict(&key) else { continue };
            let number = output.verdicts.iter().position(|one| one == verdict).unwrap() as u32;
            let mut machines: BTreeMap<BTreeMap<String, String>, u32> = BTreeMap::new();
            for tracked in input.snapshot.iter().filter(|tracked| usable(need, tracked)) {
                let claim = output.claims.get(&tracked.machine.id);
                let (state, cluster, stamped) = plain.seen(tracked);
                let held_back = input.held_back.contains_key(&tracked.machine.id);
                let left = match state {
                    MachineState::Configured | MachineState::Configuring => {
                        cluster.as_ref() == Some(&need.cluster)
                    }
                    MachineState::Idle | MachineState::Speculative => !held_back,
                    MachineState::Creating if stamped => plain.is_bought_for(tracked, &key),
                    MachineState::Creating => !held_back,
                    _ => false,
                };
                if claim.map_or(left, |claim| claim.0 == number) {
                    let value = |key: &&str| {
                        let value = tracked.machine.class.attribute(key).unwrap();
                        ((*key).to_owned(), value.to_owned())
                    };
                    *machines.entry(keys.iter().map(value).collect()).or_default() += 1;
                }
            }
            let told: BTreeMap<BTreeMap<String, String>, u32> =
                domains.iter().map(|one| (one.domain.clone(), one.machines)).collect();
            assert_eq!(told, machines, "seed {seed}: {key:?}");
            assert!(domains.is_sorted_by(|a, b| a.satisfiable >= b.satisfiable), "seed {seed}");
            let full = |per_mille: u32| per_mille == 1_000;
            assert!(domains.iter().all(|one| !one.satisfiable || full(one.per_mille)));
            let best = reader.domains(&key, Some(1));
            assert_eq!(best, domains[..domains.len().min(1)], "seed {seed}");
            several += usize::from(domains.len() > 1);
        }
    }
    assert!(several > 0, "no gang had a choice");
}

/// Alone, a gang finds at the end of the cycle exactly what it chose from.
#[test]
fn the_first_domain_is_the_one_that_a_gang_alone_chooses() {
    let mut contests = 0;
    for seed in seeds() {
        let world = worlds::world(seed);
        for need in world.demand.iter().filter(|need| need.profile.same().next().is_some()) {
            let demand = vec![need.clone()];
            let (gang_ages, no_acquire) = Default::default();
            let input = CycleInput { demand, gang_ages, no_acquire, ..world.clone() };
            let mut engine = Engine::load(&input);
            engine.cycle(input.now);
            let explanation = engine.explain(&NeedKey::of(need)).unwrap();
            if engine.output().verdicts[0].folded == 0 && !explanation.domains.is_empty() {
                let first = &explanation.domains[0];
                assert_eq!(
                    explanation.row.verdict.domain.as_ref(),
                    Some(&first.domain),
                    "seed {seed}"
                );
                assert_eq!(explanation.row.verdict.satisfiable, first.satisfiable, "seed {seed}");
                contests += usize::from(explanation.domains.len() > 1);
            }
        }
    }
    assert!(contests > 100, "hardly any gang had a choice");
}
