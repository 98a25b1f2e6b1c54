//! The service over real gRPC, on a replica that is a group of its own.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod gates;
mod mutations;
mod reads;
mod rebalancing;
mod reporting;
mod rig;
mod single;
mod unavailable;
mod upkeep;
