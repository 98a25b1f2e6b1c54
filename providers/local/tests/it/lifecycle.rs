//! The four transitions, and whose Nodes are touched.

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::json;

use crate::{
    cluster::{Cluster, until},
    process::{MARKER, Provider},
};

/// With one named cluster.
fn named(cluster: &Cluster) -> Vec<String> {
    vec![format!("--clusters=ours={}", cluster.kubeconfig().display())]
}

pub(crate) async fn a_machine_is_a_node_from_configure_to_drain(cluster: &Cluster) {
    let state = cluster.folder().join("lifecycle");
    let mut provider = Provider::start(&state, &named(cluster)).await;
    let id = "local-000001";
    let idle = provider.create(id).await;
    assert_eq!(idle.host.unwrap().r#ref, "bigfleet-local://local-000001");
    assert_eq!(cluster.node(id), None, "a reserved slot has no node");

    provider.configure(id, "ours").await;
    let bound = provider.reaches(id, MachineState::Configured).await;
    let node = cluster.node(id).unwrap();
    assert_eq!(node["spec"]["providerID"], bound.host.unwrap().r#ref);
    let labels = &node["metadata"]["labels"];
    assert_eq!(labels["bigfleet.lucy.sh/machine-id"], id);
    assert_eq!(labels["node.kubernetes.io/instance-type"], bound.instance_type);
    assert_eq!(labels["topology.kubernetes.io/zone"], bound.zone);
    for (key, value) in &bound.labels {
        assert_eq!(labels[key], *value);
    }
    let (offered, status) = (bound.allocatable.unwrap().resources, &node["status"]);
    assert_eq!(offered["cpu"], "4000m");
    assert_eq!(status["allocatable"]["cpu"], "4");
    assert_eq!(status["allocatable"]["memory"], offered["memory"]);
    assert_eq!(status["capacity"]["cpu"], "4500m");
    assert_eq!(status["capacity"]["pods"], "110");
    let conditions = status["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!(ready["status"], "True");
    until("a lease", || cluster.lease(id)).await;
    assert!(!node.to_string().contains(MARKER), "{node}");

    provider.drain(id, 0).await;
    let idle = provider.reaches(id, MachineState::Idle).await;
    assert!(idle.cluster.is_empty());
    assert_eq!((cluster.node(id), cluster.lease(id)), (None, None));
    provider.delete(id).await;

    let log = provider.log();
    assert!(!log.contains(MARKER), "{log}");
    provider.kill();
    for entry in walk(&state) {
        let bytes = std::fs::read(&entry).unwrap();
        let found = bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
        assert!(!found, "{}", entry.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

pub(crate) async fn a_node_of_another_owner_is_left_alone(cluster: &Cluster) {
    let id = "local-000000";
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": id},
        "spec": {"providerID": "other://x"},
    }));
    let state = cluster.folder().join("foreign");
    let mut provider = Provider::start(&state, &named(cluster)).await;
    provider.create(id).await;
    provider.configure(id, "ours").await;
    let failed = provider.reaches(id, MachineState::Failed).await;
    assert!(failed.last_error.contains("not this provider's"), "{}", failed.last_error);
    // The repair cleans the slot, and nothing else.
    provider.reaches(id, MachineState::Speculative).await;
    assert_eq!(cluster.node(id).unwrap()["spec"]["providerID"], "other://x");

    let unknown = "local-000002";
    provider.create(unknown).await;
    provider.configure(unknown, "theirs").await;
    provider.reaches(unknown, MachineState::Speculative).await;
    assert!(provider.log().contains("no kubeconfig for cluster"), "{}", provider.log());
    cluster.kubectl(&["delete", "node", id]);
}
