//! What runs in the clusters: classes of pods, and the pods themselves.

use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::supply::{GENERAL, GPU};

/// Where all pods of the demo are.
pub(crate) const NAMESPACE: &str = "demo";
/// The label that names a pod's workload.
pub(crate) const APP: &str = "app";

const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = bigfleet_provider_sim::topology::RACK_LABEL;

/// Most units that a level can have.
pub(crate) const MOST: u32 = 40;

/// How much a pod matters, and what its interruption costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    Batch,
    Production,
    Critical,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::Batch, Self::Production, Self::Critical];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Production => "production",
            Self::Critical => "critical",
        }
    }

    pub(crate) const fn priority(self) -> i32 {
        match self {
            Self::Batch => 100,
            Self::Production => 100_000,
            Self::Critical => 1_000_000,
        }
    }

    /// Dollars per interruption.
    pub(crate) const fn penalty(self) -> f64 {
        match self {
            Self::Batch => 0.0,
            Self::Production => 0.5,
            Self::Critical => 16.0,
        }
    }
}

/// A workload that every cluster may run; how many pods is its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Workload {
    /// Pods of a class that run anywhere.
    Plain(Class),
    /// Pods with GPUs that must share a rack.
    Gang,
    /// Critical pods, no two zones further than one apart.
    Spread,
    /// Critical pods that must share a zone.
    Group,
}

impl Workload {
    pub(crate) const ALL: [Self; 6] = [
        Self::Plain(Class::Batch),
        Self::Plain(Class::Production),
        Self::Plain(Class::Critical),
        Self::Gang,
        Self::Spread,
        Self::Group,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain(class) => class.name(),
            Self::Gang => "gang",
            Self::Spread => "spread",
            Self::Group => "group",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Plain(class) => class,
            Self::Gang => Class::Production,
            Self::Spread | Self::Group => Class::Critical,
        }
    }

    /// A pod of it. One fills a machine to the brim: demand is a vector and no count, so that
    /// what a pod left free on each of many machines would look like room for another.
    pub(crate) fn pod(self, name: &str) -> Result<Pod, serde_json::Error> {
        let class = self.class();
        let mut requests = json!({"cpu": "7500m", "memory": "28Gi"});
        let mut spec = json!({
            "priority": class.priority(),
            "priorityClassName": class.name(),
            "terminationGracePeriodSeconds": 30,
            "nodeSelector": {TYPE: GENERAL},
        });
        let mine = json!({"matchLabels": {APP: self.name()}});
        match self {
            Self::Plain(_) => {}
            Self::Gang => {
                requests["nvidia.com/gpu"] = json!("8");
                spec["nodeSelector"] = json!({TYPE: GPU});
                spec["affinity"] = together(RACK, &mine);
            }
            Self::Group => spec["affinity"] = together(ZONE, &mine),
            Self::Spread => {
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": mine,
                }]);
            }
        }
        let resources = json!({"requests": requests});
        spec["containers"] = json!([{"name": "work", "image": "none", "resources": resources}]);
        let penalty = class.penalty().to_string();
        serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {APP: self.name()},
                "annotations": {bigfleet_crds::keys::INTERRUPTION_PENALTY: penalty},
            },
            "spec": spec,
        }))
    }
}

fn together(key: &str, mine: &Value) -> Value {
    let term = json!({"topologyKey": key, "labelSelector": mine});
    json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_a_pod_and_found_by_its_name() {
        for workload in Workload::ALL {
            let pod = workload.pod("one").unwrap();
            let spec = pod.spec.unwrap();
            assert_eq!(spec.priority, Some(workload.class().priority()));
            assert_eq!(Workload::named(workload.name()), Some(workload));
        }
        assert_eq!(Workload::named("other"), None);
    }
}
