//! What happens every second.

use crate::{
    rig::{Rig, assign, report},
    single::hint,
};

#[tokio::test]
async fn readiness_follows_the_leader_that_is_observed() {
    let rig = Rig::plaintext().await;
    rig.coordinator.tick(&rig.readiness).await;
    assert!(rig.readiness.is_ready());
    rig.replica.follow(Some(hint()));
    rig.coordinator.tick(&rig.readiness).await;
    assert!(rig.readiness.is_ready(), "another one leads");
    rig.replica.follow(None);
    rig.coordinator.tick(&rig.readiness).await;
    assert_eq!(rig.readiness.state(), Err("no raft leader observed".into()));
    rig.stop().await;
}

#[tokio::test]
async fn gauges_are_a_leaders() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    client.report_shard(report("a", 1)).await.unwrap();
    client.assign_domain(assign("1", "a")).await.unwrap();
    rig.coordinator.tick(&rig.readiness).await;
    for line in [
        "pending_instructions{shard=\"a\"} 1",
        "shards{state=\"live\"} 1",
        "shards{state=\"unknown\"} 0",
        "domains 1",
        "is_leader 1",
        "raft_term 7",
    ] {
        assert!(rig.series("").contains(&line.to_owned()), "{line}: {:?}", rig.series(""));
    }
    rig.replica.follow(Some(hint()));
    rig.coordinator.tick(&rig.readiness).await;
    assert!(rig.series("pending_instructions{").is_empty(), "a deposed leader knows nothing");
    assert!(rig.series("shards{").is_empty());
    assert_eq!(rig.series("is_leader"), ["is_leader 0"]);
    assert!(rig.series("domains").contains(&"domains 1".to_owned()), "what is replicated stays");
    rig.stop().await;
}

/// Every series of coordinator chapter §11 that is the service's.
#[tokio::test]
async fn names() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    client.report_shard(report("a", 1)).await.unwrap();
    client.report_shard(report("", 1)).await.unwrap_err();
    rig.coordinator.tick(&rig.readiness).await;
    for name in [
        "raft_term",
        "apply_total",
        "pending_instructions",
        "is_leader",
        "shards",
        "domains",
        "clusters",
        "transfer_machines",
        "transfers",
        "oldest_instruction_age_seconds",
        "oldest_transfer_age_seconds",
        "oldest_releasing_age_seconds",
        "rows_releasing",
        "recovering",
        "superseded",
        "reports_total",
        "report_duration_seconds_bucket",
        "stale_epoch_total",
        "cluster_binding_conflicts_total",
        "foreign_fleet_total",
        "adoption_conflicts_total",
        "shortfalls_escalated",
        "rebalance_duration_seconds_bucket",
    ] {
        let has = |line: &String| line.split(['{', ' ']).next() == Some(name);
        assert!(rig.series(name).iter().any(has), "{name}");
    }
    rig.stop().await;
}
