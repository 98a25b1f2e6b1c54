//! A whole shard with its client against scripted coordinators, over gRPC and in
//! virtual time.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests fail by panicking")]

mod absent;
mod instructions;
mod leader;
mod pace;
mod report;
mod rig;
mod security;
mod shared;
mod trace;
