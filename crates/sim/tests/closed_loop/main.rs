//! The invariants that need a loop (engine chapter §15, 32–44) and its
//! acceptance cases (§16).
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod acceptance;
mod churn;
mod fixpoint;
mod gangs;
mod idempotence;
mod kernel;
mod long;
mod pods;
mod preemption;
mod rails;
mod safety;
mod stability;
mod support;
