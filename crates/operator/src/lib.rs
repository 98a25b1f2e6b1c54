//! The operator of one cluster: reads CapacityRequests, sends roll-ups, renders bootstrap
//! blobs, drains nodes, and mirrors the machines of its shard into UpcomingNodes and
//! AvailableCapacities.
//!
//! [`operator::start`] puts the parts together around a client; [`process`] is the binary
//! around that. Demand flows through [`rollup`], past [`hold`], into [`session`]; the
//! shard's answers go to [`ack`] and [`pod_status`], everything else to what runs beside
//! ([`side`]).

pub mod ack;
pub mod bootstrap;
pub mod capacity;
pub mod dispatch;
pub mod flags;
pub mod hold;
pub mod metrics;
pub mod nodes;
pub mod operator;
pub mod pod_status;
pub mod process;
pub mod rollup;
pub mod session;
pub mod side;
pub mod status;

pub use metrics::Metrics;
