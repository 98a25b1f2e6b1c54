//! Demand that changes and machines that break: whatever the loop reaches is
//! decided as the specification says, and once the changes end it comes to rest.

use std::time::Duration;

use bigfleet_engine::{CycleInput, CycleOutput};
use bigfleet_model::{ClusterId, MachineState, Need};
use bigfleet_oracle::{
    invariants,
    worlds::{SplitMix64, world},
};
use bigfleet_sim::Simulation;

use crate::support::{ids, latency};

/// Loses machines and sends roll-ups with some of the needs of the start.
struct Churn {
    random: SplitMix64,
    needs: Vec<Need>,
    clusters: Vec<ClusterId>,
}

impl Churn {
    fn new(seed: u64, start: &CycleInput) -> Self {
        Self {
            random: SplitMix64::new(seed ^ 0x6368_7572_6e21),
            needs: start.demand.clone(),
            clusters: start.ready.iter().cloned().collect(),
        }
    }

    fn disturb(&mut self, sim: &mut Simulation) {
        if self.random.chance(8) {
            let bound = |state| matches!(state, MachineState::Configured | MachineState::Creating);
            let serving =
                ids(sim.provider.machines().filter(|tracked| bound(tracked.machine.state)));
            if !serving.is_empty() {
                let lost = self.random.one(&serving);
                if self.random.clone().chance(50) {
                    sim.provider.vanish(lost);
                } else {
                    sim.provider.fail(lost);
                }
            }
        }
        if self.random.chance(12) && !self.clusters.is_empty() {
            let cluster = self.random.one(&self.clusters).clone();
            let mut wanted: Vec<Need> =
                self.needs.iter().filter(|need| need.cluster == cluster).cloned().collect();
            wanted.retain(|_| self.random.chance(60));
            sim.roll_up(&cluster, wanted);
        }
    }
}

fn comparable(mut output: CycleOutput) -> CycleOutput {
    for action in &mut output.actions {
        action.domain_rule = 0;
    }
    output
}

#[test]
fn every_cycle_equals_the_oracle_and_keeps_the_invariants() {
    for seed in 0..1000 {
        let start = world(seed);
        let mut churn = Churn::new(seed, &start);
        let mut sim = Simulation::new(seed, latency(seed), start);
        sim.step = Duration::from_secs(10);
        for cycle in 0..50 {
            churn.disturb(&mut sim);
            let decided = sim.step();
            let violations = invariants::check(&decided.input, &decided.output);
            assert!(violations.is_empty(), "seed {seed} cycle {cycle}: {violations:#?}");
            let oracle = bigfleet_oracle::decide(&decided.input);
            assert_eq!(comparable(decided.output), comparable(oracle), "seed {seed} cycle {cycle}");
        }
    }
}

#[test]
fn inv_32_rest_once_the_changes_end() {
    let mut loud = Vec::new();
    for seed in 0..800 {
        let start = world(seed);
        let mut churn = Churn::new(seed, &start);
        let mut sim = Simulation::new(seed, latency(seed), start);
        sim.step = Duration::from_secs(10);
        for _ in 0..80 {
            churn.disturb(&mut sim);
            sim.step();
        }
        if sim.run_until_quiet(72, 1000).is_none() {
            loud.push(seed);
        }
    }
    assert!(loud.is_empty(), "worlds that never rest: {loud:?}");
}
