//! Deciding again what changed comes to the same as deciding everything anew
//! (§11), whatever changes between two cycles.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::time::Duration;

use bigfleet_engine::{
    Action, ActionKind, CycleInput, CycleOutput, Engine, HeldBack, NeedKey, NoAcquire, Time,
    Tracked, decide,
};
use bigfleet_model::MachineState;
use bigfleet_oracle::worlds::{self, SplitMix64};
use common::{assert_same, comparable, seeds};

/// Worlds per run; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 4_000;
const CYCLES: u32 = 8;

/// What a machine becomes when an action on it is done.
fn done(action: &Action, tracked: &Tracked, now: Time) -> Tracked {
    let mut tracked = tracked.clone();
    let machine = &mut tracked.machine;
    tracked.drain = None;
    match &action.kind {
        ActionKind::Bootstrap(acquisition) => {
            machine.state = MachineState::Configured;
            machine.cluster = Some(acquisition.cluster.clone());
            machine.stamp = Some(acquisition.stamp.clone());
        }
        ActionKind::Provision(_) | ActionKind::Preempt { .. } | ActionKind::Reclaim { .. } => {
            machine.state = MachineState::Idle;
            machine.cluster = None;
            machine.stamp = None;
            tracked.idle_since = Some(now);
        }
        ActionKind::Delete => machine.state = MachineState::Speculative,
    }
    tracked
}

fn one_of<'a, T>(random: &mut SplitMix64, of: &'a [T]) -> Option<&'a T> {
    (!of.is_empty()).then(|| random.one(of))
}

/// Lets something happen.
fn disturb(engine: &mut Engine, input: &CycleInput, output: &CycleOutput, random: &mut SplitMix64) {
    let other = worlds::world(random.below(50_000));
    for action in &output.actions {
        match random.below(4) {
            0 => engine.pend(action.clone()),
            1 => {
                let tracked = input.snapshot.iter().find(|one| one.machine.id == action.machine);
                let tracked = tracked.expect("actions are for known machines");
                engine.unpend(&action.machine);
                engine.upsert(&done(action, tracked, input.now));
            }
            _ => {}
        }
    }
    for _ in 0..random.below(4) {
        match random.below(9) {
            0 | 1 => {
                if let Some(tracked) = one_of(random, &other.snapshot) {
                    engine.upsert(tracked);
                }
            }
            2 => {
                if let Some(tracked) = one_of(random, &input.snapshot) {
                    engine.remove(&tracked.machine.id);
                }
            }
            3 | 4 => {
                if let Some(need) = one_of(random, &other.demand) {
                    let of_cluster = other.demand.iter().filter(|one| one.cluster == need.cluster);
                    engine.replace(&need.cluster, &of_cluster.cloned().collect::<Vec<_>>());
                }
            }
            5 => {
                if let Some(need) = one_of(random, &input.demand) {
                    let why = [None, Some(NoAcquire::NoSession), Some(NoAcquire::BootstrapRefused)];
                    engine.hold(&NeedKey::of(need), why[random.below(3) as usize]);
                }
            }
            6 => {
                if let Some(tracked) = one_of(random, &input.snapshot) {
                    let why = [None, Some(HeldBack::ProviderFailing), Some(HeldBack::Quota)];
                    engine.hold_back(&tracked.machine.id, why[random.below(3) as usize]);
                }
            }
            7 => {
                // One need more or fewer of a size, or a need that shrinks.
                if let Some(need) = one_of(random, &input.demand) {
                    let of_cluster = input.demand.iter().filter(|one| one.cluster == need.cluster);
                    let mut needs: Vec<_> = of_cluster.cloned().collect();
                    let at = random.below(needs.len() as u64) as usize;
                    let unit = needs[at].min_unit.clone();
                    match random.below(4) {
                        // A request joins that may fit none of its machines, or leaves.
                        3 => {
                            if let Some(large) = one_of(random, &other.demand) {
                                needs[at].min_unit = large.min_unit.clone();
                                needs[at].aggregate.add_assign(&large.min_unit);
                            }
                        }
                        0 => drop(needs.remove(at)),
                        1 => needs[at].aggregate.add_assign(&unit),
                        _ => needs[at].aggregate.sub_sat_assign(&unit),
                    }
                    engine.replace(&need.cluster, &needs);
                }
            }
            _ => {
                if let Some(action) = one_of(random, &input.pending) {
                    engine.unpend(&action.machine);
                }
            }
        }
    }
    if random.below(3) > 0 {
        engine.restamp();
    }
}

#[test]
fn inv_47_increments_come_to_the_same_as_a_full_pass() {
    for seed in seeds(WORLDS, 5) {
        let mut random = SplitMix64::new(seed);
        let world = worlds::world(seed);
        let mut engine = Engine::load(&world);
        let mut now = world.now;
        for cycle in 0..CYCLES {
            now = now.after(Duration::from_secs(random.below(60)));
            let input = CycleInput { now, ..engine.input() };
            engine.cycle(now);
            let output = engine.output();
            let what = format!("seed {seed}, cycle {cycle}");
            assert_same(&comparable(output.clone()), &comparable(decide(&input)), &what);
            assert_eq!(engine.drifts(), 0, "{what}: claims drifted");
            disturb(&mut engine, &input, &output, &mut random);
        }
    }
}

#[test]
fn folding_is_switched_off_and_on_again_without_a_trace() {
    let mut folds = 0;
    for seed in 0..500 {
        let world = worlds::world(seed);
        let expected = decide(&world);
        folds += expected.verdicts.iter().filter(|verdict| verdict.folded > 0).count();

        let mut engine = Engine::load(&world);
        engine.set_folding(false);
        engine.set_folding(true);
        engine.cycle(world.now);
        assert_same(&comparable(engine.output()), &comparable(expected), &format!("seed {seed}"));

        engine.set_folding(false);
        engine.cycle(world.now);
        let unfolded = engine.output();
        assert!(unfolded.verdicts.iter().all(|verdict| verdict.folded == 0), "seed {seed}");
        assert_eq!(unfolded.verdicts.len(), world.demand.len(), "seed {seed}");
    }
    assert!(folds > 0, "some worlds have gangs that fold");
}

/// Once its own machines serve it a gang rests, but as one of its group.
#[test]
fn a_gang_that_wants_nothing_any_more_disturbs_nobody_s_rest() {
    for seed in seeds(WORLDS, 5) {
        let world = worlds::world(seed);
        let mut engine = Engine::load(&world);
        for _ in 0..3 {
            engine.cycle(world.now);
            engine.restamp();
            engine.output().actions.into_iter().for_each(|action| engine.pend(action));
        }
        let input = engine.input();
        for cluster in &input.ready {
            let of_cluster = input.demand.iter().filter(|need| need.cluster == *cluster);
            let mut needs: Vec<_> = of_cluster.cloned().collect();
            for need in needs.iter_mut().filter(|need| !need.group.is_empty()) {
                need.aggregate = Default::default();
            }
            engine.replace(cluster, &needs);
        }
        for _ in 0..2 {
            let input = CycleInput { now: world.now, ..engine.input() };
            engine.cycle(world.now);
            let (output, anew) = (comparable(engine.output()), comparable(decide(&input)));
            assert_same(&output, &anew, &format!("seed {seed}"));
        }
    }
}
