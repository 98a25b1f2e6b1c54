//! The loop itself.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_engine::{
    Action, CycleInput, CycleOutput, GangKey, HeldBack, NeedKey, NoAcquire, Phase2Options,
    ReleasePolicy, Time, decide,
};
use bigfleet_model::{ClusterId, MachineId, Need};

use crate::{
    counters::Counters, demand::Demand, latency::Latency, mirror::Mirror, provider::Provider,
    rails::capped, restamp::restamp,
};

/// One decided cycle: its picture and its decision.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// What was decided from.
    pub input: CycleInput,
    /// What was decided.
    pub output: CycleOutput,
    /// What of it is carried out.
    pub executed: Vec<Action>,
}

/// A shard's memory, its provider and its clock.
pub struct Simulation {
    /// All machines.
    pub provider: Provider,
    /// All needs.
    pub demand: Demand,
    /// Needs for which no node can be bootstrapped.
    pub no_acquire: BTreeMap<NeedKey, NoAcquire>,
    /// Machines that cannot be acquired.
    pub held_back: BTreeMap<MachineId, HeldBack>,
    /// Weights of the victim score.
    pub phase2: Phase2Options,
    /// When idle machines are given back.
    pub release: ReleasePolicy,
    /// Time between two cycles.
    pub step: Duration,
    /// Reclaims per cluster and cycle, as a share of its Configured machines
    /// (§12); none switches the rail off.
    pub reclaim_cap: Option<f64>,
    /// The engine that remembers; without it every cycle is decided from nothing.
    mirror: Option<Mirror>,
    gang_ages: BTreeMap<GangKey, u32>,
    now: Time,
    cycle: u64,
    counters: Counters,
}

impl Simulation {
    /// Goes on from a picture. The seed decides all latencies.
    pub fn new(seed: u64, latency: Latency, start: CycleInput) -> Self {
        Self {
            provider: Provider::new(seed, latency, start.snapshot, start.pending),
            demand: Demand::new(start.demand, start.ready),
            no_acquire: start.no_acquire,
            held_back: start.held_back,
            phase2: start.phase2,
            release: start.release,
            step: Duration::from_secs(1),
            reclaim_cap: None,
            mirror: Some(Mirror::default()),
            gang_ages: start.gang_ages,
            now: start.now,
            cycle: 0,
            counters: Counters::default(),
        }
    }

    /// Decides every cycle from nothing.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.mirror = None;
        self
    }

    /// The picture of the next cycle.
    pub fn input(&self) -> CycleInput {
        CycleInput {
            snapshot: self.provider.snapshot(),
            demand: self.demand.needs(),
            pending: self.provider.pending(),
            ready: self.demand.ready().clone(),
            gang_ages: self.gang_ages.clone(),
            no_acquire: self.no_acquire.clone(),
            held_back: self.held_back.clone(),
            phase2: self.phase2,
            release: self.release,
            now: self.now,
        }
    }

    /// Decides, re-stamps and queues; no time passes and nothing becomes visible.
    pub fn decide(&mut self) -> Cycle {
        let input = self.input();
        let output = match &mut self.mirror {
            Some(mirror) => mirror.decide(&input),
            None => decide(&input),
        };
        self.cycle += 1;
        self.gang_ages.clone_from(&output.gang_ages);
        let executed = capped(self.reclaim_cap, &input, &output.actions);
        self.counters.record(self.cycle, self.now, &executed);
        self.counters.completions += self.provider.completions(&executed);
        restamp(&mut self.provider, &self.demand, &output);
        if let Some(mirror) = &mut self.mirror {
            mirror.restamp(&self.provider);
        }
        self.provider.enqueue(executed.clone());
        Cycle { input, output, executed }
    }

    /// One cycle: decides, then time passes and the provider moves on.
    pub fn step(&mut self) -> Cycle {
        let cycle = self.decide();
        self.now = self.now.after(self.step);
        self.provider.advance(self.now);
        cycle
    }

    /// Some cycles.
    pub fn run(&mut self, cycles: u32) {
        for _ in 0..cycles {
            self.step();
        }
    }

    /// Runs until nothing was decided for `quiet` cycles in which nothing was under
    /// way, and tells how many cycles passed before them; none if that takes more
    /// than `most`.
    pub fn run_until_quiet(&mut self, quiet: u32, most: u32) -> Option<u32> {
        let mut calm = 0;
        for passed in 1..=most {
            let settled = self.provider.is_settled();
            let decided = !self.step().output.actions.is_empty();
            calm = if settled && !decided { calm + 1 } else { 0 };
            if calm == quiet {
                return Some(passed - quiet);
            }
        }
        None
    }

    /// A roll-up arrives. New needs arrive now.
    pub fn roll_up(&mut self, cluster: &ClusterId, mut needs: Vec<Need>) {
        for need in &mut needs {
            need.arrival = self.now.0;
        }
        self.demand.replace(cluster, needs);
    }

    /// The shard process starts anew: it knows what the provider echoes and waits
    /// for roll-ups.
    pub fn restart(&mut self) {
        self.provider.restart(self.now);
        self.demand = Demand::default();
        self.gang_ages.clear();
        self.mirror = self.mirror.take().map(|_| Mirror::default());
    }

    /// The clock.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Cycles decided so far.
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Counted so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
