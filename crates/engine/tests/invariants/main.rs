//! The invariants that one cycle, or two compared, can show (engine chapter §15),
//! each by its number. The closed loop shows the others (`crates/sim`).
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;
mod one_cycle;
mod priority;
mod sizing;
mod support;
mod topology;
