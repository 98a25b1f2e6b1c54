//! The closed loop: the decision engine against an asynchronous provider, pure,
//! seeded and in virtual time (engine chapter §15, 32–40).
//!
//! One cycle: picture → [`bigfleet_engine::Engine`], told what changed → re-stamp →
//! queue → the provider moves on. Everything a shard keeps between cycles is kept here
//! (stamps, idle and drain clocks, pending actions, gang ages) and nothing else,
//! so that a loop which never settles is the engine's and not the shell's.
//! Equal seeds give equal runs.

mod closed_loop;
mod counters;
mod demand;
mod latency;
mod mirror;
mod pods;
mod provider;
mod rails;
mod random;
mod restamp;

pub use closed_loop::{Cycle, Simulation};
pub use counters::Counters;
pub use demand::Demand;
pub use latency::{AfterCreate, Dwell, Latency};
pub use pods::Pods;
pub use provider::Provider;
