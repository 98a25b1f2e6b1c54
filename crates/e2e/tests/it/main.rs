//! End to end on a real control plane.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod rig;
