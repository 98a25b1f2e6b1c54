//! Row 40: a provider that takes machines with the pods on them waits for those pods.

use std::time::{Duration, Instant};

use bigfleet_crds::{UpcomingNode, keys};
use bigfleet_e2e::{
    agent::{Habits, TERMINATION},
    cluster::Cluster,
    fleet::Fleet,
    wait::eventually,
    workload::Workload,
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::stage::living;

/// How long a pod takes to leave.
const LEAVING: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_40_a_drain_of_the_provider_comes_after_the_pods_have_left() {
    let habits = Habits { provided: true, ..Habits::default() };
    let Some(cluster) = Cluster::start_or_skip(habits).await else { return };
    let fleet = Fleet::new();
    let config = cluster.local_provider_kubeconfig();
    let mut provider = fleet.local_provider(&config, &["--seed-count=4"]).await;
    provider.until_ready().await;
    let mut shard = fleet.shard(&[]).await;
    shard.until_ready().await;
    let config = cluster.pod_controller_kubeconfig(None);
    let mut pod_controller = fleet.pod_controller("upc-0", &config, &[]).await;
    pod_controller.until_ready().await;
    let mut operator = fleet.operator("operator-0", &cluster.operator_kubeconfig(None), &[]).await;
    operator.until_ready().await;

    // Guests are no demand: their node is surplus while they still run on it.
    let small = |name: &str| Workload::new("default", name).request("cpu", "100m");
    cluster.create(&small("web").deployment()).await;
    cluster.until_running("default", "web", 1).await;
    let guest = small("guest").replicas(2).annotate(keys::IGNORE, "true");
    let guest = guest.annotate(TERMINATION, &format!("{}s", LEAVING.as_secs()));
    cluster.create(&guest.deployment()).await;
    cluster.until_running("default", "guest", 2).await;
    let guests = living(&cluster, "guest").await;
    assert_eq!(cluster.nodes().await.len(), 1);

    cluster.scale("default", "web", 0).await;
    eventually("the guests are asked to leave", || async {
        !living(&cluster, "guest").await.values().any(|uid| guests.values().any(|old| old == uid))
    })
    .await;
    let asked = Instant::now();
    eventually("the guests have left", || async {
        let nodes = cluster.nodes().await.iter().filter_map(Node::uid).count();
        let here = cluster.pods("default", "guest").await;
        let stay = here.iter().filter(|pod| guests.contains_key(&pod.name_any())).count();
        assert!(stay == 0 || nodes == 1, "the node went before its pods");
        stay == 0
    })
    .await;
    // The last of them was asked before it was seen to be.
    let left = asked.elapsed() + Duration::from_secs(2);
    assert!(left >= LEAVING, "killed after {left:?}");
    eventually("the machine goes", || async {
        cluster.nodes().await.is_empty() && cluster.all::<UpcomingNode>().await.is_empty()
    })
    .await;
    let ended = operator.metric("bigfleet_operator_drain_duration_seconds_count").await;
    assert_eq!(ended, Some(1.0), "the drain was ours");
}
