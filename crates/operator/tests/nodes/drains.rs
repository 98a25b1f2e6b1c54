//! Rows of the catalogue about reclaim and drain.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_crds::UpcomingNodePhase as Phase;
use bigfleet_in_cluster::memory::{Eviction, Fault, Verb};
use bigfleet_wire::v1alpha1::{MachineState as S, NodeStateUpdate};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::rig::{Rig, frame, pod};

/// A machine `m` with its Node `n`, configured.
async fn configured() -> Rig {
    let mut rig = Rig::new().await;
    rig.put_node("n", "m", true);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig
}

fn named(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

/// No pod was deleted but by eviction.
fn no_deletes(rig: &Rig) {
    assert_eq!(rig.server.count(Verb::Delete, "pods"), 0);
    assert_eq!(rig.server.count(Verb::DeleteCollection, "pods"), 0);
}

#[tokio::test(start_paused = true)]
async fn row_20_cordon_ack_then_evictions_as_the_budget_allows() {
    let mut rig = configured().await;
    for name in ["web-1", "web-2", "web-3"] {
        rig.put_pod(name, "n");
    }
    rig.put_pod("elsewhere", "other");
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d",
                        "controller": true}]);
    rig.server.put(&pod("daemon", "n", &json!({"ownerReferences": owner})));
    rig.server.put(&pod(
        "static",
        "n",
        &json!({"annotations": {"kubernetes.io/config.mirror": "x"}}),
    ));
    let clock = rig.clock;
    let last = Arc::new(Mutex::new(None::<Duration>));
    // The budget allows one, and recovers in 5 s.
    rig.server.on_eviction({
        let last = last.clone();
        move |_| {
            let mut last = last.lock().unwrap();
            if last.is_some_and(|last| clock.now() - last < Duration::from_secs(5)) {
                return Eviction::Budget;
            }
            *last = Some(clock.now());
            Eviction::Allow
        }
    });
    let began = rig.now();
    rig.reclaim("i", &["m"], 120);
    rig.until("first ack", |rig| !rig.acks("i").is_empty()).await;
    assert!(rig.now() - began < Duration::from_secs(1));
    assert_eq!(rig.acks("i"), [(1, 0, false)]);
    assert!(rig.node("n").unschedulable);
    assert_eq!(rig.node("n").instruction.as_deref(), Some("i"));
    assert_eq!(rig.node("n").deadline.as_deref(), Some("2026-01-01T00:02:00Z"));
    rig.until("Drained", |rig| rig.phase("m") == Some(Phase::Drained)).await;
    rig.idle().await;
    assert_eq!(rig.acks("i"), [(1, 0, false), (1, 1, true)]);
    assert_eq!(rig.pods(), ["daemon", "elsewhere", "static"]);
    assert!(rig.now() - began >= Duration::from_secs(10), "one at a time");
    assert!(rig.counts.evictions("blocked") >= 2);
    no_deletes(&rig);
    assert_eq!(rig.node("n").deadline, None);
    assert_eq!(rig.node("n").instruction.as_deref(), Some("i"), "it marks the cordon as ours");
    assert_eq!(rig.told(), 3);
    for reason in ["BigFleetReclaim", "BigFleetDrainBlocked", "BigFleetDrained"] {
        rig.until(reason, |rig| rig.has_event(reason)).await;
    }
    // The shard's own frame comes late and changes nothing.
    rig.frame("m", S::Draining);
    rig.idle().await;
    assert_eq!(rig.phase("m"), Some(Phase::Drained));
}

#[tokio::test(start_paused = true)]
async fn row_21_a_blocked_drain_fails_at_its_deadline_and_names_the_pod() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    let evictions = Arc::new(Mutex::new(Vec::new()));
    let clock = rig.clock;
    rig.server.on_eviction({
        let evictions = evictions.clone();
        move |_| {
            evictions.lock().unwrap().push(clock.now());
            Eviction::Budget
        }
    });
    let began = rig.now();
    rig.reclaim("i", &["m"], 10);
    rig.until("Failed", |rig| rig.phase("m") == Some(Phase::Failed)).await;
    let took = rig.now() - began;
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(11), "{took:?}");
    assert_eq!(
        rig.last_error("m"),
        "drain: grace period exceeded: 1 pods remain: apps/web (disruption budget)"
    );
    rig.idle().await;
    assert_eq!(rig.acks("i"), [(1, 0, false), (1, 0, true)]);
    rig.pass(60).await;
    let evictions = evictions.lock().unwrap().clone();
    assert!(evictions.len() >= 4, "it was tried again and again: {evictions:?}");
    assert!(evictions.iter().all(|at| *at < began + Duration::from_secs(10)));
    no_deletes(&rig);
    assert_eq!(rig.pods(), ["web"]);
    rig.until("event", |rig| rig.has_event("BigFleetDrainTimeout")).await;
    // The machine is taken: still the same reclaim.
    rig.frame("m", S::Draining);
    rig.idle().await;
    assert_eq!(rig.phase("m"), Some(Phase::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_eviction_is_tried_again_and_told() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Refuse(403));
    rig.reclaim("i", &["m"], 30);
    rig.until("event", |rig| rig.has_event("BigFleetDrainBlocked")).await;
    rig.pass(5).await;
    assert!(rig.counts.evictions("forbidden") >= 2);
    rig.server.on_eviction(|_| Eviction::Allow);
    rig.until("Drained", |rig| rig.phase("m") == Some(Phase::Drained)).await;
}

#[tokio::test(start_paused = true)]
async fn row_22_a_stuck_node_does_not_eat_the_grace_of_others() {
    let mut rig = Rig::new().await;
    for n in 0..3 {
        rig.put_node(&format!("n{n}"), &format!("m{n}"), true);
        rig.frame(&format!("m{n}"), S::Configured);
        for p in 0..100 {
            rig.put_pod(&format!("p{n}-{p}"), &format!("n{n}"));
        }
    }
    rig.idle().await;
    rig.server.on_eviction(|pod| {
        if named(pod).starts_with("p0") { Eviction::Budget } else { Eviction::Allow }
    });
    rig.reclaim("i", &["m0", "m1", "m2"], 30);
    rig.until("two are drained", |rig| {
        ["m1", "m2"].iter().all(|machine| rig.phase(machine) == Some(Phase::Drained))
    })
    .await;
    assert!(rig.now() < Duration::from_secs(15), "{:?}", rig.now());
    rig.until("Failed", |rig| rig.phase("m0") == Some(Phase::Failed)).await;
    assert!(rig.last_error("m0").contains("100 pods remain"), "{}", rig.last_error("m0"));
    rig.idle().await;
    assert_eq!(rig.acks("i"), [(3, 0, false), (3, 2, true)]);
}

#[tokio::test(start_paused = true)]
async fn row_23_only_nodes_that_were_cordoned_count_and_the_others_are_told() {
    let mut rig = configured().await;
    // One more in the cache that is no longer there.
    rig.put_node("vanished", "v", true);
    rig.pass(1).await;
    rig.server.inject(Fault::unreachable().on(Verb::Watch, "nodes"));
    rig.server.inject(Fault::unreachable().on(Verb::List, "nodes"));
    rig.server.cut_watches();
    rig.server.remove::<Node>(None, "vanished");
    rig.reclaim("i", &["m", "unknown", "v", "n"], 10);
    rig.until("final ack", |rig| rig.acks("i").len() == 2).await;
    assert_eq!(rig.acks("i"), [(1, 0, false), (1, 1, true)], "m and n are one node");
    assert_eq!(rig.counts.get("reclaim_unresolved_nodes_total"), 2);
    rig.until("event", |rig| rig.has_event("UnresolvedNode")).await;
}

#[tokio::test(start_paused = true)]
async fn row_24_a_killed_operator_goes_on_with_the_same_deadline() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Budget);
    let began = rig.now();
    rig.reclaim("i", &["m"], 60);
    rig.pass(30).await;
    rig = rig.restart().await;
    rig.connect();
    rig.frame("m", S::Draining);
    rig.until("Failed", |rig| rig.phase("m") == Some(Phase::Failed)).await;
    let took = rig.now() - began;
    assert!(took > Duration::from_secs(58) && took < Duration::from_secs(62), "{took:?}");
    rig.idle().await;
    assert_eq!(rig.acks("i"), [(1, 0, true)], "under the id on the node");
    // Past its deadline while nobody looked: Failed at once.
    rig.reclaim("j", &["m"], 60);
    rig.pass(5).await;
    let (server, clock) = rig.kill().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let mut rig = Rig::start(server, clock).await;
    rig.connect();
    rig.idle().await;
    assert_eq!(rig.phase("m"), Some(Phase::Failed));
    assert_eq!(rig.acks("j"), [(1, 0, true)]);
    assert_eq!(rig.node("n").deadline, None);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_another_clock_is_clamped() {
    let rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Budget);
    let (server, clock) = rig.kill().await;
    let mut node: Node = server.get(None, "n").unwrap();
    let annotations = node.metadata.annotations.get_or_insert_default();
    annotations.insert(bigfleet_crds::keys::RECLAIM_INSTRUCTION.into(), "i".into());
    annotations.insert(bigfleet_crds::keys::RECLAIM_DEADLINE.into(), "2026-01-01T05:00:00Z".into());
    node.spec.get_or_insert_default().unschedulable = Some(true);
    server.put(&node);
    let rig = Rig::start(server, clock).await;
    let began = rig.now();
    rig.until("Failed", |rig| rig.phase("m") == Some(Phase::Failed)).await;
    let took = rig.now() - began;
    assert!(took >= Duration::from_secs(595) && took < Duration::from_secs(606), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn row_26_a_recreated_pod_is_protected_by_its_uid() {
    let mut rig = configured().await;
    rig.put_pod("db-0", "n");
    let slow = Fault::latency(Duration::from_secs(3)).on(Verb::Create, "pods");
    rig.server.inject(slow.subresource("eviction").times(1));
    rig.reclaim("i", &["m"], 60);
    rig.pass(1).await;
    // Meanwhile it is gone and another of its name runs elsewhere.
    rig.server.remove::<Pod>(Some("apps"), "db-0");
    rig.put_pod("db-0", "other");
    rig.until("Drained", |rig| rig.phase("m") == Some(Phase::Drained)).await;
    assert_eq!(rig.pods(), ["db-0"]);
    assert_eq!(rig.counts.evictions("conflict"), 1);
}

#[tokio::test(start_paused = true)]
async fn overlapping_instructions_share_one_drain_with_the_earlier_deadline() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Budget);
    let began = rig.now();
    rig.reclaim("long", &["m"], 600);
    rig.pass(5).await;
    rig.reclaim("short", &["m"], 10);
    rig.pass(1).await;
    rig.reclaim("longer", &["m"], 900);
    rig.until("Failed", |rig| rig.phase("m") == Some(Phase::Failed)).await;
    let took = rig.now() - began;
    assert!(took >= Duration::from_secs(15) && took < Duration::from_secs(16), "{took:?}");
    rig.idle().await;
    for id in ["long", "short", "longer"] {
        assert_eq!(rig.acks(id), [(1, 0, false), (1, 0, true)], "{id}");
    }
    assert_eq!(rig.counts.drains("timeout"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_its_binding_and_with_its_node() {
    for (state, gone) in [(S::Idle, false), (S::Configuring, false), (S::Failed, true)] {
        let mut rig = configured().await;
        rig.put_pod("web", "n");
        rig.server.on_eviction(|_| Eviction::Budget);
        rig.reclaim("i", &["m"], 600);
        rig.pass(5).await;
        rig.send(&NodeStateUpdate { gone, ..frame("m", state) });
        rig.pass(1).await;
        let tried = rig.counts.evictions("blocked");
        rig.pass(60).await;
        assert_eq!(rig.counts.evictions("blocked"), tried, "{state:?}");
        assert_eq!(rig.acks("i").last(), Some(&(1, 0, true)), "{state:?}");
        assert_eq!(rig.counts.drains("stopped"), 1, "{state:?}");
    }
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Budget);
    rig.reclaim("i", &["m"], 600);
    rig.pass(5).await;
    rig.server.remove::<Node>(None, "n");
    rig.put_node("n", "m", true);
    rig.pass(1).await;
    let tried = rig.counts.evictions("blocked");
    rig.pass(60).await;
    assert_eq!(rig.counts.evictions("blocked"), tried, "another node of that name");
    assert!(!rig.node("n").unschedulable);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_its_node_though_nobody_saw_it_go() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.on_eviction(|_| Eviction::Budget);
    rig.reclaim("i", &["m"], 600);
    rig.pass(5).await;
    rig.server.inject(Fault::unreachable().on(Verb::Watch, "nodes"));
    rig.server.cut_watches();
    rig.server.remove::<Node>(None, "n");
    rig.put_node("n", "m", true);
    // The next list shows another node in the place of the first.
    rig.server.gap();
    rig.server.heal();
    rig.until("stopped", |rig| rig.counts.drains("stopped") == 1).await;
    assert!(rig.now() < Duration::from_secs(300));
    assert_eq!(rig.acks("i"), [(1, 0, false), (1, 0, true)]);
}

#[tokio::test(start_paused = true)]
async fn operator_inv_10_a_slow_server_evicts_nothing_after_the_deadline() {
    let mut rig = configured().await;
    for n in 0..30 {
        rig.put_pod(&format!("web-{n}"), "n");
    }
    let evictions = Arc::new(Mutex::new(Vec::new()));
    let clock = rig.clock;
    rig.server.on_eviction({
        let evictions = evictions.clone();
        move |_| {
            evictions.lock().unwrap().push(clock.now());
            Eviction::Allow
        }
    });
    let slow = Fault::latency(Duration::from_secs(3)).on(Verb::Create, "pods");
    rig.server.inject(slow.subresource("eviction"));
    let deadline = rig.now() + Duration::from_secs(8);
    rig.reclaim("i", &["m"], 8);
    rig.until("Failed", |rig| rig.phase("m") == Some(Phase::Failed)).await;
    rig.pass(60).await;
    let evictions = evictions.lock().unwrap().clone();
    assert_eq!(evictions.len(), 20, "two rounds of ten: {evictions:?}");
    assert!(evictions.iter().all(|at| *at < deadline), "{evictions:?}");
    assert!(rig.last_error("m").starts_with("drain: grace period exceeded: 10 pods remain"));
}

#[tokio::test(start_paused = true)]
async fn an_instruction_that_a_later_frame_has_outdated_touches_nothing() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.server.away(true);
    rig.reclaim("i", &["m"], 600);
    rig.pass(1).await;
    rig.frame("m", S::Configuring);
    rig.pass(1).await;
    rig.server.away(false);
    rig.idle().await;
    assert!(!rig.node("n").unschedulable);
    assert_eq!(rig.acks("i"), [(0, 0, false), (0, 0, true)]);
    assert_eq!(rig.pods(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_goes_away_stops_no_drain_and_is_told_when_it_is_back() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.reclaim("i", &["m"], 60);
    rig.until("cordon", |rig| rig.acks("i").len() == 1).await;
    rig.disconnect();
    rig.until("Drained", |rig| rig.phase("m") == Some(Phase::Drained)).await;
    assert_eq!(rig.acks("i"), [(1, 0, false)]);
    for repeated in 1..3 {
        rig.connect();
        assert_eq!(rig.acks("i").len(), 1 + repeated, "the final ack is repeated");
        assert_eq!(rig.acks("i").last(), Some(&(1, 1, true)));
        rig.disconnect();
    }
    // A new process reads it off the node.
    rig = rig.restart().await;
    rig.connect();
    assert_eq!(rig.acks("i"), [(1, 1, true)]);
    rig.frame("m", S::Configured);
    rig.idle().await;
    rig.connect();
    assert_eq!(rig.acks("i").len(), 1, "the node carries it no more");
}

#[tokio::test(start_paused = true)]
async fn an_instruction_that_the_shard_gave_up_before_the_cordon_touches_nothing() {
    for same_session in [true, false] {
        let mut rig = configured().await;
        rig.put_pod("web", "n");
        rig.server.away(true);
        rig.reclaim("i", &["m"], 600);
        rig.pass(30).await;
        // Not heard of in time, it is over for the shard, and the machine stays.
        if same_session {
            let ended =
                NodeStateUpdate { ended_instruction_id: "i".into(), ..frame("m", S::Configured) };
            rig.send(&ended);
        } else {
            rig.disconnect();
            rig.connect();
            rig.frame("m", S::Configured);
        }
        rig.pass(30).await;
        rig.server.away(false);
        rig.idle().await;
        rig.pass(60).await;
        assert!(!rig.node("n").unschedulable && rig.node("n").instruction.is_none());
        assert_eq!((rig.pods(), rig.counts.evictions("evicted")), (vec!["web".to_owned()], 0));
        assert_eq!(rig.acks("i"), [(0, 0, false), (0, 0, true)]);
        assert_eq!(rig.phase("m"), Some(Phase::Ready));
    }
}

#[tokio::test(start_paused = true)]
async fn final_acks_that_find_the_outbox_full_are_said_when_there_is_room() {
    let mut rig = Rig::new().await;
    let machines: Vec<String> = (0..5).map(|number| format!("m-{number}")).collect();
    for machine in &machines {
        rig.put_node(&format!("node-of-{machine}"), machine, true);
        rig.frame(machine, S::Configured);
    }
    rig.idle().await;
    for machine in &machines {
        rig.reclaim(machine, &[machine.as_str()], 600);
    }
    rig.disconnect();
    rig.idle().await;
    // All are repeated at once, and the outbox takes two.
    let room = rig.connect_with_room(2);
    assert_eq!(machines.iter().filter(|id| !rig.acks(id).is_empty()).count(), 2);
    room.store(1_000, Ordering::SeqCst);
    rig.until("the rest", |rig| machines.iter().all(|id| rig.acks(id) == [(1, 1, true)])).await;
    rig.pass(60).await;
    assert!(machines.iter().all(|id| rig.acks(id).len() == 1), "each is said once");
}

#[tokio::test(start_paused = true)]
async fn a_long_grace_is_cut_to_the_time_left() {
    let mut rig = configured().await;
    rig.put_pod("web", "n");
    rig.put_pod("brief", "n");
    let mut brief: Pod = rig.server.get(Some("apps"), "brief").unwrap();
    brief.spec.get_or_insert_default().termination_grace_period_seconds = Some(5);
    rig.server.put(&brief);
    rig.reclaim("i", &["m"], 10);
    rig.until("Drained", |rig| rig.phase("m") == Some(Phase::Drained)).await;
    let calls = rig.server.calls();
    let grace = |name: &str| {
        let call = calls.iter().find(|call| {
            call.subresource.as_deref() == Some("eviction") && call.name.as_deref() == Some(name)
        });
        let body = &call.unwrap().body;
        assert_eq!(body["apiVersion"], "policy/v1");
        assert!(body["deleteOptions"]["preconditions"]["uid"].is_string());
        body["deleteOptions"]["gracePeriodSeconds"].clone()
    };
    assert_eq!(grace("web"), 10);
    assert_eq!(grace("brief"), Value::Null);
}
