//! The engine decides exactly as the oracle, a second implementation written
//! from the same specification: on every seed, to the last field.

mod common;

use bigfleet_engine::decide;
use bigfleet_oracle::{invariants, worlds};
use common::{assert_same, comparable, seeds, shuffled};

/// Worlds per run; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 20_000;

#[test]
fn the_engine_equals_the_oracle() {
    for seed in seeds(WORLDS, 1) {
        let input = worlds::world(seed);
        let (engine, oracle) = (decide(&input), bigfleet_oracle::decide(&input));
        assert_same(&comparable(engine), &comparable(oracle), &format!("seed {seed}"));
    }
}

#[test]
fn inv_47_order_of_input_changes_nothing() {
    for seed in seeds(WORLDS, 1) {
        let input = worlds::world(seed);
        let output = decide(&input);
        assert_eq!(decide(&shuffled(input, seed)), output, "seed {seed}");
    }
}

#[test]
fn invariants_that_one_cycle_can_show_hold() {
    for seed in seeds(WORLDS, 1) {
        let input = worlds::world(seed);
        let violations = invariants::check(&input, &decide(&input));
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    }
}
