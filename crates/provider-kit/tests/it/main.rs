//! The kit over real gRPC, and its invariants (provider chapter §12).
//!
//! Random tests print their seed; `BIGFLEET_SEED` replays one.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod bad_input;
mod callers;
mod chaos;
mod durable;
mod failure;
mod guide;
mod lifecycle;
#[path = "../../examples/rack.rs"]
#[allow(dead_code, unreachable_pub, reason = "a whole program by itself")]
mod rack;
mod rig;
mod secrets;
mod start;
