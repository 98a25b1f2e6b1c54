//! Nodes: the mirror of machines into UpcomingNodes, reclaim and drain, uncordon and cleanup.

pub mod cleanup;
pub mod drain;
pub mod effect;
pub mod identity;
mod ledger;
pub mod mirror;
pub mod uncordon;
pub mod upcoming;
pub mod view;

pub use view::{NodeView, UpcomingView};
