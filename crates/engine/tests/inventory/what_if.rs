//! A need that nobody has sent gets what deciding with it would give it, and nobody
//! notices (invariant 48).

use bigfleet_engine::{
    Action, ActionKind, CycleInput, Engine, NeedKey, NoAcquire, WhatIf, WhatIfMachine, decide,
};
use bigfleet_model::{MachineId, MachineState, Need};
use bigfleet_oracle::worlds;

use crate::{History, STEPS, WORLDS, common, everywhere};

/// A need of another world, or a known one of another size.
fn any_need(history: &mut History) -> Option<Need> {
    let other = worlds::world(history.random.below(50_000)).demand;
    let mut need = other.first()?.clone();
    let known = history.engine.input().demand;
    if !known.is_empty() && history.random.chance(50) {
        let identity = history.random.one(&known).clone();
        need = match history.random.below(3) {
            0 => Need { group: "another".into(), ..identity },
            1 => Need { aggregate: need.aggregate, min_unit: need.min_unit, ..identity },
            _ => {
                let twice = identity.aggregate.clone();
                let mut need = identity;
                need.aggregate.add_assign(&twice);
                need
            }
        };
    }
    // A group is for gangs only.
    if need.profile.same().next().is_none() {
        need.group = bigfleet_model::Group::none();
    }
    Some(need)
}

/// The same input with the need in it.
fn with(engine: &Engine, need: &Need, now: bigfleet_engine::Time) -> CycleInput {
    let mut input = CycleInput { now, ..engine.input() };
    let key = NeedKey::of(need);
    match input.demand.iter_mut().find(|known| NeedKey::of(known) == key) {
        Some(known) => *known = Need { arrival: known.arrival, ..need.clone() },
        None => input.demand.push(need.clone()),
    }
    input
}

fn told(machines: &[WhatIfMachine]) -> Vec<(MachineId, f64)> {
    machines.iter().map(|one| (one.machine.clone(), one.cost)).collect()
}

#[derive(Default)]
struct Met {
    satisfied: u32,
    victims: usize,
    picks: usize,
    folded: u32,
    folded_victims: usize,
}

/// Everything that is told is what `decide` decides for the need as sent.
fn check(asked: &WhatIf, input: &CycleInput, key: &NeedKey, met: &mut Met) {
    let output = decide(input);
    let mut reference = Engine::load(input);
    reference.cycle(input.now);
    let verdict = reference.row(key).unwrap().verdict;
    assert_eq!(asked.satisfied, verdict.satisfied);
    assert_eq!((asked.reason, asked.detail), (verdict.reason, verdict.detail));
    assert_eq!(asked.deficit, verdict.deficit);
    assert_eq!(asked.claimed, verdict.claimed);
    assert_eq!(asked.domain, verdict.domain);
    let (waited, acquired): (Vec<_>, Vec<_>) =
        asked.picks.iter().cloned().partition(|pick| pick.state == MachineState::Creating);
    assert_eq!(acquired.len() as u32, verdict.bootstrap + verdict.provision);
    let is_its = |verdict: &bigfleet_engine::Verdict| {
        (&verdict.cluster, &verdict.fingerprint, &verdict.group)
            == (&key.cluster, &key.fingerprint, &key.group)
    };
    let at = output.verdicts.iter().position(is_its);
    let of_need = |action: &&Action| match &action.kind {
        ActionKind::Bootstrap(of) | ActionKind::Provision(of) => Some(of.need.0 as usize) == at,
        _ => false,
    };
    let preempts = |action: &&Action| match &action.kind {
        ActionKind::Preempt { need, .. } => Some(need.0 as usize) == at,
        _ => false,
    };
    let cost = |action: &Action| (action.machine.clone(), action.cost);
    if at.is_some() {
        let actions = &output.actions;
        assert_eq!(told(&acquired), actions.iter().filter(of_need).map(cost).collect::<Vec<_>>());
        let victims: Vec<_> = actions.iter().filter(preempts).map(cost).collect();
        assert_eq!(told(&asked.victims), victims);
        assert!(
            waited
                .iter()
                .all(|pick| { output.claims.get(&pick.machine).map(|need| need.0 as usize) == at })
        );
    } else {
        met.folded += 1;
        met.folded_victims += asked.victims.len();
        let all: Vec<_> = output.actions.iter().map(cost).collect();
        assert!(told(&acquired).iter().chain(&told(&asked.victims)).all(|one| all.contains(one)));
        assert!(asked.victims.len() <= 1);
    }
    for victim in &asked.victims {
        assert_eq!(victim.state, MachineState::Configured);
        assert!(victim.cluster.is_some());
    }
    met.satisfied += u32::from(asked.satisfied);
    met.victims += asked.victims.len();
    met.picks += asked.picks.len();
}

#[test]
fn inv_48_what_if_tells_what_would_be_decided() {
    let mut met = Met::default();
    everywhere(|history| {
        let Some(need) = any_need(history) else { return };
        let held = Some(NoAcquire::NoSession).filter(|_| history.random.chance(10));
        let asked = history.engine.what_if_held(&need, held, history.now);
        let mut input = with(&history.engine, &need, history.now);
        input.no_acquire.extend(held.map(|why| (NeedKey::of(&need), why)));
        let bought: f64 = asked
            .picks
            .iter()
            .filter(|pick| pick.state == MachineState::Speculative)
            .map(|pick| history.told[&pick.machine].class.price_per_hour)
            .sum();
        assert_eq!(asked.dollars_per_hour, bought);
        check(&asked, &input, &NeedKey::of(&need), &mut met);
    });
    let Met { satisfied, victims, picks, folded, folded_victims } = met;
    println!("{satisfied} {victims} {picks} {folded} {folded_victims}");
    assert!(satisfied > 1_000 && victims > 100 && picks > 1_000 && folded > 100);
}

#[test]
fn inv_48_nobody_notices_that_somebody_asked() {
    for seed in common::seeds(WORLDS, 10) {
        println!("seed {seed}");
        let (mut asked, mut alone) = (History::of(seed), History::of(seed));
        for _ in 0..STEPS {
            let mut questions = History::of(seed);
            questions.random = bigfleet_oracle::worlds::SplitMix64::new(seed);
            if let Some(need) = any_need(&mut questions) {
                let once = asked.engine.what_if(&need, asked.now);
                assert_eq!(once, asked.engine.what_if(&need, asked.now), "asked again");
            }
            asked.step();
            alone.step();
            for engine in [&mut asked.engine, &mut alone.engine] {
                engine.cycle(bigfleet_engine::Time(0));
            }
            assert_eq!(asked.engine.output(), alone.engine.output());
        }
    }
}
