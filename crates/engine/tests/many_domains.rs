//! Where a pool has more domains than are compared one by one, a gang still finds
//! the one that it would find among few (§6.3).

mod common;

use std::{collections::BTreeSet, sync::Arc};

use bigfleet_engine::{CycleInput, Engine, Tracked, decide};
use bigfleet_oracle::worlds::{self, SplitMix64};
use common::{assert_same, seeds};

/// Worlds per run; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 1_000;
const CYCLES: u32 = 3;
/// More than a pool compares one by one.
const RACKS: u64 = 70;

/// A random world with machines like a few of its own in each of many racks: most
/// racks are alike until somebody takes of them.
fn world(seed: u64) -> CycleInput {
    let (mut random, mut world) = (SplitMix64::new(seed), worlds::world(seed));
    if world.snapshot.is_empty() {
        return world;
    }
    let in_rack: Vec<Tracked> =
        (0..1 + random.below(3)).map(|_| random.one(&world.snapshot).clone()).collect();
    for rack in 0..RACKS {
        for (number, model) in in_rack.iter().enumerate().filter(|_| random.chance(90)) {
            let mut tracked = model.clone();
            let machine = &mut tracked.machine;
            machine.id = format!("{rack}-{number}-{}", machine.id).as_str().into();
            let class = Arc::make_mut(&mut machine.class);
            class.labels.insert("rack".to_owned(), format!("many-{rack}"));
            world.snapshot.push(tracked);
        }
    }
    world
}

#[test]
fn gangs_choose_among_many_domains_as_the_oracle_does() {
    let mut racks = BTreeSet::new();
    for seed in seeds(WORLDS, 20) {
        let world = world(seed);
        let mut engine = Engine::load(&world);
        for cycle in 0..CYCLES {
            let input = CycleInput { now: world.now, ..engine.input() };
            engine.cycle(world.now);
            let output = engine.output();
            let what = format!("seed {seed}, cycle {cycle}");
            assert_same(&output, &decide(&input), &what);
            assert_same(&output, &bigfleet_oracle::decide(&input), &what);
            let domains = output.verdicts.iter().filter_map(|verdict| verdict.domain.clone());
            racks.extend(domains.flatten());
            // Some of what was decided happens, so that racks differ.
            engine.restamp();
            for action in output.actions.into_iter().step_by(2) {
                engine.pend(action);
            }
        }
    }
    let many = racks.iter().filter(|(_, rack)| rack.starts_with("many-")).count();
    assert!(many > 5, "hardly any gang chose among them: {racks:?}");
}
