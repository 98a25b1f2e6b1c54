//! Workloads as users write them; controllers make their pods, since an evicted bare pod would
//! take its demand along.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    batch::v1::Job,
    policy::v1::PodDisruptionBudget,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A workload to be: its pods carry the label `app` = its name.
#[derive(Debug, Clone)]
pub struct Workload {
    namespace: String,
    name: String,
    replicas: u32,
    requests: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    pod: Value,
}

impl Workload {
    /// One pod of one processor and 1 GiB.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            replicas: 1,
            requests: BTreeMap::from([
                ("cpu".to_owned(), "1".to_owned()),
                ("memory".to_owned(), "1Gi".to_owned()),
            ]),
            annotations: BTreeMap::new(),
            pod: json!({}),
        }
    }

    /// That many pods.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas;
        self
    }

    /// What each pod requests of a resource.
    #[must_use]
    pub fn request(mut self, resource: &str, quantity: &str) -> Self {
        self.requests.insert(resource.to_owned(), quantity.to_owned());
        self
    }

    /// An annotation of each pod.
    #[must_use]
    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// A field of each pod's spec, `nodeSelector` for example.
    #[must_use]
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.pod[name] = value;
        self
    }

    /// As a Deployment.
    #[must_use]
    pub fn deployment(&self) -> Deployment {
        self.object(json!({
            "replicas": self.replicas,
            "selector": {"matchLabels": {"app": self.name}},
            "template": self.template(),
        }))
    }

    /// As a StatefulSet whose pods come all at once.
    #[must_use]
    pub fn stateful_set(&self) -> StatefulSet {
        self.object(json!({
            "replicas": self.replicas,
            "serviceName": self.name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": self.name}},
            "template": self.template(),
        }))
    }

    /// As a DaemonSet.
    #[must_use]
    pub fn daemon_set(&self) -> DaemonSet {
        self.object(json!({
            "selector": {"matchLabels": {"app": self.name}},
            "template": self.template(),
        }))
    }

    /// As a Job; its pods end as [`crate::agent::DURATION`] says.
    #[must_use]
    pub fn job(&self) -> Job {
        let mut template = self.template();
        template["spec"]["restartPolicy"] = "Never".into();
        self.object(json!({
            "parallelism": self.replicas,
            "completions": self.replicas,
            "template": template,
        }))
    }

    /// A budget that lets that many of its pods be away.
    #[must_use]
    pub fn disruption_budget(&self, max_unavailable: u32) -> PodDisruptionBudget {
        self.object(json!({
            "maxUnavailable": max_unavailable,
            "selector": {"matchLabels": {"app": self.name}},
        }))
    }

    fn template(&self) -> Value {
        let mut spec = self.pod.clone();
        if spec["containers"].is_null() {
            spec["containers"] = json!([{
                "name": "main",
                "image": "none",
                "resources": {"requests": self.requests},
            }]);
        }
        json!({
            "metadata": {"labels": {"app": self.name}, "annotations": self.annotations},
            "spec": spec,
        })
    }

    #[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn object<K: DeserializeOwned>(&self, spec: Value) -> K {
        let object = json!({
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        });
        serde_json::from_value(object).expect("a workload as the API knows it")
    }
}
