//! Rows of the catalogue about a shard that restarts, on one control plane.

use std::time::Duration;

use bigfleet_crds::{UpcomingNodePhase, keys};
use bigfleet_e2e::{
    fleet::EIGHT_MACHINES,
    wait::{eventually, throughout},
    workload::Workload,
};
use k8s_openapi::api::{core::v1::Node, policy::v1::PodDisruptionBudget};

use crate::{scene::Scene, tls};

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_33_41_and_42_restarts_and_certificates() {
    let Some(mut scene) = Scene::start_or_skip().await else { return };
    row_41_a_node_that_is_wanted_again_after_a_restart_is_uncordoned(&mut scene).await;
    row_42_a_shard_that_knows_nothing_yet_prunes_nothing(&mut scene).await;
    scene.operator.process().kill().await;
    tls::row_33_certificates_are_judged_and_heal(&scene.cluster, &scene.fleet).await;
}

async fn row_41_a_node_that_is_wanted_again_after_a_restart_is_uncordoned(scene: &mut Scene) {
    println!("row 41");
    let cluster = &scene.cluster;
    cluster.create(&Workload::new("default", "web").request("cpu", "2").deployment()).await;
    cluster.until_running("default", "web", 1).await;
    // No demand, but it does not let go of its node.
    let guest = Workload::new("default", "guest").annotate(keys::IGNORE, "true");
    cluster.create(&guest.disruption_budget(0)).await;
    cluster.create(&guest.deployment()).await;
    cluster.until_running("default", "guest", 1).await;
    let before = scene.objects().await;
    assert_eq!(before.len(), 2, "one machine");

    cluster.scale("default", "web", 0).await;
    eventually("the machine is taken back", || async {
        cluster.nodes().await.iter().all(is_cordoned)
            && scene.phase().await == Some(UpcomingNodePhase::Draining)
    })
    .await;
    let reconnects = scene.reconnects().await;
    scene.shard.process().kill().await;
    cluster.scale("default", "web", 1).await;
    scene.shard = scene.fleet.shard(&[]).await;
    scene.shard.until_ready().await;
    scene.until_session_after(reconnects).await;
    cluster.delete::<PodDisruptionBudget>("default", "guest").await;
    eventually("the node is given back", || async {
        !cluster.nodes().await.iter().any(is_cordoned)
            && scene.phase().await == Some(UpcomingNodePhase::Ready)
    })
    .await;
    cluster.until_running("default", "web", 1).await;
    throughout(Duration::from_secs(3), "the same node stays", || async {
        scene.objects().await == before && !cluster.nodes().await.iter().any(is_cordoned)
    })
    .await;
}

async fn row_42_a_shard_that_knows_nothing_yet_prunes_nothing(scene: &mut Scene) {
    println!("row 42");
    let before = scene.objects().await;
    assert_eq!(before.len(), 2);
    let reconnects = scene.reconnects().await;
    scene.shard.process().kill().await;
    scene.provider.process().kill().await;
    scene.shard = scene.fleet.shard(&[]).await;
    scene.until_session_after(reconnects).await;
    throughout(Duration::from_secs(5), "all objects are kept", || async {
        scene.objects().await == before
    })
    .await;
    scene.provider = scene.fleet.provider(EIGHT_MACHINES).await;
    scene.provider.until_ready().await;
    scene.shard.until_ready().await;
    throughout(Duration::from_secs(5), "all objects are kept", || async {
        scene.objects().await == before
    })
    .await;
    scene.cluster.until_running("default", "web", 1).await;
}
