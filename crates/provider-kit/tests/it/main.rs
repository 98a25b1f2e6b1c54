//! The kit over real gRPC, and its invariants (provider chapter §12).
//!
//! Random tests print their seed; `BIGFLEET_SEED` replays one.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod callers;
mod chaos;
mod durable;
mod failure;
mod lifecycle;
mod rig;
mod secrets;
mod start;
