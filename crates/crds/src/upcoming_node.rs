//! A machine on its way.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;

/// The node as it will be, or is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "UpcomingNode",
    plural = "upcomingnodes",
    singular = "upcomingnode",
    shortname = "upn",
    category = "fleet",
    status = "UpcomingNodeStatus",
    derive = "PartialEq",
    doc = "UpcomingNode mirrors a machine of the fleet that is on its way to this cluster, or in it. \
           The operator writes it and deletes it when the machine leaves.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeRef.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Machine",
        type_ = "string",
        json_path = r".metadata.annotations.bigfleet\.lucy\.sh/machine-id",
        priority = 1
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = r".spec.labels.node\.kubernetes\.io/instance-type",
        priority = 1
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = r".spec.labels.topology\.kubernetes\.io/zone",
        priority = 1
    ),
    printcolumn(name = "Error", type_ = "string", json_path = ".status.lastError", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct UpcomingNodeSpec {
    /// What the machine offers, by resource name; `{}` when that is not known.
    pub resources: BTreeMap<String, Quantity>,

    /// Labels that the node will carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Taints that the node will carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// How far the machine has come.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpcomingNodeStatus {
    /// Provisioning: the machine is being bought or created. Launched: it runs and belongs to no
    /// cluster yet. Registered: it is being joined to this cluster. Ready: its node takes pods.
    /// Draining: its pods are being evicted. Drained: they are gone. Failed: see lastError.
    pub phase: UpcomingNodePhase,

    /// The node of this machine (kind Node and its name), once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub node_ref: Option<ObjectReference>,

    /// The provider's name of the machine, as in spec.providerID of the node.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,

    /// Why the machine failed; empty unless the phase is Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,

    /// When this cluster first heard of the machine. Set once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_start_time: Option<Time>,
}

/// Phase of an [`UpcomingNode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum UpcomingNodePhase {
    /// The machine is being bought or created.
    Provisioning,
    /// The machine runs and belongs to no cluster yet.
    Launched,
    /// The machine is being joined to this cluster.
    Registered,
    /// The node takes pods.
    Ready,
    /// The node's pods are being evicted.
    Draining,
    /// The node's pods are gone.
    Drained,
    /// Something went wrong; `lastError` says what.
    Failed,
}
