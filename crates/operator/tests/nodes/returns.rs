//! Rows of the catalogue about what becomes of a Node when its machine stays or leaves.

use bigfleet_crds::UpcomingNodePhase as Phase;
use bigfleet_in_cluster::memory::Eviction;
use bigfleet_wire::v1alpha1::{MachineState as S, NodeStateUpdate};
use k8s_openapi::api::core::v1::Node;

use crate::rig::{Rig, frame};

async fn drained() -> Rig {
    let mut rig = Rig::new().await;
    rig.put_node("n", "m", true);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.reclaim("i", &["m"], 30);
    rig.idle().await;
    assert_eq!(rig.phase("m"), Some(Phase::Drained));
    rig
}

#[tokio::test(start_paused = true)]
async fn row_25_our_cordon_is_lifted_when_the_machine_returns() {
    let mut rig = drained().await;
    rig.frame("m", S::Configured);
    rig.idle().await;
    assert!(rig.node("n").unschedulable, "that frame may be older than the instruction");
    rig.send(&NodeStateUpdate { ended_instruction_id: "i".into(), ..frame("m", S::Configured) });
    rig.idle().await;
    let node = rig.node("n");
    assert!(!node.unschedulable);
    assert_eq!((node.instruction, node.deadline), (None, None));
    assert_eq!(rig.phase("m"), Some(Phase::Ready));
    assert_eq!(rig.counts.get("nodes_uncordoned_total"), 1);
    rig.until("event", |rig| rig.has_event("BigFleetUncordoned")).await;
}

#[tokio::test(start_paused = true)]
async fn row_25_a_human_cordon_stays() {
    let mut rig = Rig::new().await;
    rig.put_node("n", "m", true);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.human("n", true);
    // At once, before any cache can have seen it.
    rig.reclaim("i", &["m"], 30);
    rig.idle().await;
    assert!(rig.node("n").cordoned_by_human);
    rig.frame("m", S::Draining);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.pass(60).await;
    assert!(rig.node("n").unschedulable);
    rig = rig.restart().await;
    rig.connect();
    rig.frame("m", S::Configured);
    rig.idle().await;
    assert!(rig.node("n").unschedulable);
    assert_eq!(rig.counts.get("nodes_uncordoned_total"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cordon_that_somebody_lifted_is_no_longer_ours() {
    let mut rig = drained().await;
    rig.human("n", false);
    rig.until("unmarked", |rig| rig.node("n").instruction.is_none()).await;
    rig.human("n", true);
    rig.frame("m", S::Draining);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.pass(60).await;
    assert!(rig.node("n").unschedulable, "that cordon is a human's");
}

#[tokio::test(start_paused = true)]
async fn what_was_received_counts_though_it_was_never_written() {
    let mut rig = drained().await;
    rig.server.away(true);
    rig.frame("m", S::Draining);
    rig.frame("m", S::Configured);
    rig.pass(1).await;
    rig.server.away(false);
    rig.idle().await;
    assert!(!rig.node("n").unschedulable);
}

#[tokio::test(start_paused = true)]
async fn row_41_a_restarted_shard_gets_its_node_back_when_the_drain_has_ended() {
    let mut rig = Rig::new().await;
    rig.put_node("n", "m", true);
    rig.put_pod("web", "n");
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.server.on_eviction(|_| Eviction::Budget);
    rig.reclaim("i", &["m"], 30);
    rig.pass(5).await;
    rig.disconnect();
    rig.connect();
    rig.frame("m", S::Configured);
    rig.nodes.resync();
    rig.pass(5).await;
    assert!(rig.node("n").unschedulable, "the drain still runs");
    rig.idle().await;
    rig.pass(1).await;
    assert!(!rig.node("n").unschedulable);
    assert_eq!(rig.phase("m"), Some(Phase::Ready));
    assert_eq!(rig.pods(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_cordon_of_an_earlier_process_needs_a_frame_of_this_session() {
    let mut rig = drained().await;
    rig.frame("m", S::Draining);
    rig.idle().await;
    rig = rig.restart().await;
    rig.pass(600).await;
    assert!(rig.node("n").unschedulable, "nobody has said anything");
    rig.connect();
    rig.frame("m", S::Draining);
    rig.pass(60).await;
    assert!(rig.node("n").unschedulable);
    rig.frame("m", S::Configured);
    rig.idle().await;
    assert!(!rig.node("n").unschedulable);
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_of_a_departed_machine_is_deleted_and_no_other() {
    let mut rig = Rig::new().await;
    for (node, machine) in [("dead", "m1"), ("alive", "m2"), ("stays", "m3")] {
        rig.put_node(node, machine, true);
        rig.frame(machine, S::Configured);
    }
    rig.idle().await;
    rig.put_node("dead", "m1", false);
    rig.put_node("stays", "m3", false);
    for machine in ["m1", "m2"] {
        rig.send(&NodeStateUpdate { gone: true, ..frame(machine, S::Idle) });
    }
    let there = |rig: &Rig, name: &str| rig.server.get::<Node>(None, name).is_some();
    rig.pass(50).await;
    assert!(there(&rig, "dead"));
    rig.until("deleted", |rig| !there(rig, "dead")).await;
    assert!(rig.now().as_secs() >= 60);
    rig.pass(600).await;
    assert!(there(&rig, "alive"), "its kubelet lives");
    assert!(there(&rig, "stays"), "its machine has not left");
    assert_eq!(rig.counts.get("nodes_deleted_total"), 1);
    // The kubelet dies at last; the machine has come back meanwhile.
    rig.frame("m2", S::Configured);
    rig.put_node("alive", "m2", false);
    rig.pass(600).await;
    assert!(there(&rig, "alive"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_between_a_departure_and_its_nodes_end_leaks_no_node() {
    let mut rig = Rig::new().await;
    for (node, machine) in [("dead", "m1"), ("alive", "m2"), ("stays", "m3"), ("foreign", "")] {
        rig.put_node(node, machine, true);
        if !machine.is_empty() {
            rig.frame(machine, S::Configured);
        }
    }
    rig.idle().await;
    for machine in ["m1", "m2"] {
        rig.send(&NodeStateUpdate { gone: true, ..frame(machine, S::Idle) });
    }
    rig.idle().await;
    for (node, machine) in [("dead", "m1"), ("stays", "m3"), ("foreign", "")] {
        rig.put_node(node, machine, false);
    }
    let mut rig = rig.restart().await;
    rig.connect();
    rig.frame("m3", S::Configured);
    let there = |rig: &Rig, name: &str| rig.server.get::<Node>(None, name).is_some();
    rig.pass(600).await;
    assert!(there(&rig, "dead"), "who knows what the replay still holds");
    rig.nodes.resync();
    rig.until("deleted", |rig| !there(rig, "dead")).await;
    rig.pass(600).await;
    for node in ["alive", "stays", "foreign"] {
        assert!(there(&rig, node), "{node}");
    }
    // The machine comes back, and its Node is its own again.
    rig.frame("m2", S::Configured);
    rig.put_node("alive", "m2", false);
    rig.pass(600).await;
    assert!(there(&rig, "alive"));
}
