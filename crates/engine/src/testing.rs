//! Engines for unit tests, which may look inside and corrupt them.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::{ClusterId, Need};
use bigfleet_oracle::worlds;

use crate::{Engine, Phase2Options, ReleasePolicy, Time, Tracked};

/// Machines and needs of a random world, without the rest of its input. (The
/// oracle is linked to the engine as others see it, so of its types only those of
/// the model can be used here.)
pub(crate) fn engine(seed: u64) -> Engine {
    let world = worlds::world(seed);
    let release = ReleasePolicy { on_demand: Duration::ZERO, spot: Duration::ZERO };
    let mut engine = Engine::new(Phase2Options::default(), release);
    for tracked in &world.snapshot {
        let machine = tracked.machine.clone();
        engine.upsert(&Tracked { machine, idle_since: None, drain: None });
    }
    let mut demand: BTreeMap<&ClusterId, Vec<Need>> = BTreeMap::new();
    for need in &world.demand {
        demand.entry(&need.cluster).or_default().push(need.clone());
    }
    for (cluster, needs) in demand {
        engine.replace(cluster, &needs);
    }
    engine
}

/// The same after some cycles, every decision having been carried out at once as
/// far as state shows it.
pub(crate) fn settled(seed: u64) -> Engine {
    let mut engine = engine(seed);
    for _ in 0..3 {
        engine.cycle(Time(0));
        engine.restamp();
        for action in engine.actions() {
            engine.pend(action);
        }
    }
    engine.cycle(Time(0));
    engine
}
