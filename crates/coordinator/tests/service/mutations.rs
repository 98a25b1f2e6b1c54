//! Codes of the mutations (wire chapter §6, coordinator chapter §3, §5).

use std::time::Duration;

use bigfleet_coordinator::service::Phase;
use bigfleet_model::FleetId;
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Code, Status};

use crate::rig::{Rig, assign, report};

fn refusal<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    (status.code(), status.message().to_owned())
}

#[tokio::test]
async fn domains() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    for shard in ["a", "b"] {
        client.report_shard(report(shard, 1)).await.unwrap();
    }
    client.assign_domain(assign("1", "a")).await.unwrap();
    client.assign_domain(assign("1", "a")).await.expect("same owner");
    let (code, text) = refusal(client.assign_domain(assign("1", "b")).await);
    assert_eq!(code, Code::AlreadyExists);
    assert!(text.contains("shard a"), "{text}");
    assert_eq!(refusal(client.assign_domain(assign("1", "z")).await).0, Code::NotFound);
    for empty in [assign("", "a"), assign("1", "")] {
        assert_eq!(refusal(client.assign_domain(empty).await).0, Code::InvalidArgument);
    }
    let long = assign(&"v".repeat(64), "a");
    assert_eq!(refusal(client.assign_domain(long).await).0, Code::InvalidArgument);
    let unassign = |value: &str| wire::UnassignDomainRequest {
        topology_key: "zone".into(),
        topology_value: value.into(),
    };
    assert_eq!(refusal(client.unassign_domain(unassign("")).await).0, Code::InvalidArgument);
    client.unassign_domain(unassign("9")).await.expect("absent is fine");
    let moves = |from: &str, to: &str| wire::MoveDomainRequest {
        topology_key: "zone".into(),
        topology_value: "1".into(),
        from_shard_id: from.into(),
        to_shard_id: to.into(),
    };
    assert_eq!(refusal(client.move_domain(moves("a", "z")).await).0, Code::NotFound);
    client.move_domain(moves("a", "b")).await.unwrap();
    client.move_domain(moves("a", "b")).await.expect("it is there");
    let told = client.report_shard(report("a", 2)).await.unwrap().into_inner().instructions;
    assert_eq!(told.len(), 1, "the losing shard is told: {told:?}");
    rig.stop().await;
}

#[tokio::test]
async fn shards_quotas_providers() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    client.report_shard(report("a", 1)).await.unwrap();
    let quota = |provider: &str, shard: &str, slice: i32| wire::SetQuotaRequest {
        allocation: Some(wire::QuotaAllocation {
            provider: provider.into(),
            region: "eu".into(),
            per_shard: [(shard.to_owned(), slice)].into(),
        }),
    };
    client.set_quota(quota("p", "a", 3)).await.unwrap();
    assert_eq!(refusal(client.set_quota(quota("p", "z", 3)).await).0, Code::NotFound);
    assert_eq!(refusal(client.set_quota(quota("p", "a", -1)).await).0, Code::InvalidArgument);
    assert_eq!(refusal(client.set_quota(quota("", "a", 1)).await).0, Code::InvalidArgument);
    let none = wire::SetQuotaRequest { allocation: None };
    assert_eq!(refusal(client.set_quota(none).await).0, Code::InvalidArgument);
    let many = (0..4097).map(|number| (format!("s-{number}"), 1)).collect();
    let mut past = quota("p", "a", 1);
    past.allocation.as_mut().unwrap().per_shard = many;
    assert_eq!(refusal(client.set_quota(past).await).0, Code::InvalidArgument);
    let nameless = wire::UpsertProviderRequest { provider: None };
    assert_eq!(refusal(client.upsert_provider(nameless).await).0, Code::InvalidArgument);
    let absent = wire::RemoveProviderRequest { name: "absent".into() };
    client.remove_provider(absent).await.expect("absent is fine");
    let remove = |id: &str| wire::RemoveShardRequest { shard_id: id.into() };
    assert_eq!(refusal(client.remove_shard(remove("")).await).0, Code::InvalidArgument);
    client.remove_shard(remove("a")).await.unwrap();
    assert_eq!(refusal(client.remove_shard(remove("a")).await).0, Code::NotFound);
    let applied = rig.series("apply_total");
    assert!(
        applied.iter().any(|line| line.contains("fsm_error") && line.ends_with(" 2")),
        "{applied:?}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn membership() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    let join = |node: &str, address: &str| wire::JoinRaftClusterRequest {
        node_id: node.into(),
        raft_address: address.into(),
        grpc_address: "n:7790".into(),
        fleet_id: "u.00000000".into(),
        max_kind: 23,
        incarnation: 9,
    };
    for empty in [join("", "n:1"), join("n", "")] {
        assert_eq!(refusal(client.join_raft_cluster(empty).await).0, Code::InvalidArgument);
    }
    // A fleet that forms takes joins, and serves nothing else.
    *rig.replica.phase.lock().unwrap() = Phase::Forming;
    client.join_raft_cluster(join("node-2", "n:7791")).await.unwrap();
    assert_eq!(rig.replica.joined.lock().unwrap()[0].incarnation, 9);
    let forming = (Code::Unavailable, "forming".to_owned());
    assert_eq!(refusal(client.report_shard(report("a", 1)).await), forming);
    assert_eq!(refusal(client.list_shards(wire::ListShardsRequest {}).await), forming);
    client.raft_status(wire::RaftStatusRequest {}).await.unwrap();
    *rig.replica.phase.lock().unwrap() = Phase::Superseded { by: "u.00000009".into() };
    let superseded = (Code::FailedPrecondition, "superseded by u.00000009".to_owned());
    assert_eq!(refusal(client.report_shard(report("a", 1)).await), superseded);
    assert_eq!(refusal(client.join_raft_cluster(join("n", "n:1")).await), superseded);
    client.raft_status(wire::RaftStatusRequest {}).await.unwrap();
    *rig.replica.phase.lock().unwrap() = Phase::Open;
    let remove = |node: &str| wire::RemoveRaftServerRequest { node_id: node.into() };
    client.remove_raft_server(remove("node-9")).await.unwrap();
    assert_eq!(refusal(client.remove_raft_server(remove("node-0")).await).0, Code::Aborted);
    assert_eq!(refusal(client.remove_raft_server(remove("node-5")).await).0, Code::NotFound);
    rig.stop().await;
}

#[tokio::test]
async fn recovering() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    let shared = |cycle| wire::ShardReport { assignment_digest: 1, ..report("a", cycle) };
    client.report_shard(shared(1)).await.unwrap();
    rig.replica.state.write().unwrap().begin_recovery(&FleetId::new("u", 5), 1_700_000_000_000);
    let (code, text) = refusal(client.assign_domain(assign("1", "a")).await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.starts_with("recovering"), "{text}");
    let confirm = client.confirm_restore(wire::ConfirmRestoreRequest {}).await;
    let (code, text) = refusal(confirm);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains(": a;"), "it names those that are missing: {text}");
    let on = |cycle| wire::ShardReport { fleet_id: "u.00000005".into(), ..shared(cycle) };
    let ack = client.report_shard(on(2)).await.unwrap().into_inner();
    assert!(ack.want_holdings && ack.next_report_after_ms == 1_000);
    let holds = wire::ShardReport { holdings: Some(wire::Assignment::default()), ..on(3) };
    client.report_shard(holds).await.unwrap();
    client.confirm_restore(wire::ConfirmRestoreRequest {}).await.unwrap();
    client.assign_domain(assign("1", "a")).await.unwrap();
    rig.stop().await;
}

/// A call ends, whatever happens to the group.
#[tokio::test]
async fn deadlines_bound_every_call() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    rig.replica.stuck.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut request = tonic::Request::new(assign("1", "a"));
    request.set_timeout(Duration::from_millis(50));
    let (code, _) = refusal(client.assign_domain(request).await);
    assert!(
        matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled),
        "{code:?}"
    );
    rig.replica.stuck.store(false, std::sync::atomic::Ordering::SeqCst);
    rig.stop().await;
}
