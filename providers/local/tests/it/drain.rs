//! Grace and force.

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::json;

use crate::{
    cluster::{Cluster, until},
    process::Provider,
};

/// Far longer than an eviction that nobody forbids.
const GRACE: i64 = 20;

pub(crate) async fn a_budget_holds_until_the_grace_is_over(cluster: &Cluster) {
    let flags = vec![format!("--default-cluster={}", cluster.kubeconfig().display())];
    let mut provider = Provider::start(&cluster.folder().join("drain"), &flags).await;
    let id = "local-000003";
    provider.join(id, "any").await;
    for pod in ["guarded", "free"] {
        cluster.run_pod(pod, id);
    }
    cluster.apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }));

    provider.drain(id, GRACE).await;
    until("the free pod is evicted", || cluster.get(&["pod", "free"]).is_none().then_some(()))
        .await;
    let guarded = cluster.get(&["pod", "guarded"]).unwrap();
    let node = cluster.node(id).unwrap();
    assert_eq!(provider.get(id).await.state(), MachineState::Draining);
    assert!(guarded["metadata"]["deletionTimestamp"].is_null(), "{guarded}");
    assert_eq!(node["spec"]["unschedulable"], true);

    provider.reaches(id, MachineState::Idle).await;
    assert_eq!(cluster.node(id), None);
    assert_eq!(cluster.get(&["pod", "guarded"]), None, "no pod is left on a node that is gone");

    // Nothing to wait for: the node does not outlive its pods.
    provider.configure(id, "any").await;
    provider.reaches(id, MachineState::Configured).await;
    provider.drain(id, 3600).await;
    provider.reaches(id, MachineState::Idle).await;
}
