//! The state machine under any log (coordinator chapter §5, §16). Pure.
//!
//! Random tests print their seed; `BIGFLEET_SEED` replays one, `BIGFLEET_LONG_SEEDS` asks
//! for more.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod bytes;
mod draw;
mod invariants;
mod protocol;
mod rebalance;
mod replicas;
mod scale;

/// The seeds of a random test: one if `BIGFLEET_SEED` says so, else the first few.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("BIGFLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BIGFLEET_LONG_SEEDS").unwrap_or(few),
    }
}
