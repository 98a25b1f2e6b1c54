//! `bigfleet coordinator` as processes: three replicas over real gRPC and mTLS, with
//! real disks, a real shard and the real admin command line. Each test is a row of the
//! fault matrix (coordinator chapter §16).
//!
//! `BIGFLEET_BINARIES` names a directory with other binaries than those just built.
//! `BIGFLEET_LEADER_KILLS` and `BIGFLEET_REPORTS_PER_SECOND` make the kills of leaders
//! as many and the load as heavy as one likes.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod all_in_one;
mod client;
mod disks;
mod flags;
mod fleet;
mod forming;
mod identities;
mod leaders;
mod load;
mod quorum;
mod restarts;
mod wiped;

#[path = "../rig/mod.rs"]
mod rig;
