//! The controller on an API server in memory: the numbered invariants under faults, in virtual
//! time. `BIGFLEET_SEED` replays one run.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chaos;
mod election;
mod groups;
mod site;
mod surroundings;
