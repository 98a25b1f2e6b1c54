//! The kit over real gRPC, and its invariants (provider chapter §12).
//!
//! Random tests print their seed; `BIGFLEET_SEED` replays one.

mod callers;
mod chaos;
mod durable;
mod failure;
mod lifecycle;
mod rig;
mod secrets;
mod start;
