//! What the agent keeps of each object.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase, keys};
use bigfleet_net::duration;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::ResourceExt;

use super::{DURATION, TERMINATION};

/// Marks the nodes that are the agent's, with their machine.
pub(super) const MACHINE: &str = "e2e.bigfleet.lucy.sh/machine";

/// A machine on its way, or here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Machine {
    pub(super) id: String,
    pub(super) ready: bool,
    pub(super) resources: BTreeMap<String, String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    pub(super) provider_id: Option<String>,
}

impl Machine {
    pub(super) fn of(object: &UpcomingNode) -> Option<Self> {
        let status = object.status.as_ref();
        let resources = object.spec.resources.iter();
        Some(Self {
            id: object.annotations().get(keys::MACHINE_ID)?.clone(),
            ready: status.is_some_and(|status| status.phase == UpcomingNodePhase::Ready),
            resources: resources.map(|(name, value)| (name.clone(), value.to_string())).collect(),
            labels: object.spec.labels.clone(),
            taints: object.spec.taints.clone(),
            provider_id: status.and_then(|status| status.provider_id.clone()),
        })
    }
}

/// A node of ours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeView {
    pub(super) uid: String,
    pub(super) machine: String,
    /// Has its status; one without was left half made.
    pub(super) ready: bool,
}

impl NodeView {
    pub(super) fn of(node: &Node) -> Option<Self> {
        let of = |key: &str| node.annotations().get(key);
        let status = node.status.as_ref();
        Some(Self {
            uid: node.uid().unwrap_or_default(),
            // A provider that makes Nodes itself says it so.
            machine: of(MACHINE).or_else(|| of(keys::MACHINE_ID))?.clone(),
            ready: status.is_some_and(|status| status.allocatable.is_some()),
        })
    }
}

/// A pod that has a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodView {
    pub(super) uid: String,
    pub(super) node: String,
    pub(super) phase: String,
    pub(super) leaving: bool,
    pub(super) grace: Duration,
    pub(super) duration: Option<Duration>,
    pub(super) termination: Option<Duration>,
}

impl PodView {
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let node = pod.spec.as_ref()?.node_name.clone().filter(|node| !node.is_empty())?;
        let time = |key: &str| {
            let text = pod.annotations().get(key)?;
            Some(duration::parse(text).unwrap_or_else(|error| panic!("{key}: {error}")))
        };
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
        Some(Self {
            uid: pod.uid().unwrap_or_default(),
            node,
            phase: pod.status.as_ref()?.phase.clone().unwrap_or_default(),
            leaving: pod.metadata.deletion_timestamp.is_some(),
            grace: Duration::from_secs(u64::try_from(grace).unwrap_or_default()),
            duration: time(DURATION),
            termination: time(TERMINATION),
        })
    }
}
