//! Rows of the catalogue about demand, with a real shard.

use bigfleet_e2e::{wait::eventually, workload::Workload};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_1_2_and_7_pods_come_and_go_and_machines_with_them() {
    let Some(scene) = Scene::start_or_skip().await else { return };
    let cluster = &scene.cluster;

    // 1: four CapacityRequests, one need, nodes come, all run.
    let web = Workload::new("default", "web").replicas(4).request("cpu", "2");
    cluster.create(&web.deployment()).await;
    scene.until_acknowledged(4).await;
    assert_eq!(scene.operator.metric("bigfleet_operator_rollup_needs").await, Some(1.0));
    cluster.until_running("default", "web", 4).await;
    assert_eq!(cluster.nodes().await.len(), 2, "two pods fill a machine");

    // 2: to zero; requests are collected, nodes drained, objects gone.
    cluster.scale("default", "web", 0).await;
    eventually("requests are collected", || async { scene.requests().await.is_empty() }).await;
    scene.until_empty().await;
    cluster.delete::<Deployment>("default", "web").await;

    // 7: gated pods are no demand until they are let go.
    let gated = Workload::new("default", "gated")
        .replicas(10)
        .request("cpu", "500m")
        .field("schedulingGates", json!([{"name": "example.com/wait"}]));
    cluster.create(&gated.deployment()).await;
    eventually("ten gated pods", || async { cluster.pods("default", "gated").await.len() == 10 })
        .await;
    cluster.create(&Workload::new("default", "marker").deployment()).await;
    scene.until_acknowledged(1).await;
    let pods = Api::<Pod>::namespaced(cluster.client(), "default");
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    for pod in cluster.pods("default", "gated").await {
        pods.patch(&pod.name_any(), &PatchParams::default(), &open).await.unwrap();
    }
    scene.until_acknowledged(11).await;
    cluster.until_running("default", "gated", 10).await;
}
