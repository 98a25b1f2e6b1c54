//! The coordinator: a small replicated map of who owns what
//! (`docs/spec/coordinator.md`). It makes no decision about machines and is never
//! needed for one; it only answers calls.
//!
//! * [`log`]: the data directory: write-ahead log, hard state, snapshots.
//! * [`consensus`]: one group of replicas that agree on that log.
//! * [`state`]: the state machine that the log drives.
//! * [`reports`]: what shards say, held by the leader alone.
//! * [`rebalance`]: what the leader moves between shards.
//! * [`service`]: the RPCs, over any replica.
//! * [`backup`]: the leader's exports, and what reads them back.
//! * [`flags`], [`process`]: all of it as one process.

pub mod backup;
pub mod consensus;
mod dice;
pub mod flags;
pub mod log;
pub mod metrics;
pub mod process;
pub mod rebalance;
pub mod reports;
pub mod service;
pub mod state;
mod wall;
