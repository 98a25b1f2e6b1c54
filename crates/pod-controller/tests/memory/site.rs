//! A server, controllers on it, and what must hold.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bigfleet_crds::{CapacityRequest, keys};
use bigfleet_in_cluster::{Budget, Paced, memory::Server};
use bigfleet_net::{readiness::Readiness, shutdown::Shutdown};
use bigfleet_unschedulable_pod_controller::{
    Settings,
    controller::{Options, Scope},
    metrics::Metrics,
    name::request_name,
    running::{self, Setup},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

pub(crate) const NAMESPACE: &str = "apps";

/// A server that knows CapacityRequests.
pub(crate) fn server() -> Server {
    let server = Server::new();
    server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    server
}

/// A controller at work.
pub(crate) struct Running {
    task: JoinHandle<()>,
    stop: Shutdown,
    pub(crate) metrics: Arc<Metrics>,
}

impl Running {
    pub(crate) fn start(client: Client, identity: &str, elect: bool) -> Self {
        let (stop, metrics) = (Shutdown::new(), Arc::new(Metrics::default()));
        let setup = Setup {
            scope: Scope {
                unmanaged_nodes: "control-plane".parse().unwrap(),
                volume_topology: true,
                resync: Duration::from_secs(60),
            },
            options: Options {
                max_concurrent_reconciles: 16,
                resync: Duration::from_secs(60),
                settings: Settings::default(),
            },
            identity: identity.to_owned(),
            namespace: "bigfleet-system".to_owned(),
            leader_elect: elect,
        };
        let paced = Paced::new(client, Budget::new(0, 1));
        let readiness = Readiness::new("starting");
        let (counted, until) = (metrics.clone(), stop.clone());
        let task = tokio::spawn(async move {
            running::run(paced, setup, counted, readiness, until).await.unwrap();
        });
        Self { task, stop, metrics }
    }

    /// As by `kill -9`.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) async fn stop(self) {
        self.stop.request();
        self.task.await.unwrap();
    }
}

pub(crate) fn pod(name: &str, patch: &Value) -> Pod {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    });
    for (part, fields) in patch.as_object().unwrap() {
        for (name, value) in fields.as_object().unwrap() {
            pod[part][name] = value.clone();
        }
    }
    serde_json::from_value(pod).unwrap()
}

pub(crate) fn request_of(server: &Server, pod: &str) -> Option<CapacityRequest> {
    let pod: Pod = server.get(Some(NAMESPACE), pod)?;
    server.get(Some(NAMESPACE), &request_name(&pod.name_any(), &pod.uid().unwrap()))
}

/// Requests by the pod that they stand for.
pub(crate) fn by_pod(server: &Server) -> HashMap<String, Vec<CapacityRequest>> {
    let mut all: HashMap<String, Vec<CapacityRequest>> = HashMap::new();
    for request in server.all::<CapacityRequest>() {
        let uid = request.labels()[keys::OWNED_BY_POD].clone();
        all.entry(uid).or_default().push(request);
    }
    all
}

/// Returns when the condition holds, and fails after so much virtual time.
pub(crate) async fn within(limit: Duration, what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
