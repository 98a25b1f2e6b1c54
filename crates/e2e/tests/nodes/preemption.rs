//! Rows of the catalogue with two clusters and one fleet.

use bigfleet_crds::UpcomingNode;
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::eventually,
    workload::Workload,
};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;

/// Two machines of four processors, and no more.
const TWO_MACHINES: &[&str] = &[
    "--tier={name: vm, type: m4, capacity: ON_DEMAND, count: 2, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}}",
    "--latency={create: 200ms, configure: 200ms, drain: 200ms, delete: 200ms}",
    "--interruption-factor=0",
];

const URGENT: &str = "\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000000
";

/// Both processes of a cluster.
async fn move_in(fleet: &Fleet, cluster: &Cluster, id: &str) -> [Part; 2] {
    let config = cluster.pod_controller_kubeconfig(None);
    let mut pod_controller = fleet.pod_controller("upc-0", &config, &[]).await;
    pod_controller.until_ready().await;
    let (config, id) = (cluster.operator_kubeconfig(None), format!("--cluster-id={id}"));
    let mut operator = fleet.operator("operator-0", &config, &[&id]).await;
    operator.until_ready().await;
    [pod_controller, operator]
}

async fn machines(cluster: &Cluster) -> Vec<String> {
    let mut names: Vec<_> =
        cluster.all::<UpcomingNode>().await.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_36_a_machine_moves_to_the_cluster_that_needs_it_more() {
    let Some(a) = Cluster::start_or_skip(Habits::drawn()).await else { return };
    let b = a.start_another(Habits::drawn()).await;
    let fleet = Fleet::new();
    let mut provider = fleet.provider(TWO_MACHINES).await;
    provider.until_ready().await;
    let mut shard = fleet.shard(&[]).await;
    shard.until_ready().await;
    let _in_a = move_in(&fleet, &a, "c-a").await;
    let _in_b = move_in(&fleet, &b, "c-b").await;

    // A holds both machines.
    let web = Workload::new("default", "web").replicas(4).request("cpu", "2");
    a.create(&web.disruption_budget(1)).await;
    a.create(&web.deployment()).await;
    a.until_running("default", "web", 4).await;
    let before = machines(&a).await;
    assert_eq!(before.len(), 2);

    // B needs one, and more.
    b.apply(URGENT);
    let urgent = Workload::new("default", "urgent")
        .request("cpu", "4")
        .field("priorityClassName", "urgent".into());
    b.create(&urgent.deployment()).await;
    // The first eviction leaves its pod without a place, so the budget refuses the second.
    eventually("one pod of A is evicted, and the other waits for the budget", || async {
        let blocked = |event: &Event| event.reason.as_deref() == Some("BigFleetDrainBlocked");
        let running = a.running("default", "web").await;
        running == 3 && a.all::<Event>().await.iter().any(blocked)
    })
    .await;
    b.until_running("default", "urgent", 1).await;
    let (of_a, of_b) = (machines(&a).await, machines(&b).await);
    assert_eq!((of_a.len(), of_b.len()), (1, 1), "{of_a:?} {of_b:?}");
    assert!(before.contains(&of_a[0]) && before.contains(&of_b[0]) && of_a != of_b);
    assert_eq!(a.nodes().await.len(), 1);
    a.until_running("default", "web", 2).await;
}
