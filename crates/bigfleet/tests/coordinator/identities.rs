//! Wrong certificates on the service's port and on that of consensus.

use bigfleet_net::{
    grpc::{connect, connect_lazy},
    rule::Rule,
};
use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};
use bigfleet_wire::v1alpha1::{
    JoinRaftClusterRequest, ListShardsRequest, RemoveShardRequest, ShardReport,
};
use tonic::{Code, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use crate::{
    fleet::{Fleet, security},
    rig::{binaries::bigfleet, process::Process},
};

const CONSENSUS: &str = "/bigfleet.coordinator.consensus.v1.Consensus/Call";

#[tokio::test]
async fn wrong_identities_are_refused_and_counted() {
    let fleet = Fleet::open().await;
    let leader = fleet.leader().await;
    let material = |identities: &[&str]| fleet.pki.material(identities).unwrap();
    let rejected = "bigfleet_coordinator_identity_rejected_total";
    let before = fleet.metric(leader, rejected).await.unwrap_or_default();

    let shard = material(&["bigfleet://shard/s-2"]);
    let mut client = fleet.client_as(&shard).replica(leader);
    let report = ShardReport { shard_id: "s-1".to_owned(), ..ShardReport::default() };
    let refused = client.report_shard(report).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("bigfleet://shard/s-2"), "{refused}");
    for identities in
        [&["bigfleet://readonly"][..], &[], &["bigfleet://admin", "bigfleet://readonly"]]
    {
        let material = material(identities);
        let mut client = fleet.client_as(&material).replica(leader);
        let refused = client.remove_shard(RemoveShardRequest::default()).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{identities:?}: {refused}");
    }
    // A replica joins as itself alone.
    let other = material(&["bigfleet://coordinator/c-9"]);
    let join = JoinRaftClusterRequest {
        node_id: "c-1".to_owned(),
        raft_address: "elsewhere:7791".to_owned(),
        ..JoinRaftClusterRequest::default()
    };
    let mut client = fleet.client_as(&other).replica(leader);
    let refused = client.join_raft_cluster(join).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let after = fleet.metric(leader, rejected).await.unwrap();
    assert_eq!(after - before, 5.0);

    // Another CA, or none, does not come as far as a call.
    let foreign = Pki::new().unwrap();
    let leaf = foreign.issue(&["bigfleet://admin"], LOOPBACK).unwrap();
    let foreign = Material::write(&leaf, &fleet.pki.ca_pem()).unwrap();
    let mut client = fleet.client_as(&foreign).replica(leader);
    assert_ne!(client.list_shards(ListShardsRequest {}).await.unwrap_err().code(), Code::Ok);
}

#[tokio::test]
async fn the_consensus_port_is_for_replicas_alone() {
    let fleet = Fleet::open().await;
    let port = &fleet.places[0].raft;
    for (identity, code) in [
        ("bigfleet://readonly", Code::PermissionDenied),
        ("bigfleet://shard/s-1", Code::PermissionDenied),
        ("bigfleet://provider/p", Code::PermissionDenied),
        // Let in, and refused for what it says.
        ("bigfleet://admin", Code::InvalidArgument),
    ] {
        let material = fleet.pki.material(&[identity]).unwrap();
        let channel = connect(port, &security(&material), Rule::coordinators()).await.unwrap();
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.unwrap();
        let codec = ProstCodec::<(), ()>::default();
        let path = PathAndQuery::from_static(CONSENSUS);
        let refused = grpc.unary(tonic::Request::new(()), path, codec).await.unwrap_err();
        assert_eq!(refused.code(), code, "{identity}: {refused}");
    }
    let plain =
        connect_lazy(port, &bigfleet_net::tls::Security::Plaintext, Rule::any_certificate());
    let mut grpc = Grpc::new(plain.unwrap());
    let called = async {
        grpc.ready().await.map_err(|error| error.to_string())?;
        let path = PathAndQuery::from_static(CONSENSUS);
        let codec = ProstCodec::<(), ()>::default();
        let answer = grpc.unary(tonic::Request::new(()), path, codec).await;
        answer.map(drop).map_err(|status| status.to_string())
    };
    assert!(called.await.is_err(), "without a handshake nobody is heard");
}

#[tokio::test]
async fn a_replica_with_anothers_certificate_does_not_start() {
    let fleet = Fleet::new();
    let other = fleet.pki.material(&["bigfleet://coordinator/c-1"]).unwrap();
    let flags = [
        format!("--tls-cert={}", other.cert().display()),
        format!("--tls-key={}", other.key().display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut process = Process::spawn(&bigfleet(), &fleet.args(0, &flags), &fleet.log(0));
    assert_eq!(process.ended().await.code(), Some(1));
    let said = process.tail();
    assert!(said.contains("bigfleet://coordinator/c-1") && said.contains("c-0"), "{said}");
    assert!(!fleet.data_dir(0).exists(), "nothing was touched");
}
