//! What several tests of random worlds share: how many, and how outputs compare.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]
#![allow(dead_code, reason = "each test uses some of it")]

use std::{env::VarError, ops::Range};

use bigfleet_engine::{CycleInput, CycleOutput};
use bigfleet_oracle::worlds::SplitMix64;

/// Seeds of a run: `worlds`, or as many as a share of `BIGFLEET_WORLDS` asks for.
pub(crate) fn seeds(worlds: u64, share: u64) -> Range<u64> {
    match std::env::var("BIGFLEET_WORLDS") {
        Err(VarError::NotPresent) => 0..worlds,
        asked => {
            let asked = asked.expect("BIGFLEET_WORLDS is text");
            let asked: u64 = asked.parse().expect("BIGFLEET_WORLDS is a number");
            0..asked.div_ceil(share)
        }
    }
}

/// Which of several comparisons decided a domain is told, not compared.
pub(crate) fn comparable(mut output: CycleOutput) -> CycleOutput {
    for action in &mut output.actions {
        action.domain_rule = 0;
    }
    output
}

/// Compares part by part, so that a difference can be read.
pub(crate) fn assert_same(a: &CycleOutput, b: &CycleOutput, what: &str) {
    assert_eq!(a.verdicts.len(), b.verdicts.len(), "{what}: verdicts");
    for (at, (a, b)) in a.verdicts.iter().zip(&b.verdicts).enumerate() {
        assert_eq!(a, b, "{what}: verdict {at}");
    }
    assert_eq!(a.claims, b.claims, "{what}: claims");
    assert_eq!(a.outgrown, b.outgrown, "{what}: outgrown");
    for (a, b) in a.actions.iter().zip(&b.actions) {
        assert_eq!(a, b, "{what}: actions");
    }
    assert_eq!(a.unresolved, b.unresolved, "{what}: unresolved");
    assert_eq!(a.gang_ages, b.gang_ages, "{what}: ages");
    let rest = |of: &CycleOutput, than: &CycleOutput| {
        of.actions.get(than.actions.len()..).unwrap_or_default().to_vec()
    };
    assert_eq!(rest(a, b), rest(b, a), "{what}: more actions");
}

/// The same picture in another order.
pub(crate) fn shuffled(mut input: CycleInput, seed: u64) -> CycleInput {
    let mut random = SplitMix64::new(seed);
    random.shuffle(&mut input.snapshot);
    random.shuffle(&mut input.demand);
    random.shuffle(&mut input.pending);
    input
}
