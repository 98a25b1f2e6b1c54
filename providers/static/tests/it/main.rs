//! The binary with real hooks: shell scripts in a directory of the test's own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod configuration;
mod crash;
mod kills;
mod lifecycle;
mod load;
mod reload;
mod rig;
