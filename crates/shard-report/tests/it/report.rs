//! What a report says.

use std::{sync::Arc, time::Duration};

use bigfleet_model::digest;
use bigfleet_provider::fake::Seed;
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    coordinator::Answer,
};
use bigfleet_shard_report::Options;
use bigfleet_wire::v1alpha1::{ReportAck, ShardReport};
use tokio::time::sleep;

use crate::rig::{PATIENCE, Rig, answer, coordinator, next, options, reported};

const GI: i64 = 1 << 30;

#[tokio::test(start_paused = true)]
async fn the_first_one_says_who_and_the_next_ones_how_it_stands() {
    let rig = Rig::with(&Seed { idle: 2, speculative: 5, ..Seed::default() }).await;
    let coordinator = coordinator().await;
    coordinator.set_term(9);
    let client = rig.report_to(&[coordinator.addr()]);
    let reports = reported(&coordinator, 3).await;
    let first = &reports[0];
    assert_eq!((first.shard_id.as_str(), first.shard_epoch, first.cycle), ("shard-7", 3, 1));
    assert_eq!(first.shard_address, "shard-7.test:7780");
    assert_eq!((first.fleet_id.as_str(), first.observed_term), ("", 0));
    assert_ne!(first.instance, 0);
    assert!(first.timestamp_unix_nanos > 0);
    let last = &reports[2];
    assert_eq!((last.cycle, last.instance), (3, first.instance));
    assert_eq!((last.fleet_id.as_str(), last.observed_term), (crate::rig::FLEET, 9));
    assert_eq!(rig.side.coordinator_term(), 9);
    assert_eq!((last.assignment_digest, last.assignment_version), (0, 0), "its own scope");
    let summary = last.summary.as_ref().expect("a summary");
    assert_eq!((summary.total_machines, summary.free_machines), (7, 7));
    assert_eq!(summary.per_instance_type_counts.values().sum::<i32>(), 7);
    assert_eq!(summary.per_zone_counts.values().sum::<i32>(), 7);
    assert_eq!(summary.provider_address, "provider.test:7777");
    assert_eq!(last.cluster_digest, digest::of_set([]));
    assert!(rig.outcomes("ok") >= 2);
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shortfalls_age_and_go() {
    let rig = Rig::with(&Seed::default()).await;
    let coordinator = coordinator().await;
    let client = rig.report_to(&[coordinator.addr()]);
    let operator = rig.operator("c").await;
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&Shape::new(1000, GI).priority(500).zones(&["z1"]), 3);
    operator.roll_up(cluster.roll_up().needs).await.expect("accepted");
    let old = |reports: &[ShardReport]| {
        reports.iter().flat_map(|report| &report.shortfalls).any(|short| short.age_cycles > 5)
    };
    coordinator.wait_for("an old shortfall", old, PATIENCE).await.expect("reported");
    let reports = coordinator.reports();
    let short = &reports.last().expect("some").shortfalls[0];
    assert_eq!(short.priority, 500);
    assert!(short.requirements.iter().any(|requirement| requirement.values == ["z1"]));
    let cpu = |resources: &Option<bigfleet_wire::v1alpha1::Resources>| {
        resources.as_ref().expect("resources").resources["cpu"].clone()
    };
    assert_eq!((cpu(&short.deficit), cpu(&short.min_unit)), ("3".to_owned(), "1".to_owned()));
    operator.roll_up(vec![]).await.expect("answered");
    let known = reports.len();
    let none = |reports: &[ShardReport]| {
        reports[known..].iter().any(|report| report.shortfalls.is_empty())
    };
    coordinator.wait_for("no shortfall", none, PATIENCE).await.expect("reported");
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cluster_ids_when_asked_and_not_else() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let operators = [rig.operator("b").await, rig.operator("a").await];
    let asks = ReportAck { want_cluster_ids: true, ..answer(1, vec![]) };
    coordinator.next(Answer::Ack(Box::new(asks)));
    // The report with the ids is lost: they come again.
    coordinator.next(Answer::Refuse(tonic::Code::Unavailable, "no quorum".to_owned()));
    let client = rig.report_to(&[coordinator.addr()]);
    let reports = reported(&coordinator, 4).await;
    let ids: Vec<_> = reports.iter().map(|report| report.cluster_ids.clone()).collect();
    let all = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(ids[..4], [vec![], all.clone(), all, vec![]]);
    assert_eq!(next(&coordinator).await.cluster_digest, digest::of_set(["a", "b"]));
    drop(operators);
    client.stop().await;
    rig.stop().await;
}

/// In real time, as a process runs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_whose_cycles_have_their_own_thread_reports_too() {
    let rig = Rig::threaded(&Seed { speculative: 4, ..Seed::default() }).await;
    let coordinator = coordinator().await;
    let often = Options { interval: Duration::from_millis(100), ..options(&[coordinator.addr()]) };
    let client = rig.report_as(often);
    let counted = |reports: &[ShardReport]| {
        reports
            .iter()
            .filter_map(|report| report.summary.as_ref())
            .any(|all| all.total_machines == 4)
    };
    coordinator.wait_for("all machines", counted, Duration::from_secs(60)).await.expect("counted");
    client.stop().await;
    rig.stop().await;
}

/// Counting reads every machine while the cycle waits.
#[tokio::test(start_paused = true)]
async fn machines_are_counted_at_most_once_a_second() {
    let rig = Rig::start().await;
    sleep(Duration::from_secs(30)).await;
    let first = rig.side.standing().await;
    assert_eq!(first.total, 20);
    assert!(Arc::ptr_eq(&first, &rig.side.standing().await));
    sleep(Duration::from_millis(1_001)).await;
    assert!(!Arc::ptr_eq(&first, &rig.side.standing().await));
    rig.stop().await;
}
