//! Nodes: the mirror of machines into UpcomingNodes, reclaim and drain, uncordon and cleanup.

pub mod cleanup;
mod counters;
pub mod drain;
pub mod effect;
mod handle;
pub mod identity;
mod ledger;
pub mod mirror;
mod tell;
pub mod uncordon;
pub mod upcoming;
mod view;
mod worker;

pub use counters::{Counters, PodEvents};
pub use handle::{AckSink, Config, Nodes};
pub use view::{NodeView, ReadyCondition, StatusView, UpcomingView};
