//! `shard-step`: a whole shard, cycle by cycle, without a network.
//!
//! 200 clusters hold four fifths of the machines, of catalog R, and want them; a
//! tenth is idle and a tenth for sale. Between two cycles every cluster sends a
//! roll-up, one in twenty with a demand that moved a little, and the provider changes
//! one machine in 300: 2 % a minute at a cycle every ten seconds. Most of these
//! have another price; some fail, and some that failed come back.
//!
//! The provider is read and what is known left out beside the cycle, as in a shard:
//! `…/read` says what that takes without the provider's own work. The other figures are the cycle's own.

use std::{sync::Arc, time::Instant};

use bigfleet_provider::{Identity, Stamped};
use bigfleet_shard::{
    Options,
    stepper::{Step, Stepper},
};
use bigfleet_wire::v1alpha1 as wire;
use tokio::runtime::Runtime;

use super::{
    assignment::speculative,
    catalog::{catalog_machine, pick},
    fleet::{Cluster, bound_cluster, roll_up},
    make::Maker,
    measure::{Measurement, Run, Samples, timed},
    random::Random,
    supply::Lean,
};
use crate::error::Error;

const SEED: u64 = 6;
const CLUSTERS: usize = 200;
const SIZES: [(&str, usize); 3] = [("50k", 50_000), ("100k", 100_000), ("500k", 500_000)];
/// Of so many machines one changes between two cycles.
const CHANGING: usize = 300;
const WORKERS: usize = 4_096;
/// Of so many clusters one has another demand than in the cycle before.
const MOVING: usize = 20;
/// Records of one page of a List.
const PAGE: u32 = 10_000;
/// Cycles in which allocations are counted and nothing is timed.
const COUNTED: u32 = 3;
/// Until what is left of the start is done.
const SETTLING: u32 = 20;

const PARTS: [&str; 5] = ["reconcile", "take-in", "decide", "enqueue", "publish"];

/// A shard, its provider and its clusters.
struct Rig {
    runtime: Runtime,
    lean: Lean,
    stepper: Stepper,
    clusters: Vec<Cluster>,
    machines: usize,
    random: Random,
    timestamp: i64,
}

impl Rig {
    fn build(run: &Run, machines: usize) -> Result<Self, Error> {
        let building = run.progress.building();
        let (lean, mut maker, mut made) = (Lean::default(), Maker::default(), 0);
        let mut add = |tracked: bigfleet_engine::Tracked| {
            lean.add(tracked.machine);
            made += 1;
            building.has(made);
        };
        let (bound, spare) = (machines * 8 / 10 / CLUSTERS, machines / 10);
        let clusters = (0..CLUSTERS).map(|c| bound_cluster(&mut add, &mut maker, bound, c));
        let clusters: Vec<_> = clusters.collect();
        for i in 0..spare {
            add(maker.make(catalog_machine(pick(i), i, format!("idle-{i}"))));
        }
        for i in 0..spare {
            add(speculative(&mut maker, pick(i), i));
        }
        assert_eq!(made, machines, "machines of the scenario");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let options = Options {
            // What a cycle decides finds its place in the queue and is done before the
            // next, or each would decide what the last could not hand out.
            execute_concurrency: WORKERS,
            provider_max_inflight: WORKERS,
            local_bootstrap: true,
            incremental_reconcile: true,
            provider_list_page: PAGE,
            ..Options::default()
        };
        let supply = Arc::new(Stamped::new(lean.clone(), Identity::new("bench", 1)));
        let stepper = runtime.block_on(async { Stepper::new(options, supply) })?;
        let random = Random::new(SEED);
        Ok(Self { runtime, lean, stepper, clusters, machines, random, timestamp: 0 })
    }

    /// From nothing to rest.
    fn start(&mut self) {
        self.read(false);
        self.roll_ups(|_| 100);
        for _ in 0..SETTLING {
            let step = self.step();
            self.settle();
            self.read(true);
            if step.actions == 0 {
                break;
            }
        }
        assert_eq!(self.runtime.block_on(self.stepper.size()).0, self.machines, "all are known");
    }

    fn read(&mut self, incremental: bool) {
        self.runtime.block_on(self.stepper.read(incremental));
    }

    fn step(&mut self) -> Step {
        self.runtime.block_on(self.stepper.step())
    }

    /// What was handed out is done before the next step.
    fn settle(&mut self) {
        self.runtime.block_on(self.stepper.settle());
        self.lean.give_back(&self.runtime.block_on(self.stepper.reclaims()));
    }

    /// Every cluster tells its whole demand: `percent` of what it has at rest.
    fn roll_ups(&mut self, mut percent: impl FnMut(&mut Random) -> usize) {
        self.timestamp += 1;
        let moved = self.random.below(MOVING);
        for (c, cluster) in self.clusters.iter().enumerate() {
            let moves = c % MOVING == moved;
            let random = &mut self.random;
            let (id, needs) = roll_up(cluster, || if moves { percent(random) } else { 100 });
            let message = wire::ClusterCapacityNeeds {
                cluster_id: id.to_string(),
                timestamp_unix_nanos: self.timestamp,
                needs: needs.iter().map(wire::CapacityNeed::from).collect(),
            };
            assert!(self.stepper.roll_up(&id, message), "a roll-up of the scenario is taken");
        }
    }

    /// What happens between two cycles.
    fn churn(&mut self) {
        self.lean.churn(&mut self.random, self.machines / CHANGING);
        self.roll_ups(|random| [97, 100, 103][random.below(3)]);
    }

    fn measure(&mut self, run: &Run, size: &str, incremental: bool) -> Vec<Measurement> {
        let how = if incremental { "incremental" } else { "full" };
        let steps = u64::from(run.cycles + COUNTED);
        run.progress.expect(if incremental { "incremental" } else { "full" }, steps);
        let (mut whole, mut parts, mut read, mut rare) =
            <(Samples, [Samples; PARTS.len()], Samples, Samples)>::default();
        for turn in 0..steps {
            self.churn();
            let scanned = timed(|| self.runtime.block_on(self.stepper.scan()));
            let began = Instant::now();
            self.read(incremental);
            let listed = began.elapsed().saturating_sub(self.lean.listing());
            if turn < u64::from(COUNTED) {
                let allocated = bigfleet_alloc::counted(|| self.step()).1;
                whole.allocated.calls += allocated.calls;
                whole.allocated.bytes += allocated.bytes;
                whole.counted += 1;
            } else {
                let step = self.step();
                let kind = if step.full_pass { &mut rare } else { &mut whole };
                kind.worked.push(step.whole);
                kind.scanned.push(scanned);
                if !step.full_pass {
                    read.worked.push(listed);
                    let took =
                        [step.reconcile, step.take_in, step.decide, step.enqueue, step.publish];
                    parts.iter_mut().zip(took).for_each(|(part, took)| part.worked.push(took));
                }
            }
            self.settle();
            run.progress.step();
        }
        let (machines, needs) = self.runtime.block_on(self.stepper.size());
        let subject = |variant: String| run.subject(&variant, machines, needs);
        let mut measured = vec![whole.measurement(&subject(format!("{size}/{how}")))];
        let named = parts.into_iter().zip(PARTS).chain([(read, "read")]);
        for (mut samples, part) in named {
            samples.scanned.clone_from(&whole.scanned);
            measured.push(samples.measurement(&subject(format!("{size}/{how}/{part}"))));
        }
        if !rare.worked.is_empty() {
            measured.push(rare.measurement(&subject(format!("{size}/{how}/full-pass"))));
        }
        measured
    }
}

pub(super) fn shard_step(run: &Run) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for (size, machines) in SIZES {
        let mut rig = Rig::build(run, machines)?;
        rig.start();
        measured.extend(rig.measure(run, size, true));
        measured.extend(rig.measure(run, size, false));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_takes_in_what_changed_and_does_something_about_it() {
        let run = Run::new("small", 3, 1);
        let mut rig = Rig::build(&run, 6_000).unwrap();
        rig.start();
        for incremental in [true, false] {
            let mut enqueued = 0;
            for _ in 0..10 {
                rig.churn();
                rig.read(incremental);
                enqueued += rig.step().enqueued;
                rig.settle();
            }
            assert!(enqueued > 0, "incremental: {incremental}");
        }
        // Once nothing changes any more, nothing is left to do.
        let rests = (0..20).any(|_| {
            rig.roll_ups(|_| 100);
            rig.read(true);
            let actions = rig.step().actions;
            rig.settle();
            actions == 0
        });
        assert!(rests, "what was decided is done");
        let measured = rig.measure(&run, "6k", false);
        assert_eq!(measured[0].machines, 6_000);
    }
}
