//! What happens behind the provider's back, and behind its process's.

use bigfleet_wire::v1alpha1::MachineState;

use crate::{
    cluster::{Cluster, until},
    process::Provider,
};

fn all(cluster: &Cluster) -> Vec<String> {
    vec![format!("--default-cluster={}", cluster.kubeconfig().display())]
}

fn renewed(cluster: &Cluster, node: &str) -> Option<String> {
    Some(cluster.lease(node)?["spec"]["renewTime"].as_str()?.to_owned())
}

pub(crate) async fn a_node_deleted_by_hand_is_a_lost_host(cluster: &Cluster) {
    let mut provider = Provider::start(&cluster.folder().join("loss"), &all(cluster)).await;
    let (id, other) = ("local-000004", "local-000005");
    provider.join(id, "any").await;
    provider.join(other, "any").await;
    cluster.kubectl(&["delete", "node", id]);
    let failed = provider.reaches(id, MachineState::Failed).await;
    assert_eq!(failed.last_error, "host lost");
    provider.reaches(id, MachineState::Speculative).await;
    assert_eq!(cluster.node(id), None, "a node that was deleted is not made again");
    assert_eq!(provider.get(other).await.state(), MachineState::Configured);
    provider.drain(other, 0).await;
    provider.reaches(other, MachineState::Idle).await;
}

pub(crate) async fn a_restart_goes_on_with_heartbeats(cluster: &Cluster) {
    let state = cluster.folder().join("restart");
    let mut provider = Provider::start(&state, &all(cluster)).await;
    let id = "local-000006";
    provider.join(id, "any").await;
    until("a lease", || renewed(cluster, id)).await;
    provider.kill();
    let last = renewed(cluster, id).unwrap();

    let mut provider = Provider::start(&state, &all(cluster)).await;
    // Same form, same zone: text compares as time does.
    until("a renewal", || renewed(cluster, id).filter(|now| *now > last)).await;
    assert_eq!(provider.get(id).await.state(), MachineState::Configured);
    provider.drain(id, 0).await;
    provider.reaches(id, MachineState::Idle).await;
    assert_eq!(cluster.node(id), None);
}

pub(crate) async fn a_node_outlives_its_state(cluster: &Cluster) {
    let id = "local-000007";
    let mut provider = Provider::start(&cluster.folder().join("first"), &all(cluster)).await;
    provider.join(id, "any").await;
    let old = cluster.node(id).unwrap();
    provider.kill();

    let mut provider = Provider::start(&cluster.folder().join("second"), &all(cluster)).await;
    let found = provider.get(id).await;
    assert_eq!(found.state(), MachineState::Idle, "{found:?}");
    provider.configure(id, "any").await;
    provider.reaches(id, MachineState::Configured).await;
    let new = cluster.node(id).unwrap();
    assert_ne!(new["metadata"]["uid"], old["metadata"]["uid"], "Ready is seen anew");
    provider.drain(id, 0).await;
    provider.reaches(id, MachineState::Idle).await;
    provider.delete(id).await;
    assert_eq!(cluster.node(id), None);
}
