//! Rows of the catalogue with a shard that plays from a script.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, UpcomingNode, UpcomingNodePhase};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::{PATIENCE, eventually, throughout},
    workload::Workload,
};
use bigfleet_net::tls::Security;
use bigfleet_scripted::shard::{Acks, Shard};
use bigfleet_wire::v1alpha1::MachineState;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::ResourceExt;
use tonic::Status;

use crate::scene::operator_config;

const CLUSTER: &str = "c-1";

/// A cluster with an operator, and a scripted shard at the other end of its session.
struct Stage {
    operator: Part,
    fleet: Fleet,
    shard: Shard,
    cluster: Cluster,
}

impl Stage {
    async fn start_or_skip() -> Option<Self> {
        let cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let shard = Shard::start(&Security::Plaintext).await.unwrap();
        let fleet = Fleet::new();
        let addr = format!("--shard-addr={}", shard.addr());
        let mut operator = fleet.operator("operator-0", &operator_config(&cluster), &[&addr]).await;
        operator.until_ready().await;
        let stage = Self { operator, fleet, shard, cluster };
        stage.until_sessions(1).await;
        Some(stage)
    }

    async fn until_sessions(&self, count: usize) {
        let wanted = |heard: &bigfleet_scripted::shard::Heard| {
            heard.sessions() >= count && heard.live_sessions() == 1
        };
        self.shard.wait_for("a session", wanted, PATIENCE).await.unwrap();
    }

    async fn machine(&self, id: &str, state: MachineState) {
        self.shard.machine(CLUSTER, id, state).await.unwrap();
    }

    async fn phase(&self, id: &str) -> Option<UpcomingNodePhase> {
        let name = bigfleet_crds::upcoming_node_name(id);
        let all = self.cluster.all::<UpcomingNode>().await;
        let object = all.into_iter().find(|object| object.name_any() == name)?;
        object.status.map(|status| status.phase)
    }

    async fn until_phase(&self, id: &str, phase: Option<UpcomingNodePhase>) {
        eventually(&format!("{id} is {phase:?}"), || async { self.phase(id).await == phase }).await;
    }

    async fn node(&self, id: &str) -> Option<Node> {
        let of = |node: &Node| node.labels().get(bigfleet_crds::keys::MACHINE_ID).cloned();
        let nodes = self.cluster.nodes().await;
        nodes.into_iter().find(|node| of(node).as_deref() == Some(id))
    }

    async fn until_acks(&self, count: usize) -> Vec<(usize, i32, i32, bool)> {
        let wanted = |heard: &bigfleet_scripted::shard::Heard| heard.reclaim_acks().len() >= count;
        self.shard.wait_for("reclaim acks", wanted, PATIENCE).await.unwrap();
        self.shard.heard().reclaim_acks()
    }
}

fn is_pending(request: &CapacityRequest) -> bool {
    let phase = request.status.as_ref().map(|status| status.phase);
    phase.is_none_or(|phase| phase == CapacityRequestPhase::Pending)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_12_requests_stay_pending_until_the_shard_acks() {
    let Some(stage) = Stage::start_or_skip().await else { return };
    let cluster = &stage.cluster;
    stage.shard.set_acks(Acks::None);
    let config = cluster.pod_controller_kubeconfig(None);
    let mut pod_controller = stage.fleet.pod_controller("upc-0", &config, &[]).await;
    pod_controller.until_ready().await;
    cluster.create(&Workload::new("default", "web").replicas(5).deployment()).await;
    let asks = |heard: &bigfleet_scripted::shard::Heard| {
        let need = heard.roll_ups().last().and_then(|roll_up| roll_up.needs.first());
        need.and_then(|need| need.aggregate_resources.get("cpu")).is_some_and(|cpu| cpu == "5")
    };
    stage.shard.wait_for("demand of five processors", asks, PATIENCE).await.unwrap();
    throughout(Duration::from_secs(3), "all are pending", || async {
        let requests = cluster.all::<CapacityRequest>().await;
        requests.len() == 5 && requests.iter().all(is_pending)
    })
    .await;
    stage.shard.set_acks(Acks::Accept);
    eventually("all are acknowledged", || async {
        !cluster.all::<CapacityRequest>().await.iter().any(is_pending)
    })
    .await;
    let written = stage.operator.metric("bigfleet_operator_acknowledged_total").await;
    assert_eq!(written, Some(5.0), "one write each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_18_and_19_objects_go_with_their_machines() {
    let Some(stage) = Stage::start_or_skip().await else { return };

    // 18: a rollback deletes the object.
    stage.machine("m-0", MachineState::Configuring).await;
    stage.until_phase("m-0", Some(UpcomingNodePhase::Registered)).await;
    stage.machine("m-0", MachineState::Idle).await;
    stage.until_phase("m-0", None).await;

    // 19: what left while nobody was connected is pruned after the marker, not before.
    for id in ["m-1", "m-2", "m-3", "m-4"] {
        stage.machine(id, MachineState::Configured).await;
        stage.until_phase(id, Some(UpcomingNodePhase::Ready)).await;
    }
    stage.shard.end_with(Status::unavailable("restarting")).await.unwrap();
    stage.until_sessions(2).await;
    stage.machine("m-4", MachineState::Configured).await;
    throughout(Duration::from_secs(3), "all are kept", || async {
        stage.cluster.all::<UpcomingNode>().await.len() == 4
    })
    .await;
    stage.shard.resync().await.unwrap();
    eventually("three are pruned", || async {
        stage.cluster.all::<UpcomingNode>().await.len() == 1
    })
    .await;
    assert_eq!(stage.phase("m-4").await, Some(UpcomingNodePhase::Ready));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_20_and_23_a_drain_respects_budgets_and_daemons_and_says_what_it_did_not_find() {
    let Some(stage) = Stage::start_or_skip().await else { return };
    let cluster = &stage.cluster;
    stage.machine("m-1", MachineState::Configured).await;
    let web = Workload::new("default", "web").replicas(3);
    cluster.create(&web.deployment()).await;
    cluster.create(&web.disruption_budget(1)).await;
    cluster.create(&Workload::new("default", "agent").request("cpu", "100m").daemon_set()).await;
    cluster.until_running("default", "web", 3).await;
    cluster.until_running("default", "agent", 1).await;
    let daemon = cluster.pods("default", "agent").await.remove(0);
    stage.machine("m-2", MachineState::Configured).await;
    eventually("a second node", || async { stage.node("m-2").await.is_some() }).await;

    // 23: an unknown id beside it is not counted, and told.
    stage.shard.reclaim("i-1", &["m-1", "nobody"], 120).await.unwrap();
    assert_eq!(stage.until_acks(1).await[0], (1, 1, 0, false));
    let node = stage.node("m-1").await.unwrap();
    assert_eq!(node.spec.as_ref().and_then(|spec| spec.unschedulable), Some(true));
    eventually("an event names the unknown one", || async {
        let unresolved = |event: &Event| event.reason.as_deref() == Some("UnresolvedNode");
        cluster.all::<Event>().await.iter().any(unresolved)
    })
    .await;

    // 20: never fewer than two run; in the end all do, elsewhere.
    eventually("the drain is over", || async {
        let running = cluster.running("default", "web").await;
        assert!(running >= 2, "the budget allows one away, {running} run");
        stage.phase("m-1").await == Some(UpcomingNodePhase::Drained)
    })
    .await;
    let acks = stage.until_acks(2).await;
    assert_eq!(acks.last(), Some(&(1, 1, 1, true)));
    cluster.until_running("default", "web", 3).await;
    let here = node.name_any();
    let on_it = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).as_deref() == Some(&here)
    };
    assert!(!cluster.pods("default", "web").await.iter().any(on_it));
    let daemons = cluster.pods("default", "agent").await;
    assert!(daemons.iter().any(|pod| pod.uid() == daemon.uid()), "the daemon was evicted");
}
