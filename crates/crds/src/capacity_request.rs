//! Demand: one object per pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CoLocation, Quantity, Requirement, TopologySpread, conditions};

/// What one pod asks of the fleet. An edit counts from the next roll-up.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bigfleet.lucy.sh",
    version = "v1alpha1",
    kind = "CapacityRequest",
    plural = "capacityrequests",
    singular = "capacityrequest",
    shortname = "cr",
    shortname = "crs",
    category = "fleet",
    namespaced,
    status = "CapacityRequestStatus",
    derive = "PartialEq",
    selectable = ".status.phase",
    doc = "CapacityRequest says what one pod asks of the fleet: there is one object per pod, owned by \
           the pod. The operator folds all of them into the demand that it reports to BigFleet.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Int-Penalty",
        type_ = "string",
        json_path = ".spec.interruptionPenalty",
        priority = 1
    ),
    printcolumn(
        name = "Rec-Penalty",
        type_ = "string",
        json_path = ".spec.reclamationPenalty",
        priority = 1
    ),
    printcolumn(
        name = "Requirements",
        type_ = "string",
        json_path = ".spec.requirements[*].key",
        priority = 1
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Satisfied")].reason"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestSpec {
    /// Priority of the pod; higher is served first. It says who goes first, never what an
    /// interruption costs: the penalties say that.
    pub priority: i32,

    /// What this one pod requests, by resource name (`cpu`, `memory`, `nvidia.com/gpu`, ...).
    /// A machine must hold all of it alone. `{}` is a pod that requests nothing.
    pub resources: BTreeMap<String, Quantity>,

    /// Constraints on the labels of the machine; all must hold. Operators are In, NotIn, Exists
    /// and DoesNotExist. Same is not accepted here: pods that must share a topology domain say so
    /// in spec.coLocation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,

    /// What one interruption of this workload costs, in dollars; absent means $0. A machine's
    /// effective cost is price + interruption probability × interruptionPenalty, so a high value
    /// buys steadier machines. It also orders demand of equal priority and protects against
    /// preemption. The value is rounded up to a bucket: $0, $0.50, $1 and each further power of
    /// two up to $8388608; anything above counts as pinned (never worth interrupting). It is
    /// derived neither from reclamationPenalty nor from priority, nor is either of them from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_penalty: Option<Quantity>,

    /// What is lost when this workload is parted from its machine (warm caches, burnt-in GPUs), in
    /// dollars; absent means $0. It is no part of the effective cost (price + interruption
    /// probability × interruptionPenalty): among machines of equal price the one with the higher
    /// reclamationPenalty is kept, and the lower one is the better victim. The value is rounded up
    /// to a bucket: $0, $0.50, $1 and each further power of two up to $8388608; anything above
    /// counts as pinned. It is derived neither from interruptionPenalty nor from priority, nor is
    /// either of them from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclamation_penalty: Option<Quantity>,

    /// How machines for this demand are spread over topology domains. Only DoNotSchedule binds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread: Vec<TopologySpread>,

    /// Puts the pods of one group on machines that share one value of a topology key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub co_location: Option<CoLocation>,
}

/// What the fleet has answered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestStatus {
    /// Pending until the shard has accepted the demand, then Acknowledged for good. Acknowledged
    /// does not mean that a node exists or that the pod is scheduled.
    pub phase: CapacityRequestPhase,

    /// When the demand was first accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Time>,

    /// The metadata.generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Finer answers. Acknowledged: the demand was accepted. Translatable: False when the request
    /// cannot be understood and therefore counts for nothing. Satisfied: whether the fleet covers
    /// the demand, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Vec<Condition>,
}

/// Phase of a [`CapacityRequest`]; it only moves forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum CapacityRequestPhase {
    /// Not accepted yet. Objects stored before the schema had an enum may hold an empty text.
    #[default]
    #[serde(alias = "")]
    Pending,
    /// Accepted by the shard.
    Acknowledged,
}

impl CapacityRequest {
    /// The phase; an object without a status is pending.
    pub fn phase(&self) -> CapacityRequestPhase {
        self.status.as_ref().map_or(CapacityRequestPhase::Pending, |status| status.phase)
    }
}
