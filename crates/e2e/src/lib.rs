//! The rig of the end-to-end tests: a real control plane, an agent that stands for all kubelets,
//! and the binaries under test with no more rights than their charts give them.
//!
//! ```no_run
//! use bigfleet_e2e::{agent::Habits, cluster::Cluster, wait::eventually, workload::Workload};
//!
//! # async fn test() {
//! let Some(cluster) = Cluster::start_or_skip(Habits::default()).await else { return };
//! cluster.create(&Workload::new("default", "web").replicas(4).deployment()).await;
//! eventually("four pods run", || async { cluster.running("default", "web").await == 4 }).await;
//! # }
//! ```
//!
//! Whatever goes wrong in the rig fails the test that uses it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

pub mod agent;
pub mod cluster;
pub mod fleet;
pub mod measure;
pub mod tap;
pub mod wait;
pub mod workload;
