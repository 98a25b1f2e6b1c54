//! `kubectl bigfleet`: why a pod waits, and what comes for it (experience chapter §4.1).
//!
//! It reads with the caller's kubeconfig and the three kinds alone; it has no access to a
//! shard and changes nothing. What a person sees is made by pure functions of a
//! [`picture`], so that every screen is a test.

pub mod cli;
mod cluster;
mod error;
pub mod needs;
pub mod nodes;
pub mod picture;
pub mod wait;
pub mod waiting;
pub mod why;

pub use cli::run;
pub use error::Error;
