//! Demand that changes and machines that break: whatever the loop reaches is
//! decided as the specification says, and once the changes end it comes to rest.

use std::time::Duration;

use bigfleet_engine::{CycleInput, CycleOutput, Tracked};
use bigfleet_model::{ClusterId, MachineState, Need};
use bigfleet_oracle::{
    invariants,
    worlds::{SplitMix64, world},
};
use bigfleet_sim::Simulation;

use crate::support::{ids, latency};

/// Loses machines and sends roll-ups with some of the needs of the start.
pub(crate) struct Churn {
    random: SplitMix64,
    needs: Vec<Need>,
    clusters: Vec<ClusterId>,
    lost: Vec<Tracked>,
}

impl Churn {
    pub(crate) fn new(seed: u64, start: &CycleInput) -> Self {
        Self {
            random: SplitMix64::new(seed ^ 0x6368_7572_6e21),
            needs: start.demand.clone(),
            clusters: start.ready.iter().cloned().collect(),
            lost: Vec::new(),
        }
    }

    /// For what was lost there is another offer, or a long run ends without machines.
    pub(crate) fn replace_losses(&mut self, sim: &mut Simulation) {
        for mut offer in self.lost.drain(..) {
            offer.machine.state = MachineState::Speculative;
            (offer.machine.host, offer.machine.cluster, offer.machine.stamp) = (None, None, None);
            (offer.idle_since, offer.drain) = (None, None);
            sim.provider.vanish(&offer.machine.id);
            offer.machine.id = format!("{}+", offer.machine.id).as_str().into();
            sim.provider.add(offer);
        }
    }

    pub(crate) fn disturb(&mut self, sim: &mut Simulation) {
        let mut lost = None;
        if self.random.chance(8) {
            let bound = |state| matches!(state, MachineState::Configured | MachineState::Creating);
            let serving =
                ids(sim.provider.machines().filter(|tracked| bound(tracked.machine.state)));
            if !serving.is_empty() {
                let id = self.random.one(&serving);
                lost = sim.provider.machine(id).cloned();
                if self.random.clone().chance(50) {
                    sim.provider.vanish(id);
                } else {
                    sim.provider.fail(id);
                }
            }
        }
        self.lost.extend(lost);
        if self.random.chance(12) && !self.clusters.is_empty() {
            let cluster = self.random.one(&self.clusters).clone();
            let mut wanted: Vec<Need> =
                self.needs.iter().filter(|need| need.cluster == cluster).cloned().collect();
            wanted.retain(|_| self.random.chance(60));
            sim.roll_up(&cluster, wanted);
        }
    }
}

pub(crate) fn comparable(mut output: CycleOutput) -> CycleOutput {
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
