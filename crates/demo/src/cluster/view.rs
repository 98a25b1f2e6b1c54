//! What the simulated control plane keeps of each object.

use std::collections::BTreeMap;

use bigfleet_crds::{CapacityRequest, UpcomingNode, UpcomingNodePhase, keys};
use bigfleet_model::Quantity;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::api::resource::Quantity as Text,
};
use kube::ResourceExt;

use super::workload::{APP, Workload};

/// Amounts by resource, in nano units.
pub(crate) type Amounts = BTreeMap<String, i128>;
pub(crate) type Labels = BTreeMap<String, String>;

fn amounts(texts: &BTreeMap<String, Text>) -> Amounts {
    let nanos = |text: &Text| text.0.parse::<Quantity>().map_or(0, Quantity::nanos);
    texts.iter().map(|(name, text)| (name.clone(), nanos(text))).collect()
}

/// A pod of the demo.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodView {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) workload: Workload,
    pub(crate) node: Option<String>,
    pub(crate) running: bool,
    pub(crate) leaving: bool,
    pub(crate) needs: Amounts,
    pub(crate) priority: i32,
    pub(crate) selector: Labels,
    /// Key of the domains that may not differ by more than one pod.
    pub(crate) spread: Option<String>,
    /// Key of the domain that all pods of the workload share.
    pub(crate) together: Option<String>,
}

impl PodView {
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let requests = spec.containers.first()?.resources.as_ref()?.requests.as_ref();
        let spread = spec.topology_spread_constraints.as_ref().and_then(|all| all.first());
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
        let terms = affinity
            .and_then(|pods| pods.required_during_scheduling_ignored_during_execution.as_ref());
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        Some(Self {
            name: pod.name_any(),
            uid: pod.uid()?,
            workload: Workload::named(pod.labels().get(APP)?)?,
            node: spec.node_name.clone().filter(|node| !node.is_empty()),
            running: phase == Some("Running"),
            leaving: pod.metadata.deletion_timestamp.is_some(),
            needs: requests.map(amounts).unwrap_or_default(),
            priority: spec.priority.unwrap_or_default(),
            selector: spec.node_selector.clone().unwrap_or_default(),
            spread: spread.map(|spread| spread.topology_key.clone()),
            together: terms.and_then(|terms| terms.first()).map(|term| term.topology_key.clone()),
        })
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeView {
    pub(crate) labels: Labels,
    pub(crate) allocatable: Amounts,
    pub(crate) schedulable: bool,
}

impl NodeView {
    pub(crate) fn of(node: &Node) -> Option<Self> {
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let status = node.status.as_ref();
        Some(Self {
            labels: node.labels().clone(),
            allocatable: status
                .and_then(|status| status.allocatable.as_ref())
                .map(amounts)
                .unwrap_or_default(),
            schedulable: !cordoned,
        })
    }
}

/// A machine on its way to this cluster, or in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MachineView {
    pub(crate) id: String,
    pub(crate) phase: Option<UpcomingNodePhase>,
    pub(crate) labels: Labels,
    pub(crate) resources: BTreeMap<String, String>,
}

impl MachineView {
    pub(crate) fn of(object: &UpcomingNode) -> Option<Self> {
        let resources = object.spec.resources.iter();
        Some(Self {
            id: object.annotations().get(keys::MACHINE_ID)?.clone(),
            phase: object.status.as_ref().map(|status| status.phase),
            labels: object.spec.labels.clone(),
            resources: resources.map(|(name, value)| (name.clone(), value.to_string())).collect(),
        })
    }
}

/// A request, as whoever collects garbage sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestView {
    pub(crate) name: String,
    /// UID of the pod that it stands for.
    pub(crate) pod: String,
}

impl RequestView {
    pub(crate) fn of(request: &CapacityRequest) -> Option<Self> {
        let owner = request.owner_references().iter().find(|owner| owner.kind == "Pod")?;
        Some(Self { name: request.name_any(), pod: owner.uid.clone() })
    }
}
