//! Shards that share a provider, at their worst.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod hour;
mod models;
mod seeds;
mod volume;
