//! Rows of the catalogue about drains and cordons, on one control plane.

use std::time::{Duration, Instant};

use bigfleet_crds::{UpcomingNodePhase as Phase, keys};
use bigfleet_e2e::wait::{PATIENCE, eventually, throughout, within};
use bigfleet_in_cluster::{eviction, refusal};
use bigfleet_wire::v1alpha1::MachineState;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Node,
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::stage::{Stage, living, pooled};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_21_22_24_25_26_32_and_37_drains_and_cordons() {
    let Some(mut stage) = Stage::start_or_skip().await else { return };
    rows_24_and_32_another_operator_goes_on_with_the_drain(&mut stage).await;
    // 37 takes two minutes, in which the others run.
    stage.cluster.agent().never_join("m-37");
    stage.machine("m-37", "37", MachineState::Configured).await;
    stage.until_phase("m-37", Phase::Ready).await;
    row_21_a_budget_that_allows_nothing_outlives_the_grace(&stage).await;
    row_22_a_stuck_node_takes_nothing_from_the_others(&stage).await;
    row_25_only_our_own_cordon_is_lifted(&stage).await;
    row_26_a_recreated_pod_is_not_taken_for_its_predecessor(&stage).await;
    row_37_a_machine_whose_node_never_joins_is_told(&stage).await;
}

async fn row_21_a_budget_that_allows_nothing_outlives_the_grace(stage: &Stage) {
    println!("row 21");
    let cluster = &stage.cluster;
    stage.join("21", &["m-21"]).await;
    let web = pooled("web-21", "21").replicas(2);
    cluster.create(&web.disruption_budget(0)).await;
    cluster.create(&web.deployment()).await;
    cluster.until_running("default", "web-21", 2).await;
    let before = living(cluster, "web-21").await;
    let refused = stage.operator.metric("bigfleet_operator_evictions_total").await.unwrap_or(0.0);

    let began = Instant::now();
    stage.shard.reclaim("i-21", &["m-21"], 10).await.unwrap();
    assert_eq!(stage.until_started("i-21").await, (1, 0, false));
    stage.until_phase("m-21", Phase::Failed).await;
    assert!(began.elapsed() >= Duration::from_secs(10), "it gave up before the grace was over");
    let error = stage.status("m-21").await.unwrap().last_error.unwrap();
    assert!(error.starts_with("drain: grace period exceeded: 2 pods remain: "), "{error}");
    assert!(before.keys().any(|name| error.contains(&format!("default/{name}"))), "{error}");
    assert_eq!(stage.until_finished("i-21").await, (1, 0, true));
    let tried = stage.operator.metric("bigfleet_operator_evictions_total").await.unwrap();
    assert!(tried - refused >= 4.0, "two pods, several rounds: {tried}");
    assert_eq!(living(cluster, "web-21").await, before, "nothing was deleted");
    stage.until_event("BigFleetDrainTimeout", &stage.node("m-21").await.name_any()).await;

    cluster.delete::<Deployment>("default", "web-21").await;
    stage.dismiss("21", &["m-21"]).await;
}

async fn row_22_a_stuck_node_takes_nothing_from_the_others(stage: &Stage) {
    println!("row 22");
    let cluster = &stage.cluster;
    let ids = ["m-22a", "m-22b", "m-22c"];
    let pools = ["22a", "22b", "22c"];
    for (id, pool) in ids.iter().zip(pools) {
        stage.join(pool, &[id]).await;
        let web = pooled(&format!("web-{pool}"), pool).replicas(2);
        if pool == "22a" {
            cluster.create(&web.disruption_budget(0)).await;
        }
        cluster.create(&web.deployment()).await;
    }
    for pool in pools {
        cluster.until_running("default", &format!("web-{pool}"), 2).await;
    }
    let stuck = living(cluster, "web-22a").await;
    stage.shard.reclaim("i-22", &ids, 60).await.unwrap();
    assert_eq!(stage.until_started("i-22").await, (3, 0, false));
    for id in &ids[1..] {
        stage.until_phase(id, Phase::Drained).await;
    }
    assert_eq!(stage.phase("m-22a").await, Some(Phase::Draining));
    assert_eq!(living(cluster, "web-22a").await, stuck);
    assert_eq!(stage.acks("i-22"), [(3, 0, false)], "no final ack while one drain runs");

    // The budget gives way within the grace.
    cluster.delete::<PodDisruptionBudget>("default", "web-22a").await;
    stage.until_phase("m-22a", Phase::Drained).await;
    assert_eq!(stage.until_finished("i-22").await, (3, 3, true));
    for (id, pool) in ids.iter().zip(pools) {
        cluster.delete::<Deployment>("default", &format!("web-{pool}")).await;
        stage.dismiss(pool, &[id]).await;
    }
}

async fn rows_24_and_32_another_operator_goes_on_with_the_drain(stage: &mut Stage) {
    println!("rows 24 and 32");
    stage.join("24", &["m-24"]).await;
    let web = pooled("web-24", "24");
    stage.cluster.create(&web.disruption_budget(0)).await;
    stage.cluster.create(&web.deployment()).await;
    stage.cluster.until_running("default", "web-24", 1).await;
    let standby = stage.operator("operator-1").await;
    let sessions = stage.shard.heard().sessions();

    let grace = Duration::from_secs(40);
    let began = Instant::now();
    stage.shard.reclaim("i-24", &["m-24"], 40).await.unwrap();
    stage.until_started("i-24").await;
    let deadline = stage.annotation("m-24", keys::RECLAIM_DEADLINE).await.unwrap();
    eventually("half of the grace is over", || async { began.elapsed() >= grace / 2 }).await;
    assert_eq!(stage.shard.heard().sessions(), sessions, "the standby dials nothing");
    stage.operator.process().kill().await;
    stage.operator = standby;

    // 32: a lease of 15 s, tried for every 2 s; the rest is what a busy machine takes.
    within(Duration::from_secs(20 + 10), "the session has moved", || async {
        let heard = stage.shard.heard();
        assert!(heard.live_sessions() <= 1, "two sessions at once");
        heard.sessions() > sessions && heard.live_sessions() == 1
    })
    .await;

    // 24: what was begun ends when it was to end.
    eventually("the drain has ended", || async {
        let now = stage.annotation("m-24", keys::RECLAIM_DEADLINE).await;
        assert!(now.is_none_or(|now| now == deadline), "another deadline");
        stage.phase("m-24").await == Some(Phase::Failed)
    })
    .await;
    let end: Timestamp = deadline.parse().unwrap();
    assert!(Timestamp::now() >= end, "it ended before its deadline");
    assert!(began.elapsed() < grace / 2 + grace, "it began its grace anew");
    assert_eq!(stage.until_finished("i-24").await, (1, 0, true));
    assert_eq!(living(&stage.cluster, "web-24").await.len(), 1);
    stage.cluster.delete::<Deployment>("default", "web-24").await;
    stage.dismiss("24", &["m-24"]).await;
}

async fn row_25_only_our_own_cordon_is_lifted(stage: &Stage) {
    println!("row 25");
    let ids = ["m-25", "m-25-human"];
    stage.join("25", &ids).await;
    let nodes = Api::<Node>::all(stage.cluster.client());
    let name = stage.node("m-25-human").await.name_any();
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch(&name, &PatchParams::default(), &cordon).await.unwrap();

    stage.shard.reclaim("i-25", &ids, 60).await.unwrap();
    assert_eq!(stage.until_finished("i-25").await, (2, 2, true));
    for id in ids {
        stage.until_phase(id, Phase::Drained).await;
        assert!(stage.is_cordoned(id).await);
    }
    assert_eq!(
        stage.annotation("m-25-human", keys::CORDONED_BY_HUMAN).await.as_deref(),
        Some("true")
    );

    // The machines return.
    for id in ids {
        stage.machine(id, "25", MachineState::Draining).await;
        stage.machine(id, "25", MachineState::Configured).await;
    }
    eventually("ours is lifted", || async { !stage.is_cordoned("m-25").await }).await;
    stage.until_phase("m-25", Phase::Ready).await;
    stage.until_phase("m-25-human", Phase::Ready).await;
    throughout(Duration::from_secs(3), "theirs stays", || async {
        stage.is_cordoned("m-25-human").await
    })
    .await;
    assert_eq!(stage.annotation("m-25", keys::RECLAIM_INSTRUCTION).await, None);
    stage.until_event("BigFleetUncordoned", &stage.node("m-25").await.name_any()).await;
    stage.dismiss("25", &ids).await;
}

async fn row_26_a_recreated_pod_is_not_taken_for_its_predecessor(stage: &Stage) {
    println!("row 26");
    let cluster = &stage.cluster;
    stage.join("26", &["m-26a"]).await;
    cluster.create(&pooled("db", "26").replicas(2).stateful_set()).await;
    cluster.until_running("default", "db", 2).await;
    let before = living(cluster, "db").await;
    stage.join("26", &["m-26b"]).await;
    stage.shard.reclaim("i-26", &["m-26a"], 60).await.unwrap();
    eventually("both were recreated elsewhere", || async {
        let now = living(cluster, "db").await;
        cluster.running("default", "db").await == 2
            && now.iter().all(|(name, uid)| before.get(name).is_some_and(|old| old != uid))
    })
    .await;
    let after = living(cluster, "db").await;
    assert_eq!(after.len(), 2);

    // What the drain asks for is what it saw.
    let late = eviction::evict(cluster.client(), "default", "db-0", &before["db-0"], None).await;
    assert_eq!(refusal::code(&late.unwrap_err()), Some(409));
    stage.until_phase("m-26a", Phase::Drained).await;
    assert_eq!(stage.until_finished("i-26").await, (1, 1, true));
    throughout(Duration::from_secs(3), "the new pods live", || async {
        living(cluster, "db").await == after
    })
    .await;
    cluster.delete::<StatefulSet>("default", "db").await;
    stage.dismiss("26", &["m-26a", "m-26b"]).await;
}

async fn row_37_a_machine_whose_node_never_joins_is_told(stage: &Stage) {
    println!("row 37");
    within(PATIENCE + PATIENCE, "phantom capacity is shown", || async {
        let gauge = stage.operator.metric("bigfleet_operator_configured_not_ready_nodes").await;
        gauge == Some(1.0)
    })
    .await;
    eventually("an event tells", || async {
        let all = stage.cluster.all::<k8s_openapi::api::core::v1::Event>().await;
        let told = all.iter().filter(|event| event.reason.as_deref() == Some("ConfiguredNotReady"));
        told.count() == 1
    })
    .await;
    stage.cluster.agent().forgive();
    eventually("it joins after all, and nothing is amiss", || async {
        let gauge = stage.operator.metric("bigfleet_operator_configured_not_ready_nodes").await;
        gauge == Some(0.0)
    })
    .await;
}
