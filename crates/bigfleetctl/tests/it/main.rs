//! `bigfleetctl` as a process, against scripted coordinators and real shards over real
//! gRPC.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod brake;
mod bundle;
mod doctor;
mod frame;
mod kept;
mod leader;
mod lists;
mod moves;
mod mutations;
mod reference;
mod restore;
mod rig;
mod screens;
mod security;
mod shard;
mod snapshot;
mod status;
