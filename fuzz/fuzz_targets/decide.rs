//! Worlds of any seed are decided without a panic, as the oracle decides them,
//! and keep every invariant that one cycle can show.

#![no_main]

use bigfleet_engine::decide;
use bigfleet_oracle::{invariants, worlds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|seed: u64| {
    let input = worlds::world(seed);
    let mut output = decide(&input);
    assert_eq!(invariants::check(&input, &output), Vec::<String>::new(), "seed {seed}");
    let mut oracle = bigfleet_oracle::decide(&input);
    // Which comparison decided a domain is told, not compared.
    for action in output.actions.iter_mut().chain(&mut oracle.actions) {
        action.domain_rule = 0;
    }
    assert_eq!(output, oracle, "seed {seed}");
});
