//! Simulated clouds: by themselves, under the kit, and as a process.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod admin;
mod cloud;
mod fleets;
mod guide;
mod kit;
mod process;
mod replay;
#[path = "../../../provider-kit/tests/it/rig.rs"]
#[allow(dead_code, reason = "shared with the kit's own tests")]
mod rig;
