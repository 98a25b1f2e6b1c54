//! What was read for one pod, at one time.

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

/// A pod and what BigFleet has for it.
#[derive(Debug, Clone)]
pub struct Picture {
    /// When it was read.
    pub now: Timestamp,
    /// What the kubeconfig calls its cluster.
    pub cluster: Option<String>,
    /// The pod.
    pub pod: Pod,
    /// Its request.
    pub request: Option<CapacityRequest>,
    /// Every machine of this cluster.
    pub upcoming: Vec<UpcomingNode>,
    /// What could still be had for the request's profile.
    pub available: Option<AvailableCapacity>,
}

/// The machines of a cluster and its Nodes.
#[derive(Debug, Clone)]
pub struct Machines {
    /// When they were read.
    pub now: Timestamp,
    /// The machines.
    pub upcoming: Vec<UpcomingNode>,
    /// The Nodes.
    pub nodes: Vec<Node>,
}
