//! The parts on an API server, in memory and real.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod budget;
mod events;
mod lease;
mod memory;
mod real;
mod store;
mod wait;
