//! The hint at what could still be had.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Quantity, Requirement};

/// What the fleet could still give for one kind of demand: a hint, never a reservation.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "AvailableCapacity",
    plural = "availablecapacities",
    singular = "availablecapacity",
    shortname = "avc",
    category = "fleet",
    status = "AvailableCapacityStatus",
    derive = "PartialEq",
    doc = "AvailableCapacity is a hint at what the fleet could still give for one kind of demand. It \
           is no reservation: it may be stale, and others may take the capacity first.",
    printcolumn(name = "Availability", type_ = "string", json_path = ".spec.availability"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".spec.availableCount"),
    printcolumn(name = "Cost", type_ = "string", json_path = ".spec.cost"),
    printcolumn(
        name = "Requirements",
        type_ = "string",
        json_path = ".spec.requirements[*].key",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AvailableCapacitySpec {
    /// How sure it is that more capacity of this kind can be had.
    pub availability: Availability,

    /// How many machines of this kind could be had now, as far as is known.
    pub available_count: i32,

    /// Price of one machine, in US dollars per hour.
    pub cost: Quantity,

    /// What one such machine offers, by resource name; `{}` when that is not known.
    pub resources: BTreeMap<String, Quantity>,

    /// The constraints on machine labels that this hint speaks of. Same does not appear here:
    /// co-location is asked for in spec.coLocation of a CapacityRequest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
}

/// Always empty: a hint has nothing to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AvailableCapacityStatus {}

/// How sure it is that more capacity can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Availability {
    /// None, or nothing is known.
    None,
    /// Unlikely.
    Low,
    /// Likely.
    Medium,
    /// As good as certain.
    High,
}
