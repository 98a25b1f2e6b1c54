//! Nodes and hints behind the door of a session, under a lease.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::keys;
use bigfleet_in_cluster::events::{Recorder, deployment};
use bigfleet_in_cluster::lease::Leadership;
use bigfleet_in_cluster::memory::{Eviction, Fault, Server, Verb};
use bigfleet_in_cluster::{Budget, Paced, Store};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_operator::Metrics;
use bigfleet_operator::dispatch::{Settings, beside};
use bigfleet_operator::pod_status::{Needs, PodStatus};
use bigfleet_operator::session::{Lead, ReclaimAcks};
use bigfleet_operator::side::{Context, Side};
use bigfleet_operator::status::StatusWriter;
use bigfleet_wire::v1alpha1::{AvailableCapacityUpdate, MachineState as S, NodeStateUpdate};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use tokio::sync::watch;

use crate::rig::{frame, pod, put_node, server};

fn side(server: &Server, leadership: &watch::Sender<Leadership>) -> Arc<dyn Side> {
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    let metrics = Arc::new(Metrics::default());
    let writer = StatusWriter::new(paced.clone(), Store::new("requests"), Arc::default());
    let pod_status = PodStatus::new(
        paced.clone(),
        Arc::new(Needs::default()),
        Arc::new(writer),
        Recorder::silent(),
        metrics.clone(),
        false,
    );
    beside(Settings { own_pod: None, cleanup: true })(Context {
        cluster_id: "ours".into(),
        paced,
        metrics,
        events: Recorder::silent(),
        ourselves: deployment("bigfleet-system", "bigfleet-operator"),
        pod_status: Arc::new(pod_status),
        demanded: watch::Sender::default().subscribe(),
        lead: Lead::told(leadership.subscribe()),
    })
}

/// A Node whose drain an earlier process has left, blocked for good.
fn left_behind(server: &Server) {
    put_node(server, "n", "m", true, Timestamp::now());
    let mut node: Node = server.get(None, "n").unwrap();
    let deadline = Timestamp::now() + Duration::from_secs(500);
    let annotations = node.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::RECLAIM_INSTRUCTION.into(), "i".into());
    annotations.insert(keys::RECLAIM_DEADLINE.into(), deadline.to_string());
    node.spec.get_or_insert_default().unschedulable = Some(true);
    server.put(&node);
    server.put(&pod("web", "n", &serde_json::json!({})));
    server.on_eviction(|_| Eviction::Budget);
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn operator_inv_16_a_standby_writes_nothing_and_a_leader_takes_over() {
    let server = server();
    left_behind(&server);
    let leadership = watch::Sender::new(Leadership::Standby);
    let side = side(&server, &leadership);
    let stop = Shutdown::new();
    let running = tokio::spawn(side.clone().run(stop.clone()));
    side.synced(Duration::from_secs(60)).await.unwrap();
    pass(60).await;
    assert_eq!(server.writes(), 0, "a standby only looks");

    leadership.send_replace(Leadership::Leading);
    pass(20).await;
    let tried = server.count(Verb::Create, "pods");
    assert!(tried > 3, "the drain goes on");
    leadership.send_replace(Leadership::Unsure);
    pass(20).await;
    let tried_unseen = server.count(Verb::Create, "pods");
    assert!(tried_unseen > tried, "nobody else was seen");

    leadership.send_replace(Leadership::Standby);
    pass(1).await;
    let writes = server.writes();
    pass(60).await;
    assert_eq!(server.writes(), writes, "another has the lease");

    leadership.send_replace(Leadership::Leading);
    pass(20).await;
    assert!(server.writes() > writes);
    stop.request();
    running.await.unwrap();
    let writes = server.writes();
    pass(60).await;
    assert_eq!(server.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn frames_of_a_session_are_followed_at_once_and_those_of_another_cluster_never() {
    let server = server();
    let leadership = watch::Sender::new(Leadership::Standby);
    let side = side(&server, &leadership);
    let stop = Shutdown::new();
    let running = tokio::spawn(side.clone().run(stop.clone()));
    side.synced(Duration::from_secs(60)).await.unwrap();
    // The session may see the lease before the side does.
    leadership.send_replace(Leadership::Leading);
    side.session_began(ReclaimAcks::nowhere());
    side.node_state(frame("m", S::Configured), 1);
    let other = NodeStateUpdate { cluster_id: "theirs".into(), ..frame("x", S::Configured) };
    side.node_state(other, 2);
    let hint = AvailableCapacityUpdate {
        supersedes_key: "available:a".into(),
        ..AvailableCapacityUpdate::default()
    };
    side.available_capacity(hint);
    pass(10).await;
    assert_eq!(server.number_of::<bigfleet_crds::UpcomingNode>(), 1);
    assert_eq!(server.number_of::<bigfleet_crds::AvailableCapacity>(), 1);
    assert_eq!(side.unready(), None);
    server.withdraw::<bigfleet_crds::UpcomingNode>();
    pass(60).await;
    assert!(side.unready().unwrap().contains("upcomingnodes"));
    stop.request();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_when_every_cache_is_filled_and_not_before() {
    let server = server();
    server.inject(Fault::answer(403).on(Verb::List, "nodes").times(20));
    let (leadership, _) = watch::channel(Leadership::Standby);
    let side = side(&server, &leadership);
    let stop = Shutdown::new();
    let running = tokio::spawn(side.clone().run(stop.clone()));
    pass(5).await;
    assert_eq!(side.unready().as_deref(), Some("nodes have not been listed yet"));
    side.synced(Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(side.unready(), None);
    stop.request();
    running.await.unwrap();
}
