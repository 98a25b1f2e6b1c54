//! Whoever watches changes nothing.

use std::time::Duration;

use bigfleet_engine::{Action, ActionKind, CycleInput, Engine, Ledger, NeedKey};
use bigfleet_model::MachineId;
use bigfleet_oracle::worlds::{self, SplitMix64};

use crate::{decided, seeds};

/// Asks everything.
fn watch(engine: &Engine, input: &CycleInput, ledger: &mut Ledger) {
    ledger.update(engine);
    let reader = engine.reader();
    for need in &input.demand {
        assert!(reader.explain(&NeedKey::of(need)).is_some());
        assert!(!reader.rows(&need.cluster).is_empty());
    }
    drop(engine.trace());
    drop(engine.phase_log());
    drop(ledger.reported());
}

#[test]
fn inv_48_tracing_changes_nothing() {
    for seed in seeds().step_by(3) {
        let mut random = SplitMix64::new(seed);
        let world = worlds::world(seed);
        let (mut watched, mut alone) = (Engine::load(&world), Engine::load(&world));
        let (mut now, mut ledger) = (world.now, Ledger::default());
        for cycle in 0..5 {
            now = now.after(Duration::from_secs(random.below(60)));
            let input = watched.input();
            watched.cycle(now);
            alone.cycle(now);
            watch(&watched, &input, &mut ledger);
            let output = alone.output();
            assert_eq!(watched.output(), output, "seed {seed}, cycle {cycle}");
            let gone = input.snapshot.get(random.below(40) as usize);
            for engine in [&mut watched, &mut alone] {
                output.actions.iter().step_by(2).for_each(|action| engine.pend(action.clone()));
                gone.iter().for_each(|gone| engine.remove(&gone.machine.id));
                engine.restamp();
            }
        }
    }
}

/// What is told of an engine that remembers is told of one that decides from
/// nothing, too.
#[test]
fn inv_47_increments_are_told_as_a_full_pass_is() {
    for seed in seeds().step_by(3) {
        let mut random = SplitMix64::new(seed);
        let world = worlds::world(seed);
        let mut engine = Engine::load(&world);
        let mut now = world.now;
        for cycle in 0..5 {
            now = now.after(Duration::from_secs(random.below(60)));
            let input = CycleInput { now, ..engine.input() };
            let mut anew = Engine::load(&input);
            engine.cycle(now);
            anew.cycle(now);
            let what = format!("seed {seed}, cycle {cycle}");
            let (told, told_anew) = (engine.reader(), anew.reader());
            for need in input.demand.iter().map(NeedKey::of) {
                assert_eq!(told.explain(&need), told_anew.explain(&need), "{what}");
            }
            assert_eq!(engine.phase_log(), anew.phase_log(), "{what}");
            assert_eq!(engine.trace(), anew.trace(), "{what}");
            for action in engine.actions().into_iter().step_by(2) {
                engine.pend(action);
            }
            if let Some(gone) = input.snapshot.get(random.below(40) as usize) {
                engine.remove(&gone.machine.id);
            }
            if let Some(need) = input.demand.get(random.below(20) as usize) {
                let of_cluster = input.demand.iter().filter(|other| other.cluster == need.cluster);
                let needs: Vec<_> = of_cluster.filter(|other| *other != need).cloned().collect();
                engine.replace(&need.cluster, &needs);
            }
            engine.restamp();
        }
    }
}

fn is_acquisition(action: &Action) -> bool {
    matches!(action.kind, ActionKind::Bootstrap(_) | ActionKind::Provision(_))
}

#[test]
fn a_trace_tells_need_rank_and_the_rule_that_decided() {
    let mut rules = [0; 8];
    for seed in seeds() {
        let (input, engine, output) = decided(seed);
        let trace = engine.trace();
        let acquisitions: Vec<&Action> =
            output.actions.iter().filter(|one| is_acquisition(one)).collect();
        let of_actions = trace
            .iter()
            .filter(|one| acquisitions.iter().any(|action| action.machine == one.machine));
        for (action, told) in acquisitions.iter().zip(of_actions) {
            let (ActionKind::Bootstrap(to) | ActionKind::Provision(to)) = &action.kind else {
                unreachable!("filtered");
            };
            assert_eq!((&told.machine, told.rank), (&action.machine, to.need.0), "seed {seed}");
            let stamp = (&to.cluster, &to.stamp.fingerprint, &to.stamp.group);
            let need = (&told.need.cluster, &told.need.fingerprint, &told.need.group);
            assert_eq!(need, stamp, "seed {seed}");
            let folded = output.verdicts[to.need.0 as usize].folded > 0;
            assert_eq!(told.member.is_some(), folded, "seed {seed}");
            assert_eq!(told.domain_rule, action.domain_rule, "seed {seed}");
            rules[told.domain_rule as usize] += 1;
        }
        let rule = |action: &&Action| (action.machine.clone(), action.domain_rule);
        let told: Vec<(MachineId, u8)> = acquisitions.iter().map(rule).collect();
        let oracle = bigfleet_oracle::decide(&input);
        let second: Vec<(MachineId, u8)> =
            oracle.actions.iter().filter(|one| is_acquisition(one)).map(|one| rule(&one)).collect();
        assert_eq!(told, second, "seed {seed}");
    }
    assert!(rules.iter().all(|times| *times > 0), "some rule never decided: {rules:?}");
}

#[test]
fn nothing_is_reclaimed_that_a_short_need_could_use() {
    for seed in seeds() {
        let (_, engine, output) = decided(seed);
        let log = engine.phase_log();
        assert_eq!(log.reclaims_in_need, 0, "seed {seed}");
        assert_eq!(log.needs, output.verdicts.len(), "seed {seed}");
        let unsatisfied = output.verdicts.iter().filter(|verdict| !verdict.satisfied);
        assert_eq!(log.unsatisfied, unsatisfied.count(), "seed {seed}");
        assert_eq!(log.unsatisfied_gangs, log.short_gangs.len(), "seed {seed}");
        let reclaims =
            output.actions.iter().filter(|one| matches!(one.kind, ActionKind::Reclaim { .. }));
        assert_eq!(log.reclaims, reclaims.count(), "seed {seed}");
        for gang in &log.short_gangs {
            let row = engine.row(&gang.need).expect("gangs are needs as sent");
            assert_eq!(
                (row.verdict.domain, row.verdict.deficit),
                (gang.domain.clone(), gang.residual.clone())
            );
        }
    }
}
