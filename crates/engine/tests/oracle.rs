//! The engine decides exactly as the oracle, a second implementation written
//! from the same specification: on every seed, to the last field.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use bigfleet_engine::{CycleInput, CycleOutput, decide};
use bigfleet_oracle::{invariants, worlds};

/// Worlds per run; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 20_000;

fn seeds() -> std::ops::Range<u64> {
    let worlds = std::env::var("BIGFLEET_WORLDS").ok();
    0..worlds.map_or(WORLDS, |text| text.parse().expect("BIGFLEET_WORLDS is a number"))
}

/// Which of several comparisons decided a domain is told, not compared.
fn comparable(mut output: CycleOutput) -> CycleOutput {
    for action in &mut output.actions {
        action.domain_rule = 0;
    }
    output
}

fn shuffled(mut input: CycleInput, seed: u64) -> CycleInput {
    let mut random = worlds::SplitMix64::new(seed);
    random.shuffle(&mut input.snapshot);
    random.shuffle(&mut input.demand);
    random.shuffle(&mut input.pending);
    input
}

#[test]
fn the_engine_equals_the_oracle() {
    for seed in seeds() {
        let input = worlds::world(seed);
        let (engine, oracle) = (decide(&input), bigfleet_oracle::decide(&input));
        assert_eq!(comparable(engine), comparable(oracle), "seed {seed}");
    }
}

#[test]
fn inv_47_order_of_input_changes_nothing() {
    for seed in seeds() {
        let input = worlds::world(seed);
        let output = decide(&input);
        assert_eq!(decide(&shuffled(input, seed)), output, "seed {seed}");
    }
}

#[test]
fn invariants_that_one_cycle_can_show_hold() {
    for seed in seeds() {
        let input = worlds::world(seed);
        let violations = invariants::check(&input, &decide(&input));
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    }
}
