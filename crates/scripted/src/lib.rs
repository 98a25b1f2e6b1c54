//! Peers of a shard that play their part from a script.
//!
//! - [`operator`]: one operator on a real `Shard.Session` stream, with a knob
//!   for every way in which an operator can be slow, silent, wrong or gone;
//! - [`cluster`]: the demand of one cluster, from pods that bind, are evicted
//!   and come back; it outlives its operators;
//! - [`member`]: both together, stepping and reconnecting by themselves;
//! - [`load`]: thousands of operators at once, measured;
//! - [`coordinator`]: a coordinator that answers as it is told;
//! - [`holder`]: the other end of its reports, a shard that shares its provider;
//! - [`shard`]: the other end of an operator's session, likewise;
//! - [`served`]: what they listen by, for others who stand between two processes.
//!
//! They know the wire and nothing of what is at its other end, so that what
//! they prove holds for any shard:
//!
//! ```no_run
//! use std::time::Duration;
//! use bigfleet_net::tls::Security;
//! use bigfleet_scripted::{
//!     cluster::{Cluster, Shape},
//!     member::{Member, Standing},
//!     operator::{Operator, OperatorOptions, Reclaim},
//! };
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let mut cluster = Cluster::new("c-1", 7);
//! cluster.deploy(&Shape::new(2_000, 4 << 30).priority(100), 12);
//!
//! let options = OperatorOptions::new("c-1");
//! let operator = Operator::new("127.0.0.1:7780", &Security::Plaintext, options);
//! operator.on_reclaim(|_| Reclaim::Drain(Duration::from_millis(50)));
//!
//! let member = Member::start(operator, cluster, Duration::from_millis(100));
//! member.wait_for("met demand", |now| now.demand_met, Duration::from_secs(60)).await?;
//! member.operator().await.abort().await;
//! let back = |now: &Standing| now.sessions == 2 && now.demand_met;
//! member.wait_for("a second session", back, Duration::from_secs(60)).await?;
//! # Ok(()) }
//! ```

pub mod cluster;
pub mod coordinator;
mod error;
pub mod holder;
pub mod load;
pub mod member;
pub mod operator;
pub mod random;
pub mod served;
pub mod shard;

pub use error::Error;
