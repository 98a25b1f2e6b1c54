//! The documentation is held to its word.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod commands;
mod generated;
mod links;
mod metrics;
mod pages;
mod summary;
