//! End to end on a real control plane.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod demand;
mod rig;
mod scene;
mod scripted;
