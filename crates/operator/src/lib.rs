//! The operator of one cluster: reads CapacityRequests, sends roll-ups, renders bootstrap
//! blobs, drains nodes, and mirrors the machines of its shard into UpcomingNodes and
//! AvailableCapacities.

pub mod bootstrap;
pub mod capacity;
pub mod dispatch;
pub mod nodes;
pub mod rollup;
