//! What holds on small worlds holds on large ones: many small worlds thrown
//! together, whose clusters compete for all their machines (§11, D1).

mod common;

use std::{sync::Arc, time::Duration};

use bigfleet_engine::{
    Action, ActionKind, CycleInput, CycleOutput, Engine, GangKey, NeedKey, Tracked, decide,
};
use bigfleet_model::{ClusterId, MachineId, Need, Stamp};
use bigfleet_oracle::worlds::{self, SplitMix64};
use common::shuffled;

const WORLDS: u64 = 100;
/// Small worlds in a large one: about 3,000 machines and 700 needs.
const PARTS: u64 = 80;
const CYCLES: u32 = 3;

/// Gives what one small world names names of its own.
struct Part(u64);

impl Part {
    fn cluster(&self, id: &ClusterId) -> ClusterId {
        format!("{id}-{}", self.0).as_str().into()
    }

    fn machine(&self, id: &MachineId) -> MachineId {
        format!("{id}-{}", self.0).as_str().into()
    }

    fn key(&self, key: &NeedKey) -> NeedKey {
        NeedKey { cluster: self.cluster(&key.cluster), ..key.clone() }
    }

    fn stamp(&self, stamp: &Stamp) -> Arc<Stamp> {
        let for_cluster = stamp.for_cluster.as_ref().map(|cluster| self.cluster(cluster));
        Arc::new(Stamp { for_cluster, ..stamp.clone() })
    }

    fn tracked(&self, mut tracked: Tracked) -> Tracked {
        let machine = &mut tracked.machine;
        machine.id = self.machine(&machine.id);
        machine.cluster = machine.cluster.as_ref().map(|cluster| self.cluster(cluster));
        machine.stamp = machine.stamp.as_ref().map(|stamp| self.stamp(stamp));
        if let Some(drain) = &mut tracked.drain {
            drain.preemptor = drain.preemptor.as_ref().map(|key| self.key(key));
        }
        tracked
    }

    fn need(&self, need: Need) -> Need {
        Need { cluster: self.cluster(&need.cluster), ..need }
    }

    fn action(&self, mut action: Action) -> Action {
        action.machine = self.machine(&action.machine);
        match &mut action.kind {
            ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) => {
                acquisition.cluster = self.cluster(&acquisition.cluster);
                acquisition.stamp = self.stamp(&acquisition.stamp);
            }
            ActionKind::Preempt { cluster, preemptor, .. } => {
                *cluster = self.cluster(cluster);
                *preemptor = self.key(preemptor);
            }
            ActionKind::Reclaim { cluster, .. } => *cluster = self.cluster(cluster),
            ActionKind::Delete => {}
        }
        action
    }
}

fn large(seed: u64) -> CycleInput {
    let mut whole = CycleInput::default();
    for number in 0..PARTS {
        let (part, world) = (Part(number), worlds::world(seed * PARTS + number));
        whole.now = world.now;
        whole.snapshot.extend(world.snapshot.into_iter().map(|one| part.tracked(one)));
        whole.demand.extend(world.demand.into_iter().map(|need| part.need(need)));
        whole.pending.extend(world.pending.into_iter().map(|action| part.action(action)));
        whole.ready.extend(world.ready.iter().map(|cluster| part.cluster(cluster)));
        whole.gang_ages.extend(world.gang_ages.into_iter().map(|(key, age)| {
            let cluster = part.cluster(&key.cluster);
            (GangKey { cluster, ..key }, age)
        }));
        let held = world.no_acquire.into_iter().map(|(key, why)| (part.key(&key), why));
        whole.no_acquire.extend(held);
        let held = world.held_back.into_iter().map(|(id, why)| (part.machine(&id), why));
        whole.held_back.extend(held);
    }
    whole
}

/// Some clusters want other things, some machines go, what was decided is pending.
fn disturb(engine: &mut Engine, input: &CycleInput, output: &CycleOutput, random: &mut SplitMix64) {
    engine.restamp();
    for action in output.actions.iter().filter(|_| random.below(3) == 0) {
        engine.pend(action.clone());
    }
    for tracked in input.snapshot.iter().filter(|_| random.below(100) == 0) {
        engine.remove(&tracked.machine.id);
    }
    for cluster in input.ready.iter().filter(|_| random.below(20) == 0) {
        let mut needs: Vec<Need> =
            input.demand.iter().filter(|need| need.cluster == *cluster).cloned().collect();
        for need in &mut needs {
            let unit = need.min_unit.clone();
            need.aggregate.add_assign(&unit);
        }
        engine.replace(cluster, &needs);
    }
}

#[test]
fn inv_47_large_worlds_come_out_the_same_in_any_order_and_by_increments() {
    for seed in 0..WORLDS {
        let input = large(seed);
        let first = decide(&input);
        assert_eq!(decide(&shuffled(input.clone(), seed)), first, "seed {seed}: order");
        let (mut engine, mut random) = (Engine::load(&input), SplitMix64::new(seed));
        let mut now = input.now;
        for cycle in 0..CYCLES {
            let input = CycleInput { now, ..engine.input() };
            engine.cycle(now);
            let output = engine.output();
            assert_eq!(output, decide(&input), "seed {seed}: cycle {cycle}");
            // Whoever looks changes nothing (48).
            let _ = (engine.trace(), engine.phase_log());
            disturb(&mut engine, &input, &output, &mut random);
            now = now.after(Duration::from_secs(random.below(60)));
        }
        assert_eq!(engine.drifts(), 0, "seed {seed}");
    }
}
