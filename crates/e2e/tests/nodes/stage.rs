//! A cluster with an operator, and a scripted shard at the other end of its session.

use std::collections::BTreeMap;

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase, UpcomingNodeStatus, keys};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::{PATIENCE, eventually},
    workload::Workload,
};
use bigfleet_net::tls::Security;
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_wire::v1alpha1::{
    MachineState, NodeStateUpdate, ReclaimAck, operator_message::Payload as Up,
    shard_message::Payload as Down,
};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::ResourceExt;
use serde_json::json;

const CLUSTER: &str = "c-1";

/// Label of a machine and its node: which machines a row may put its pods on.
const POOL: &str = "pool";

pub(crate) struct Stage {
    pub(crate) operator: Part,
    pub(crate) fleet: Fleet,
    pub(crate) shard: Shard,
    pub(crate) cluster: Cluster,
}

impl Stage {
    pub(crate) async fn start_or_skip() -> Option<Self> {
        let cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let shard = Shard::start(&Security::Plaintext).await.unwrap();
        let fleet = Fleet::new();
        let operator = operator(&fleet, &cluster, &shard, "operator-0").await;
        let stage = Self { operator, fleet, shard, cluster };
        stage.until_sessions(1).await;
        Some(stage)
    }

    /// Another operator of the same cluster.
    pub(crate) async fn operator(&self, pod: &str) -> Part {
        operator(&self.fleet, &self.cluster, &self.shard, pod).await
    }

    /// Waits until the session of that number stands, alone.
    pub(crate) async fn until_sessions(&self, count: usize) {
        let wanted = |heard: &Heard| heard.sessions() >= count && heard.live_sessions() == 1;
        self.shard.wait_for("a session", wanted, PATIENCE).await.unwrap();
    }

    /// Tells where a machine stands that belongs to this pool.
    pub(crate) async fn machine(&self, id: &str, pool: &str, state: MachineState) {
        self.frame(NodeStateUpdate {
            labels: [(POOL.to_owned(), pool.to_owned())].into(),
            ..Shard::node(CLUSTER, id, state)
        })
        .await;
    }

    pub(crate) async fn frame(&self, frame: NodeStateUpdate) {
        self.shard.send(Down::NodeStateUpdate(frame)).await.unwrap();
    }

    /// Machines of this pool that are nodes.
    pub(crate) async fn join(&self, pool: &str, ids: &[&str]) {
        for id in ids {
            self.machine(id, pool, MachineState::Configured).await;
        }
        eventually(&format!("{ids:?} are nodes"), || async {
            let nodes = self.cluster.nodes().await;
            ids.iter().all(|id| nodes.iter().any(|node| is_of(node, id)))
        })
        .await;
    }

    /// The machines leave, and their nodes with them.
    pub(crate) async fn dismiss(&self, pool: &str, ids: &[&str]) {
        for id in ids {
            self.machine(id, pool, MachineState::Idle).await;
        }
        eventually(&format!("{ids:?} have left"), || async {
            let nodes = self.cluster.nodes().await;
            !ids.iter().any(|id| nodes.iter().any(|node| is_of(node, id)))
        })
        .await;
    }

    pub(crate) async fn status(&self, id: &str) -> Option<UpcomingNodeStatus> {
        let name = bigfleet_crds::upcoming_node_name(id);
        let all = self.cluster.all::<UpcomingNode>().await;
        all.into_iter().find(|object| object.name_any() == name)?.status
    }

    pub(crate) async fn phase(&self, id: &str) -> Option<UpcomingNodePhase> {
        self.status(id).await.map(|status| status.phase)
    }

    pub(crate) async fn until_phase(&self, id: &str, phase: UpcomingNodePhase) {
        let what = format!("{id} is {phase:?}");
        eventually(&what, || async { self.phase(id).await == Some(phase) }).await;
    }

    pub(crate) async fn node(&self, id: &str) -> Node {
        let nodes = self.cluster.nodes().await;
        nodes.into_iter().find(|node| is_of(node, id)).unwrap_or_else(|| panic!("no node of {id}"))
    }

    pub(crate) async fn is_cordoned(&self, id: &str) -> bool {
        self.node(id).await.spec.and_then(|spec| spec.unschedulable) == Some(true)
    }

    pub(crate) async fn annotation(&self, id: &str, key: &str) -> Option<String> {
        self.node(id).await.annotations().get(key).cloned()
    }

    /// Acks of an instruction, in order: nodes started, nodes drained, whether it is the last.
    pub(crate) fn acks(&self, instruction: &str) -> Vec<(i32, i32, bool)> {
        acks(&self.shard.heard(), instruction).map(summary).collect()
    }

    /// Waits for the first ack of an instruction.
    pub(crate) async fn until_started(&self, instruction: &str) -> (i32, i32, bool) {
        let wanted = |heard: &Heard| acks(heard, instruction).next().is_some();
        self.shard.wait_for("a first ack", wanted, PATIENCE).await.unwrap();
        self.acks(instruction)[0]
    }

    /// Waits for the last ack of an instruction.
    pub(crate) async fn until_finished(&self, instruction: &str) -> (i32, i32, bool) {
        let wanted = |heard: &Heard| acks(heard, instruction).any(|ack| ack.finished);
        self.shard.wait_for("a final ack", wanted, PATIENCE).await.unwrap();
        *self.acks(instruction).last().unwrap()
    }

    /// Waits for an event with this reason that names this object.
    pub(crate) async fn until_event(&self, reason: &str, about: &str) {
        let is = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.involved_object.name.as_deref() == Some(about)
        };
        eventually(&format!("event {reason} about {about}"), || async {
            self.cluster.all::<Event>().await.iter().any(is)
        })
        .await;
    }
}

async fn operator(fleet: &Fleet, cluster: &Cluster, shard: &Shard, pod: &str) -> Part {
    let addr = format!("--shard-addr={}", shard.addr());
    let config = cluster.operator_kubeconfig(None);
    let mut operator = fleet.operator(pod, &config, &[&addr]).await;
    operator.until_ready().await;
    operator
}

fn is_of(node: &Node, machine: &str) -> bool {
    node.labels().get(keys::MACHINE_ID).is_some_and(|id| id == machine)
}

fn acks<'a>(heard: &'a Heard, instruction: &'a str) -> impl Iterator<Item = &'a ReclaimAck> {
    heard.frames.iter().filter_map(move |(_, frame)| match frame {
        Up::ReclaimAck(ack) if ack.instruction_id == instruction => Some(ack),
        _ => None,
    })
}

fn summary(ack: &ReclaimAck) -> (i32, i32, bool) {
    (ack.nodes_started, ack.nodes_drained, ack.finished)
}

/// A workload whose pods live on the machines of a pool.
pub(crate) fn pooled(name: &str, pool: &str) -> Workload {
    Workload::new("default", name).field("nodeSelector", json!({POOL: pool}))
}

/// UIDs of pods by their names, without those that are about to end.
pub(crate) async fn living(cluster: &Cluster, app: &str) -> BTreeMap<String, String> {
    let pods = cluster.pods("default", app).await;
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    pods.iter().filter(stays).map(|pod| (pod.name_any(), pod.uid().unwrap())).collect()
}
