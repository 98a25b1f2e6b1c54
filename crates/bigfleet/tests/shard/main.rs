//! `bigfleet shard` as a process, with the processes it meets in production:
//! a provider with a store, operators over real gRPC, files and signals.
//!
//! `BIGFLEET_BINARIES` names a directory with other binaries than those just
//! built, for example release ones.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod brake;
mod closed_loop;
mod flags;
mod judge;
mod mtls;
mod probes;
mod provider_away;
mod readonly;
mod site;
mod stopping;
mod traces;
mod volumes;

#[path = "../rig/mod.rs"]
mod rig;

use rig::process;
