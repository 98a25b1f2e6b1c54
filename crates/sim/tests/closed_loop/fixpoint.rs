//! 32: at static demand and supply the loop comes to rest.

use std::time::Duration;

use bigfleet_oracle::worlds::world;
use bigfleet_sim::{Dwell, Latency, Simulation};

use crate::support::latency;

/// Longer than any hold at this step and longer than the way to the second
/// re-probe of a parked gang.
const QUIET: u32 = 72;
const MOST: u32 = 1000;
const STEP: Duration = Duration::from_secs(10);

fn loud(seed: u64, latency: Latency) -> Option<String> {
    let mut sim = Simulation::new(seed, latency, world(seed));
    sim.step = STEP;
    if sim.run_until_quiet(QUIET, MOST).is_some() {
        return None;
    }
    let before = sim.counters().clone();
    sim.run(100);
    let after = sim.counters();
    Some(format!(
        "seed {seed}: in 100 cycles after {MOST}: {} bootstraps, {} provisions, {} preempts, {} reclaims, {} deletes",
        after.bootstraps - before.bootstraps,
        after.provisions - before.provisions,
        after.preempts - before.preempts,
        after.reclaims - before.reclaims,
        after.deletes - before.deletes,
    ))
}

fn all_quiet(seeds: std::ops::Range<u64>, latency: impl Fn(u64) -> Latency) {
    let loud: Vec<String> = seeds.filter_map(|seed| loud(seed, latency(seed))).collect();
    assert!(loud.is_empty(), "{} worlds never rest:\n{}", loud.len(), loud.join("\n"));
}

#[test]
fn inv_32_fixpoint_with_random_latencies() {
    all_quiet(0..1500, latency);
}

#[test]
fn inv_32_fixpoint_with_instant_transitions() {
    all_quiet(10_000..11_000, |_| Latency::all(Dwell::fixed(0)));
}
