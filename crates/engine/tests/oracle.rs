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

/// Compares part by part, so that a difference can be read.
fn assert_same(a: &CycleOutput, b: &CycleOutput, seed: u64) {
    assert_eq!(a.verdicts.len(), b.verdicts.len(), "seed {seed}: verdicts");
    for (at, (a, b)) in a.verdicts.iter().zip(&b.verdicts).enumerate() {
        assert_eq!(a, b, "seed {seed}: verdict {at}");
    }
    assert_eq!(a.claims, b.claims, "seed {seed}: claims");
    for (a, b) in a.actions.iter().zip(&b.actions) {
        assert_eq!(a, b, "seed {seed}: actions");
    }
    assert_eq!(a.unresolved, b.unresolved, "seed {seed}: unresolved");
    assert_eq!(a.gang_ages, b.gang_ages, "seed {seed}: ages");
    let rest = |of: &CycleOutput, than: &CycleOutput| {
        of.actions.get(than.actions.len()..).unwrap_or_default().to_vec()
    };
    assert_eq!(rest(a, b), rest(b, a), "seed {seed}: more actions");
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
        assert_same(&comparable(engine), &comparable(oracle), seed);
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
