//! What readers are shown of a cycle (engine chapter §9, §10) follows from what it
//! decided: read a second time, plainly, from its input and output.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod explain;
mod ledger;
mod plain;
mod rows;
mod watching;

use bigfleet_engine::{CycleInput, CycleOutput, Engine};
use bigfleet_oracle::worlds;

/// Worlds per test, of which there are many: at least so many each.
const WORLDS: u64 = 3_000;

fn seeds() -> std::ops::Range<u64> {
    0..WORLDS.max(common::seeds(WORLDS, 10).end)
}

/// A world, decided.
fn decided(seed: u64) -> (CycleInput, Engine, CycleOutput) {
    let input = worlds::world(seed);
    let mut engine = Engine::load(&input);
    engine.cycle(input.now);
    let output = engine.output();
    (input, engine, output)
}
