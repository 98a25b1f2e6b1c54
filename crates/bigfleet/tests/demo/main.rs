//! `bigfleet demo` as a person starts it: scenarios pass, the guide answers as its contract says,
//! and nothing is left behind however it ends.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod ending;
mod guide;
mod hosted;
mod rig;
mod terminal;
