//! The three kinds of `bigfleet.lucy.sh/v1alpha1` as Rust types.
//!
//! - [`CapacityRequest`]: what one pod asks of the fleet; the input.
//! - [`UpcomingNode`]: a machine on its way to this cluster, or in it.
//! - [`AvailableCapacity`]: a hint at what the fleet could still give.
//!
//! The manifests in `api/crd` are rendered from these types; write them anew
//! after a change with `cargo run -p bigfleet-crds --example manifests`.
//!
//! Reading is lenient where an object may have been stored under an older
//! schema: text that only a newer schema refuses (a quantity, an operator)
//! is kept as it is, because one unreadable object would fail a whole list.

// The lint takes the fields of one printer column for those of another.
#![allow(clippy::duplicated_attributes)]

mod available_capacity;
mod capacity_request;
mod co_location;
pub mod conditions;
mod definition;
mod group;
pub mod keys;
pub mod manifests;
mod names;
mod quantity;
mod requirement;
mod topology_spread;
mod upcoming_node;

pub use available_capacity::{
    Availability, AvailableCapacity, AvailableCapacitySpec, AvailableCapacityStatus,
};
pub use capacity_request::{
    CapacityRequest, CapacityRequestPhase, CapacityRequestSpec, CapacityRequestStatus,
};
pub use co_location::CoLocation;
pub use definition::{available_capacity_crd, capacity_request_crd, upcoming_node_crd};
pub use group::group_text;
pub use names::{available_capacity_name, upcoming_node_name};
pub use quantity::Quantity;
pub use requirement::{Operator, Requirement};
pub use topology_spread::{TopologySpread, WhenUnsatisfiable};
pub use upcoming_node::{UpcomingNode, UpcomingNodePhase, UpcomingNodeSpec, UpcomingNodeStatus};

/// API group of the three kinds.
pub const GROUP: &str = "bigfleet.lucy.sh";

/// Version of the three kinds.
pub const VERSION: &str = "v1alpha1";
