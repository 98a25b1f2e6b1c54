//! What readers are shown of a cycle (engine chapter §9, §10) follows from what it
//! decided: read a second time, plainly, from its input and output.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod explain;
mod ledger;
mod plain;
mod rows;
mod watching;

use bigfleet_engine::{CycleInput, CycleOutput, Engine};
use bigfleet_oracle::worlds;

/// Worlds per test; `BIGFLEET_WORLDS` asks for more, shared among the many tests.
const WORLDS: u64 = 3_000;

fn seeds() -> std::ops::Range<u64> {
    let worlds = std::env::var("BIGFLEET_WORLDS").ok();
    let asked = worlds.map(|text| text.parse::<u64>().expect("BIGFLEET_WORLDS is a number"));
    0..asked.map_or(WORLDS, |asked| WORLDS.max(asked / 10))
}

/// A world, decided.
fn decided(seed: u64) -> (CycleInput, Engine, CycleOutput) {
    let input = worlds::world(seed);
    let mut engine = Engine::load(&input);
    engine.cycle(input.now);
    let output = engine.output();
    (input, engine, output)
}
