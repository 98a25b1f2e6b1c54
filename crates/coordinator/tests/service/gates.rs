//! I7: every RPC, every identity, on a leader and on a follower, over mTLS.

use bigfleet_wire::v1alpha1 as wire;
use tonic::{Code, Status};

use crate::{
    rig::{Client, Rig, assign, report},
    single::hint,
};

const SHARD: &str = "bigfleet://shard/shard-0";
const ADMIN: &str = "bigfleet://admin";
const READONLY: &str = "bigfleet://readonly";
const NODE: &str = "bigfleet://coordinator/node-9";

/// Who opens each RPC, and what it then answers to the request below.
const TABLE: &[(&str, &[&str], Code)] = &[
    ("ReportShard", &[SHARD], Code::Ok),
    ("AssignDomain", &[ADMIN], Code::Ok),
    ("UnassignDomain", &[ADMIN], Code::Ok),
    ("RemoveShard", &[ADMIN], Code::NotFound),
    ("SnapshotSave", &[ADMIN], Code::Ok),
    ("SetQuota", &[ADMIN], Code::Ok),
    ("UpsertProvider", &[ADMIN], Code::Ok),
    ("RemoveProvider", &[ADMIN], Code::Ok),
    ("MoveDomain", &[ADMIN], Code::AlreadyExists),
    ("MoveCluster", &[ADMIN], Code::AlreadyExists),
    ("ConfirmRestore", &[ADMIN], Code::Ok),
    ("RemoveRaftServer", &[ADMIN], Code::Ok),
    ("JoinRaftCluster", &[ADMIN, NODE], Code::Ok),
    ("ListShards", &[READONLY, ADMIN], Code::Ok),
    ("ListDomainAssignments", &[READONLY, ADMIN], Code::Ok),
    ("ListShardReports", &[READONLY, ADMIN], Code::Ok),
    ("ListQuotas", &[READONLY, ADMIN], Code::Ok),
    ("ListProviders", &[READONLY, ADMIN], Code::Ok),
    ("ListTransfers", &[READONLY, ADMIN], Code::Ok),
    ("RaftStatus", &[READONLY, ADMIN, NODE, "bigfleet://coordinator/node-8"], Code::Ok),
];

const CALLERS: &[&[&str]] = &[
    &[SHARD],
    &["bigfleet://shard/shard-1"],
    &["bigfleet://cluster/shard-0"],
    &[ADMIN],
    &[READONLY],
    &[NODE],
    &["bigfleet://coordinator/node-8"],
    &["bigfleet://provider/p"],
    &["bigfleet://root"],
    &[],
    &[ADMIN, READONLY],
];

async fn call(client: &mut Client, rpc: &str) -> Result<(), Status> {
    let (shard, name) = ("shard-0".to_owned(), "p".to_owned());
    let domain = ("zone".to_owned(), "1".to_owned());
    match rpc {
        "ReportShard" => client.report_shard(report("shard-0", 1)).await.map(drop),
        "AssignDomain" => client.assign_domain(assign("1", "shard-0")).await.map(drop),
        "UnassignDomain" => {
            let (topology_key, topology_value) = domain;
            let request = wire::UnassignDomainRequest { topology_key, topology_value };
            client.unassign_domain(request).await.map(drop)
        }
        "RemoveShard" => {
            client.remove_shard(wire::RemoveShardRequest { shard_id: "no".into() }).await.map(drop)
        }
        "SnapshotSave" => client.snapshot_save(wire::SnapshotSaveRequest {}).await.map(drop),
        "SetQuota" => {
            let per_shard = [(shard, 1)].into();
            let (provider, region) = (name, "eu".to_owned());
            let allocation = Some(wire::QuotaAllocation { provider, region, per_shard });
            client.set_quota(wire::SetQuotaRequest { allocation }).await.map(drop)
        }
        "UpsertProvider" => {
            let (address, region) = ("p:9000".to_owned(), "eu".to_owned());
            let provider = Some(wire::ProviderEntry { name, address, region });
            client.upsert_provider(wire::UpsertProviderRequest { provider }).await.map(drop)
        }
        "RemoveProvider" => {
            client.remove_provider(wire::RemoveProviderRequest { name }).await.map(drop)
        }
        "MoveDomain" => {
            let (topology_key, topology_value) = domain;
            let (from_shard_id, to_shard_id) = ("no".to_owned(), shard);
            let request = wire::MoveDomainRequest {
                topology_key,
                topology_value,
                from_shard_id,
                to_shard_id,
            };
            client.move_domain(request).await.map(drop)
        }
        "MoveCluster" => {
            let (from_shard_id, to_shard_id) = ("no".to_owned(), shard);
            let request =
                wire::MoveClusterRequest { cluster_id: "c".into(), from_shard_id, to_shard_id };
            client.move_cluster(request).await.map(drop)
        }
        "ConfirmRestore" => client.confirm_restore(wire::ConfirmRestoreRequest {}).await.map(drop),
        "RemoveRaftServer" => {
            let request = wire::RemoveRaftServerRequest { node_id: "node-9".into() };
            client.remove_raft_server(request).await.map(drop)
        }
        "JoinRaftCluster" => {
            let (node_id, raft_address) = ("node-9".to_owned(), "n:7791".to_owned());
            let request =
                wire::JoinRaftClusterRequest { node_id, raft_address, ..Default::default() };
            client.join_raft_cluster(request).await.map(drop)
        }
        "ListShards" => client.list_shards(wire::ListShardsRequest {}).await.map(drop),
        "ListDomainAssignments" => client
            .list_domain_assignments(wire::ListDomainAssignmentsRequest::default())
            .await
            .map(drop),
        "ListShardReports" => {
            client.list_shard_reports(wire::ListShardReportsRequest::default()).await.map(drop)
        }
        "ListQuotas" => client.list_quotas(wire::ListQuotasRequest {}).await.map(drop),
        "ListProviders" => client.list_providers(wire::ListProvidersRequest {}).await.map(drop),
        "ListTransfers" => client.list_transfers(wire::ListTransfersRequest {}).await.map(drop),
        "RaftStatus" => client.raft_status(wire::RaftStatusRequest {}).await.map(drop),
        _ => panic!("{rpc} is not called"),
    }
}

fn code(answer: &Result<(), Status>) -> Code {
    answer.as_ref().map_or_else(Status::code, |()| Code::Ok)
}

/// The table names every RPC that the proto has.
#[test]
fn the_table_is_complete() {
    let proto = include_str!("../../../../api/proto/bigfleet/v1alpha1/coordinator.proto");
    let declared = proto.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
    let mut declared: Vec<_> = declared.filter_map(|rest| rest.split('(').next()).collect();
    let mut listed: Vec<_> = TABLE.iter().map(|(rpc, ..)| *rpc).collect();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, declared);
}

#[tokio::test]
async fn coordinator_inv_i7_on_a_leader() {
    let rig = Rig::secured().await;
    let mut refused = 0;
    let mut shard = rig.client_as(&[SHARD]).await;
    shard.report_shard(report("shard-0", 1)).await.expect("registered");
    for caller in CALLERS {
        let mut client = rig.client_as(caller).await;
        for (rpc, openers, wanted) in TABLE {
            let before = rig.replica.payload();
            let answer = call(&mut client, rpc).await;
            let opens = caller.len() == 1 && openers.contains(&caller[0]);
            if opens {
                assert_eq!(code(&answer), *wanted, "{rpc} as {caller:?}: {answer:?}");
            } else {
                refused += 1;
                let denied = answer.expect_err(rpc);
                assert_eq!(denied.code(), Code::PermissionDenied, "{rpc} as {caller:?}");
                let presented = caller.first().copied().unwrap_or("no identity");
                assert!(denied.message().contains(presented), "{rpc} as {caller:?}: {denied:?}");
            }
            let changes = opens && caller[0] != READONLY;
            assert!(changes || rig.replica.payload() == before, "{rpc} as {caller:?} changed it");
        }
    }
    let counted = rig.series("identity_rejected_total");
    let sum: u64 =
        counted.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!((counted.len(), sum), (TABLE.len(), refused), "each is a security event");
    rig.stop().await;
}

/// `not leader` before any other check; where the leader is, only to whom it would answer.
#[tokio::test]
async fn coordinator_inv_i7_on_a_follower() {
    let rig = Rig::secured().await;
    rig.replica.follow(Some(hint()));
    for caller in CALLERS {
        let mut client = rig.client_as(caller).await;
        for (rpc, openers, _) in TABLE {
            let answer = call(&mut client, rpc).await;
            let opens = caller.len() == 1 && openers.contains(&caller[0]);
            if *rpc == "RaftStatus" {
                let wanted = if opens { Code::Ok } else { Code::PermissionDenied };
                assert_eq!(code(&answer), wanted, "{rpc} as {caller:?}");
                continue;
            }
            let status = answer.expect_err(rpc);
            assert_eq!(status.code(), Code::FailedPrecondition, "{rpc} as {caller:?}");
            assert_eq!(status.message(), "coordinator: not leader");
            let trailer = |name| status.metadata().get(name).map(|value| value.to_str().unwrap());
            let told = (trailer("bigfleet-leader-id"), trailer("bigfleet-leader-addr"));
            let wanted = (Some("node-2"), Some("node-2.example:7790"));
            assert_eq!(told, if opens { wanted } else { (None, None) }, "{rpc} as {caller:?}");
        }
    }
    rig.stop().await;
}

/// ReportShard looks at its arguments first, all others at their caller.
#[tokio::test]
async fn the_order_of_checks() {
    let rig = Rig::secured().await;
    let mut client = rig.client_as(&["bigfleet://cluster/c"]).await;
    let bad = client.report_shard(report("a/b", 1)).await.unwrap_err();
    assert_eq!(bad.code(), Code::InvalidArgument);
    let bad = client.assign_domain(assign("", "")).await.unwrap_err();
    assert_eq!(bad.code(), Code::PermissionDenied);
    rig.replica.follow(None);
    let bad = client.report_shard(report("", 1)).await.unwrap_err();
    assert_eq!(bad.code(), Code::FailedPrecondition);
    rig.stop().await;
}
