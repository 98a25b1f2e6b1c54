//! The operator of one cluster: reads CapacityRequests, sends roll-ups, renders bootstrap
//! blobs, drains nodes, and mirrors the machines of its shard into UpcomingNodes and
//! AvailableCapacities.

pub mod ack;
pub mod bootstrap;
pub mod hold;
pub mod metrics;
pub mod nodes;
pub mod pod_status;
pub mod rollup;
pub mod session;
pub mod status;

pub use metrics::Metrics;
