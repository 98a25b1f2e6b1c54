//! End to end on a real control plane: what becomes of nodes, and what faults do to them.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod chart;
mod drains;
mod faults;
mod patience;
mod preemption;
mod scene;
mod soak;
mod stage;
mod tls;
