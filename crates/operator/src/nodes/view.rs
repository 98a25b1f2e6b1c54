//! What is kept of Nodes and UpcomingNodes: the fields that a rule reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase, keys};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use super::mirror::{Version, mirrored};
use super::upcoming::Spec;

/// A Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// Its resource version.
    pub version: Version,
    /// The machine that its label names.
    pub machine: Option<Arc<str>>,
    /// `spec.providerID`, when it is not empty.
    pub provider_id: Option<Arc<str>>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// The reclaim that cordoned it.
    pub instruction: Option<Arc<str>>,
    /// When that reclaim's drain ends.
    pub deadline: Option<Arc<str>>,
    /// Whether somebody else had cordoned it before us.
    pub cordoned_by_human: bool,
    /// The Ready condition.
    pub ready: Option<ReadyCondition>,
}

/// The Ready condition of a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyCondition {
    /// True; else False or Unknown.
    pub is_true: bool,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl NodeView {
    /// What is kept of a Node. None without a name.
    #[must_use]
    pub fn of(node: &Node) -> Option<Self> {
        let annotations = node.metadata.annotations.as_ref();
        let annotation = |key: &str| Some(annotations?.get(key)?.as_str());
        let spec = node.spec.as_ref();
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
        Some(Self {
            name: node.metadata.name.as_deref()?.into(),
            uid: node.metadata.uid.as_deref().unwrap_or_default().into(),
            version: Version::of(node.metadata.resource_version.as_deref()),
            machine: node
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| filled(labels.get(keys::MACHINE_ID).map(String::as_str))),
            provider_id: filled(spec.and_then(|spec| spec.provider_id.as_deref())),
            unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
            instruction: annotation(keys::RECLAIM_INSTRUCTION).map(Arc::from),
            deadline: annotation(keys::RECLAIM_DEADLINE).map(Arc::from),
            cordoned_by_human: annotation(keys::CORDONED_BY_HUMAN) == Some("true"),
            ready: ready.map(|condition| ReadyCondition {
                is_true: condition.status == "True",
                since: condition.last_transition_time.as_ref().map(|time| time.0),
            }),
        })
    }

    /// Whether its kubelet says that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.is_some_and(|ready| ready.is_true)
    }
}

/// An UpcomingNode.
#[derive(Debug, Clone, PartialEq)]
pub struct UpcomingView {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// Its resource version.
    pub version: Version,
    /// The machine that its annotation names.
    pub machine: Option<Arc<str>>,
    /// Its spec.
    pub spec: Spec,
    /// Its status; none between its creation and the first status write.
    pub status: Option<StatusView>,
}

/// The status of an UpcomingNode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusView {
    /// The phase.
    pub phase: UpcomingNodePhase,
    /// `nodeRef.name`.
    pub node: Option<Arc<str>>,
    /// `providerID`.
    pub provider_id: Option<Arc<str>>,
    /// `lastError`.
    pub last_error: Option<Arc<str>>,
    /// Whether `provisioningStartTime` is set.
    pub started: bool,
}

impl UpcomingView {
    /// What is kept of an UpcomingNode. None without a name.
    #[must_use]
    pub fn of(object: &UpcomingNode) -> Option<Self> {
        let annotations = object.metadata.annotations.as_ref();
        let status = object.status.as_ref().map(|status| StatusView {
            phase: status.phase,
            node: filled(status.node_ref.as_ref().and_then(|node| node.name.as_deref())),
            provider_id: filled(status.provider_id.as_deref()),
            last_error: filled(status.last_error.as_deref()),
            started: status.provisioning_start_time.is_some(),
        });
        Some(Self {
            name: object.metadata.name.as_deref()?.into(),
            uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
            version: Version::of(object.metadata.resource_version.as_deref()),
            machine: filled(
                annotations.and_then(|all| all.get(keys::MACHINE_ID)).map(String::as_str),
            ),
            spec: Spec {
                labels: object.spec.labels.clone(),
                resources: object
                    .spec
                    .resources
                    .iter()
                    .map(|(name, quantity)| (name.clone(), quantity.as_str().to_owned()))
                    .collect::<BTreeMap<_, _>>(),
                taints: object.spec.taints.iter().map(Into::into).collect(),
            },
            status,
        })
    }

    /// The phase, once there is one.
    #[must_use]
    pub fn phase(&self) -> Option<UpcomingNodePhase> {
        self.status.as_ref().map(|status| status.phase)
    }
}

fn filled(text: Option<&str>) -> Option<Arc<str>> {
    text.filter(|text| !text.is_empty()).map(Arc::from)
}

mirrored!(NodeView, UpcomingView);
