//! ReportShard from the outside.

use bigfleet_coordinator::service::Leadership;
use bigfleet_wire::v1alpha1::{self as wire, instruct_ack::Outcome};
use tonic::Code;

use crate::{
    rig::{Rig, assign, report},
    single::TERM,
};

#[tokio::test]
async fn a_shard_registers_is_told_and_answers() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    let ack = client.report_shard(report("a", 1)).await.unwrap().into_inner();
    assert!(ack.acknowledged);
    assert_eq!((ack.coordinator_term, ack.fleet_id.as_str()), (TERM, "u.00000000"));
    client.assign_domain(assign("1", "a")).await.unwrap();
    let told = client.report_shard(report("a", 2)).await.unwrap().into_inner().instructions;
    assert_eq!(told.len(), 1);
    let instruction_acks = vec![wire::InstructAck {
        instruction_id: told[0].instruction_id.clone(),
        outcome: Outcome::Accepted.into(),
        ..wire::InstructAck::default()
    }];
    let acked = wire::ShardReport { instruction_acks, ..report("a", 3) };
    assert!(client.report_shard(acked).await.unwrap().into_inner().instructions.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn codes_and_counters() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    client.report_shard(report("a", 1)).await.unwrap();
    let twin = wire::ShardReport { instance: 9, ..report("a", 2) };
    let foreign = wire::ShardReport { fleet_id: "v.00000000".into(), ..report("a", 2) };
    let lost = wire::ShardReport {
        fleet_id: "u.00000000".into(),
        observed_term: TERM + 1,
        ..report("a", 2)
    };
    for (report, code, text) in [
        (report("", 1), Code::InvalidArgument, "shard_id: empty"),
        (twin, Code::Aborted, "stale shard epoch"),
        (foreign, Code::Aborted, "foreign fleet"),
        (lost, Code::Aborted, "history lost: run snapshot restore"),
    ] {
        let status = client.report_shard(report).await.unwrap_err();
        assert_eq!(status.code(), code);
        assert!(status.message().starts_with(text), "{status:?}");
    }
    assert_eq!(rig.series("stale_epoch_total"), ["stale_epoch_total 1"]);
    assert_eq!(rig.series("foreign_fleet_total"), ["foreign_fleet_total 2"]);
    let reports = rig.series("reports_total");
    assert!(reports.iter().any(|line| line.contains("OK") && line.ends_with(" 1")), "{reports:?}");
    assert!(
        reports.iter().any(|line| line.contains("ABORTED") && line.ends_with(" 3")),
        "{reports:?}"
    );
    rig.stop().await;
}

/// Soft state is of one leadership.
#[tokio::test]
async fn a_new_leadership_begins_with_nothing() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    client.report_shard(report("a", 5)).await.unwrap();
    *rig.replica.leadership.lock().unwrap() = Leadership::Leader { term: TERM + 1 };
    let shards = client.list_shards(wire::ListShardsRequest {}).await.unwrap().into_inner().shards;
    assert_eq!(shards[0].last_heartbeat_unix_ns, 0, "not heard by this leader");
    let all = wire::ListShardReportsRequest::default();
    assert!(client.list_shard_reports(all).await.unwrap().into_inner().reports.is_empty());
    let ack = client.report_shard(report("a", 5)).await.unwrap().into_inner();
    assert_eq!(ack.coordinator_term, TERM + 1);
    rig.stop().await;
}

/// Shards come together after an election, and two processes of one at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_shards_at_once() {
    let rig = Rig::plaintext().await;
    let client = rig.client().await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        for instance in [1, 2] {
            let mut client = client.clone();
            let report = wire::ShardReport { instance, ..report(&format!("shard-{number:03}"), 1) };
            calls.spawn(async move {
                client.report_shard(report).await.map_err(|status| status.code())
            });
        }
    }
    let answers = calls.join_all().await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, vec![Code::Aborted; 200], "one process of each");
    let mut client = client;
    let shards = client.list_shards(wire::ListShardsRequest {}).await.unwrap().into_inner().shards;
    assert_eq!(shards.len(), 200);
    assert!(shards.iter().all(|shard| shard.last_heartbeat_unix_ns > 0));
    rig.stop().await;
}
