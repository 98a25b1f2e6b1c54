//! One operator's nodes over one server; what a shard says is said by the test.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_crds::{AvailableCapacity, UpcomingNode, UpcomingNodePhase as Phase, keys};
use bigfleet_in_cluster::events::{Recorder, deployment};
use bigfleet_in_cluster::memory::Server;
use bigfleet_in_cluster::store::Selection;
use bigfleet_in_cluster::{Budget, Paced, Store};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_operator::Metrics;
use bigfleet_operator::capacity::{self, Capacity, CapacityView};
use bigfleet_operator::dispatch::{Clock, Moment, Slots};
use bigfleet_operator::nodes::{self, NodeView, Nodes, TellEvicted, UpcomingView};
use bigfleet_wire::v1alpha1::{MachineState, NodeStateUpdate, ReclaimAck, ReclaimInstruction};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, ObjectReference, Pod};
use kube::Api;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::task::JoinSet;

/// How long a condition may take to come true, on the clock that stands still.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Hears of evicted pods.
#[derive(Default)]
struct Evicted(Mutex<Vec<String>>);

impl TellEvicted for Evicted {
    fn evicted(&self, pod: ObjectReference, _: &str, _: Duration, _: i32) {
        self.0.lock().unwrap().extend(pod.name);
    }
}

/// The series of a metric, without prefix; `{…}` included.
pub(crate) struct Counts(Arc<Metrics>);

impl Counts {
    pub(crate) fn get(&self, series: &str) -> u64 {
        let mut registry = Registry::default();
        self.0.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let prefix = format!("bigfleet_operator_{series} ");
        let line = text.lines().find(|line| line.starts_with(&prefix));
        let line = line.unwrap_or_else(|| panic!("{series} is not served:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn evictions(&self, outcome: &str) -> u64 {
        self.get(&format!("evictions_total{{outcome=\"{outcome}\"}}"))
    }

    pub(crate) fn drains(&self, outcome: &str) -> u64 {
        self.get(&format!("drain_duration_seconds_count{{outcome=\"{outcome}\"}}"))
    }

    pub(crate) fn writes(&self, op: &str, outcome: &str) -> u64 {
        let labels = format!("{{op=\"{op}\",outcome=\"{outcome}\"}}");
        self.get(&format!("upcoming_node_writes_total{labels}"))
    }
}

/// Nodes and hints of one process.
pub(crate) struct Process {
    pub(crate) nodes: Nodes,
    pub(crate) capacity: Capacity,
    pub(crate) counts: Counts,
    evicted: Arc<Evicted>,
    stop: Shutdown,
    tasks: JoinSet<()>,
}

impl Process {
    /// Its caches are filled.
    pub(crate) async fn start(paced: Paced, clock: Clock) -> Self {
        let stop = Shutdown::new();
        let mut tasks = JoinSet::new();
        let nodes = Store::new("nodes");
        let upcoming = Store::new("upcomingnodes");
        let hints = Store::new("availablecapacities");
        let client = || paced.client().clone();
        tasks.spawn({
            let (store, api, stop) = (nodes.clone(), Api::<Node>::all(client()), stop.clone());
            async move { store.run(api, Selection::all(), NodeView::of, stop).await }
        });
        tasks.spawn({
            let (store, api, stop) =
                (upcoming.clone(), Api::<UpcomingNode>::all(client()), stop.clone());
            async move { store.run(api, Selection::all(), UpcomingView::of, stop).await }
        });
        tasks.spawn({
            let (store, api, stop) =
                (hints.clone(), Api::<AvailableCapacity>::all(client()), stop.clone());
            async move { store.run(api, Selection::all(), CapacityView::of, stop).await }
        });
        nodes.wait_synced(PATIENCE).await.unwrap();
        upcoming.wait_synced(PATIENCE).await.unwrap();
        hints.wait_synced(PATIENCE).await.unwrap();
        let metrics = Arc::new(Metrics::default());
        let slots = Slots::new(metrics.clone());
        let evicted = Arc::new(Evicted::default());
        let nodes = Nodes::new(nodes::Config {
            paced: paced.clone(),
            nodes,
            upcoming,
            recorder: Recorder::start(paced.clone(), "bigfleet-operator", "test", stop.clone()),
            metrics: metrics.clone(),
            evicted: evicted.clone(),
            slots: slots.clone(),
            clock,
            own_pod: None,
            deployment: deployment("bigfleet-system", "bigfleet-operator"),
            cleanup: true,
        });
        let capacity = Capacity::new(capacity::Config { paced, store: hints, slots, clock });
        tasks.spawn(nodes.run(stop.clone()));
        tasks.spawn(capacity.run(stop.clone()));
        Self { nodes, capacity, counts: Counts(metrics), evicted, stop, tasks }
    }

    /// Ends it, as a kill would: nothing more is written.
    pub(crate) async fn stop(&mut self) {
        self.stop.request();
        while self.tasks.join_next().await.is_some() {}
    }
}

pub(crate) struct Rig {
    process: Process,
    pub(crate) server: Server,
    pub(crate) clock: Clock,
    pub(crate) acks: Arc<Mutex<Vec<ReclaimAck>>>,
    received: u64,
}

impl Deref for Rig {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

/// A server that knows our kinds.
pub(crate) fn server() -> Server {
    let server = Server::new();
    server.serve::<UpcomingNode>();
    server.serve::<AvailableCapacity>();
    server.record();
    server
}

impl Rig {
    /// On a new server, with a session.
    pub(crate) async fn new() -> Self {
        let clock = Clock::following("2026-01-01T00:00:00Z".parse().unwrap());
        let mut rig = Self::start(server(), clock).await;
        rig.connect();
        rig
    }

    /// A new process on a server that may hold something; no session yet.
    pub(crate) async fn start(server: Server, clock: Clock) -> Self {
        let paced = Paced::new(server.client(), Budget::new(0, 0));
        let process = Process::start(paced, clock).await;
        let (acks, received) = Default::default();
        Self { process, server, clock, acks, received }
    }

    pub(crate) async fn stop(&mut self) {
        self.process.stop().await;
    }

    pub(crate) async fn kill(mut self) -> (Server, Clock) {
        self.stop().await;
        (self.server, self.clock)
    }

    pub(crate) async fn restart(self) -> Self {
        let (server, clock) = self.kill().await;
        Self::start(server, clock).await
    }

    /// A session begins.
    pub(crate) fn connect(&mut self) {
        let acks = self.acks.clone();
        self.received = 0;
        self.nodes.session_began(Arc::new(move |ack| {
            acks.lock().unwrap().push(ack);
            true
        }));
        self.capacity.session_began();
    }

    /// A session begins whose outbox takes so many acks.
    pub(crate) fn connect_with_room(&mut self, room: usize) -> Arc<AtomicUsize> {
        let (acks, room) = (self.acks.clone(), Arc::new(AtomicUsize::new(room)));
        self.received = 0;
        acks.lock().unwrap().clear();
        let left = room.clone();
        self.nodes.session_began(Arc::new(move |ack| {
            let fits = left.load(Ordering::SeqCst) > 0;
            if fits {
                left.fetch_sub(1, Ordering::SeqCst);
                acks.lock().unwrap().push(ack);
            }
            fits
        }));
        self.capacity.session_began();
        room
    }

    pub(crate) fn disconnect(&self) {
        self.nodes.session_ended();
        self.capacity.session_ended();
    }

    pub(crate) fn send(&mut self, frame: &NodeStateUpdate) {
        self.received += 1;
        self.nodes.frame(frame, self.received);
    }

    pub(crate) fn frame(&mut self, machine: &str, state: MachineState) {
        self.send(&frame(machine, state));
    }

    pub(crate) fn reclaim(&mut self, id: &str, nodes: &[&str], grace: i64) {
        self.received += 1;
        let instruction = ReclaimInstruction {
            instruction_id: id.into(),
            nodes: nodes.iter().map(|name| (*name).into()).collect(),
            grace_period_seconds: grace,
            preemptor_priority: 0,
        };
        self.nodes.reclaim(&instruction, self.received);
    }

    /// Waits for a condition.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begin = self.clock.now();
        while !condition(self) {
            let waited = self.clock.now() - begin;
            assert!(waited < PATIENCE, "{what}: not after {waited:?}; {:#?}", self.server.calls());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn idle(&self) {
        self.until("idle", |rig| rig.nodes.is_idle() && rig.capacity.is_idle()).await;
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn object(&self, machine: &str) -> Option<UpcomingNode> {
        self.server.get(None, &bigfleet_crds::upcoming_node_name(machine))
    }

    pub(crate) fn phase(&self, machine: &str) -> Option<Phase> {
        Some(self.object(machine)?.status?.phase)
    }

    pub(crate) fn last_error(&self, machine: &str) -> String {
        let status = self.object(machine).and_then(|object| object.status);
        status.and_then(|status| status.last_error).unwrap_or_default()
    }

    pub(crate) fn node(&self, name: &str) -> NodeView {
        NodeView::of(&self.server.get::<Node>(None, name).unwrap()).unwrap()
    }

    /// Acks of an instruction as (started, drained, finished).
    pub(crate) fn acks(&self, id: &str) -> Vec<(i32, i32, bool)> {
        let acks = self.acks.lock().unwrap();
        let acks = acks.iter().filter(|ack| ack.instruction_id == id);
        acks.map(|ack| (ack.nodes_started, ack.nodes_drained, ack.finished)).collect()
    }

    /// Pods that were told of their eviction.
    pub(crate) fn told(&self) -> usize {
        self.evicted.0.lock().unwrap().len()
    }

    pub(crate) fn has_event(&self, reason: &str) -> bool {
        self.server.all::<Event>().iter().any(|event| event.reason.as_deref() == Some(reason))
    }

    /// A Node of a machine, by its label.
    pub(crate) fn put_node(&self, name: &str, machine: &str, ready: bool) {
        put_node(&self.server, name, machine, ready, self.clock.wall());
    }

    /// A pod on a node.
    pub(crate) fn put_pod(&self, name: &str, node: &str) {
        self.server.put(&pod(name, node, &json!({})));
    }

    pub(crate) fn pods(&self) -> Vec<String> {
        self.server.all::<Pod>().into_iter().filter_map(|pod| pod.metadata.name).collect()
    }

    /// Cordons or uncordons, as a human would.
    pub(crate) fn human(&self, name: &str, unschedulable: bool) {
        let mut node: Node = self.server.get(None, name).unwrap();
        node.spec.get_or_insert_default().unschedulable = Some(unschedulable);
        self.server.put(&node);
    }
}

pub(crate) fn frame(machine: &str, state: MachineState) -> NodeStateUpdate {
    NodeStateUpdate {
        supersedes_key: format!("node:{machine}"),
        machine_id: machine.into(),
        state: state.into(),
        ..NodeStateUpdate::default()
    }
}

pub(crate) fn put_node(server: &Server, name: &str, machine: &str, ready: bool, since: Timestamp) {
    let known: Option<Node> = server.get(None, name);
    let mut node = known
        .unwrap_or_else(|| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap());
    if !machine.is_empty() {
        let labels = node.metadata.labels.get_or_insert_default();
        labels.insert(keys::MACHINE_ID.into(), machine.into());
    }
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = if ready { "True" } else { "Unknown" };
    let conditions = json!({"conditions": [
        {"type": "Ready", "status": status, "lastTransitionTime": since}
    ]});
    node.status = Some(serde_json::from_value(conditions).unwrap());
    server.put(&node);
}

pub(crate) fn pod(name: &str, node: &str, metadata: &serde_json::Value) -> Pod {
    let mut object = json!({
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [], "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running"},
    });
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = "apps".into();
    serde_json::from_value(object).unwrap()
}
