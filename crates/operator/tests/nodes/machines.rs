//! Rows of the catalogue about UpcomingNodes.

use std::time::Duration;

use bigfleet_crds::UpcomingNodePhase as Phase;
use bigfleet_in_cluster::memory::{Fault, Verb};
use bigfleet_wire::v1alpha1::{MachineState as S, NodeStateUpdate};

use crate::rig::{Rig, frame};

#[tokio::test(start_paused = true)]
async fn row_17_a_thousand_machines_cost_one_create_and_two_patches_each() {
    let mut rig = Rig::new().await;
    for state in [S::Idle, S::Configuring, S::Configured] {
        for n in 0..1_000 {
            rig.frame(&format!("m{n}"), state);
        }
        rig.idle().await;
    }
    assert_eq!(rig.server.count(Verb::Create, "upcomingnodes"), 1_000);
    assert!(rig.server.count(Verb::Patch, "upcomingnodes") <= 2_000);
    for n in 0..1_000 {
        assert_eq!(rig.phase(&format!("m{n}")), Some(Phase::Ready));
    }
    let writes = rig.server.writes();
    for n in 0..1_000 {
        rig.frame(&format!("m{n}"), S::Configured);
    }
    rig.idle().await;
    assert_eq!(rig.server.writes(), writes, "nothing changed, nothing is written");
    assert_eq!(rig.counts.get("status_update noop"), 1_000);
}

#[tokio::test(start_paused = true)]
async fn row_18_a_rollback_deletes_the_object() {
    let mut rig = Rig::new().await;
    rig.frame("m", S::Configuring);
    rig.idle().await;
    assert_eq!(rig.phase("m"), Some(Phase::Registered));
    rig.frame("m", S::Idle);
    rig.idle().await;
    assert!(rig.object("m").is_none());
    rig.frame("m", S::Idle);
    rig.idle().await;
    assert!(rig.object("m").is_none(), "a repeated closing frame does not bring it back");
}

#[tokio::test(start_paused = true)]
async fn rows_19_and_42_only_the_marker_prunes_and_only_what_it_found_without_a_frame() {
    let mut rig = Rig::new().await;
    for n in 0..5 {
        rig.frame(&format!("m{n}"), S::Configured);
    }
    rig.idle().await;
    rig.disconnect();
    rig.connect();
    rig.frame("m0", S::Configured);
    rig.idle().await;
    rig.pass(600).await;
    assert_eq!(rig.server.number_of::<bigfleet_crds::UpcomingNode>(), 5, "no marker, no prune");
    rig.nodes.resync();
    // Regained after the marker: keeps its object, or gets it back.
    rig.frame("m1", S::Configured);
    rig.idle().await;
    let left = [true, true, false, false, false];
    for (n, left) in left.into_iter().enumerate() {
        assert_eq!(rig.object(&format!("m{n}")).is_some(), left, "m{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prune_ends_with_its_session() {
    let mut rig = Rig::new().await;
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.disconnect();
    rig.connect();
    rig.server.away(true);
    rig.nodes.resync();
    rig.pass(1).await;
    rig.disconnect();
    rig.server.away(false);
    rig.pass(60).await;
    assert!(rig.object("m").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_second_marker_of_a_session_prunes_nothing() {
    let mut rig = Rig::new().await;
    rig.nodes.resync();
    rig.server.put(
        &serde_json::from_value::<bigfleet_crds::UpcomingNode>(serde_json::json!({
            "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "UpcomingNode",
            "metadata": {"name": "un-late"}, "spec": {"resources": {}},
        }))
        .unwrap(),
    );
    rig.pass(1).await;
    rig.nodes.resync();
    rig.pass(10).await;
    assert!(rig.object("late").is_some());
    rig.disconnect();
    rig.connect();
    rig.nodes.resync();
    rig.idle().await;
    assert!(rig.object("late").is_none(), "the next session's marker finds it without a frame");
}

#[tokio::test(start_paused = true)]
async fn a_link_is_written_when_it_appears() {
    let mut rig = Rig::new().await;
    let with_provider = |provider_id: &str| NodeStateUpdate {
        provider_id: provider_id.into(),
        ..frame("m", S::Configured)
    };
    rig.send(&with_provider("p"));
    rig.idle().await;
    let node_ref = |rig: &Rig| rig.object("m").unwrap().status.unwrap().node_ref;
    assert_eq!(node_ref(&rig), None);
    rig.put_node("worker-1", "m", true);
    rig.until("nodeRef", |rig| node_ref(rig).is_some()).await;
    let node = node_ref(&rig).unwrap();
    assert_eq!((node.kind.as_deref(), node.name.as_deref()), (Some("Node"), Some("worker-1")));
    // Empty clues keep what is known.
    rig.send(&with_provider(""));
    rig.idle().await;
    assert_eq!(rig.object("m").unwrap().status.unwrap().provider_id.as_deref(), Some("p"));
}

#[tokio::test(start_paused = true)]
async fn a_create_followed_at_once_by_the_end_leaks_nothing() {
    let mut rig = Rig::new().await;
    // The cache sees nothing of what happens.
    rig.server.inject(Fault::unreachable().on(Verb::Watch, "upcomingnodes"));
    rig.server.inject(Fault::unreachable().on(Verb::List, "upcomingnodes"));
    rig.server.cut_watches();
    for _ in 0..3 {
        rig.frame("m", S::Configuring);
        rig.idle().await;
        assert_eq!(rig.phase("m"), Some(Phase::Registered));
        rig.send(&NodeStateUpdate { gone: true, ..frame("m", S::Idle) });
        rig.idle().await;
        assert!(rig.object("m").is_none());
    }
    rig.server.heal();
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.pass(300).await;
    assert_eq!(rig.phase("m"), Some(Phase::Ready));
}

#[tokio::test(start_paused = true)]
async fn frames_of_an_outage_coalesce_and_apply_on_return() {
    let mut rig = Rig::new().await;
    rig.server.away(true);
    for state in [S::Creating, S::Idle, S::Configuring, S::Failed, S::Configured] {
        rig.frame("m", state);
        rig.pass(60).await;
    }
    assert!(rig.nodes.waiting() <= 1);
    rig.server.away(false);
    rig.until("Ready", |rig| rig.phase("m") == Some(Phase::Ready)).await;
    assert_eq!(rig.counts.get("create success"), 1);
    assert_eq!(rig.counts.get("status_update success"), 1, "no phase in between was written");
}

#[tokio::test(start_paused = true)]
async fn errors_come_with_failed_and_go_with_it() {
    let mut rig = Rig::new().await;
    rig.send(&NodeStateUpdate { last_error: "boom".into(), ..frame("m", S::Failed) });
    rig.idle().await;
    assert_eq!((rig.phase("m"), rig.last_error("m").as_str()), (Some(Phase::Failed), "boom"));
    rig.frame("m", S::Configuring);
    rig.idle().await;
    assert_eq!(rig.last_error("m"), "");
    rig.put_node("n", "m", true);
    rig.pass(1).await;
    rig.send(&NodeStateUpdate {
        gone: true,
        last_error: "removed by provider".into(),
        ..frame("m", S::Failed)
    });
    rig.idle().await;
    assert!(rig.object("m").is_none());
    rig.until("event", |rig| rig.has_event("BigFleetMachineRemoved")).await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_say_nothing_are_counted() {
    let mut rig = Rig::new().await;
    rig.frame("", S::Configured);
    rig.frame("m", S::Unspecified);
    rig.send(&NodeStateUpdate { state: 99, ..frame("m", S::Configured) });
    rig.idle().await;
    assert!(rig.object("m").is_none());
    assert_eq!(rig.counts.get("ignored empty_machine_id"), 1);
    assert_eq!(rig.counts.get("ignored unknown_state"), 2);
}

#[tokio::test(start_paused = true)]
async fn row_37_a_machine_without_a_node_is_phantom_capacity() {
    let mut rig = Rig::new().await;
    rig.put_node("n", "m", false);
    rig.frame("m", S::Configured);
    rig.frame("absent", S::Configured);
    rig.pass(110).await;
    assert_eq!(rig.counts.get("not ready"), 0);
    rig.pass(30).await;
    assert_eq!(rig.counts.get("not ready"), 2);
    rig.until("event", |rig| rig.has_event("ConfiguredNotReady")).await;
    rig.put_node("n", "m", true);
    rig.pass(10).await;
    assert_eq!(rig.counts.get("not ready"), 1);
}

#[tokio::test(start_paused = true)]
async fn operator_inv_09_a_million_frames_of_a_thousand_machines_leave_a_thousand_entries() {
    let mut rig = Rig::new().await;
    rig.server.away(true);
    let machines: Vec<_> = (0..1_000).map(|n| format!("m{n}")).collect();
    let states = [S::Configuring, S::Configured, S::Draining, S::Idle];
    for round in 0..1_000 {
        for machine in &machines {
            rig.frame(machine, states[round % states.len()]);
        }
        assert!(rig.nodes.waiting() <= 1_000);
    }
    // The last state of every round is IDLE after DRAINING: all have left.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.server.away(false);
    rig.idle().await;
    assert_eq!(rig.server.number_of::<bigfleet_crds::UpcomingNode>(), 0);
}
