//! A fleet forms, opens, and knows a real shard; without any replica the shard goes on.

use bigfleet_net::{grpc::connect, rule::Rule};
use bigfleet_wire::v1alpha1::ListShardsRequest;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    fleet::{Fleet, REPLICAS, security},
    rig::process::{get, until},
    shards::Shard,
};

const SERVICE: &str = "bigfleet.v1alpha1.Coordinator";

/// gRPC health of one service of a replica: 1 is SERVING, 2 NOT_SERVING.
async fn health(fleet: &Fleet, replica: usize, service: &str) -> i32 {
    let address = &fleet.places[replica].grpc;
    let channel = connect(address, &security(&fleet.admin), Rule::coordinators()).await.unwrap();
    let request = HealthCheckRequest { service: service.to_owned() };
    HealthClient::new(channel).check(request).await.unwrap().into_inner().status
}

#[tokio::test]
async fn one_of_three_waits_visibly_and_three_open() {
    let mut fleet = Fleet::new();
    fleet.start(0);
    let waiting = until("an answer of the first replica", async || fleet.readyz(0).await).await;
    assert_eq!(waiting, (503, "no raft leader observed".to_owned()));
    let alive = get(&fleet.places[0].http, "/healthz").await.unwrap();
    assert_eq!(alive.0, 200, "{alive:?}");
    assert_eq!((health(&fleet, 0, "").await, health(&fleet, 0, SERVICE).await), (1, 2));
    let refused = fleet.client().replica(0).list_shards(ListShardsRequest {}).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "forming"));
    until("a word about who is missing", async || {
        let log = fleet.process(0).log();
        (log.contains("have not answered") && log.contains("c-2")).then_some(())
    })
    .await;

    fleet.start(1);
    fleet.start(2);
    let fleet_id = fleet.until_open().await;
    assert!(fleet_id.ends_with(".00000000"), "{fleet_id}: the first generation");
    let leader = fleet.leader().await;
    for replica in 0..REPLICAS {
        assert_eq!(
            (health(&fleet, replica, "").await, health(&fleet, replica, SERVICE).await),
            (1, 1)
        );
        for metric in ["commit_index", "applied_index", "raft_term", "leader_changes_total"] {
            let name = format!("bigfleet_coordinator_{metric}");
            until("a gauge of consensus", async || {
                fleet.metric(replica, &name).await.filter(|value| *value > 0.0)
            })
            .await;
        }
        let fsyncs = fleet.metric(replica, "bigfleet_coordinator_fsync_duration_seconds_count");
        assert!(fsyncs.await.unwrap() > 0.0);
        assert_eq!(fleet.metric(replica, "bigfleet_tls_enabled").await, Some(1.0));
    }
    until("one leader in the metrics", async || {
        let mut leaders = 0.0;
        for replica in 0..REPLICAS {
            leaders += fleet.metric(replica, "bigfleet_coordinator_is_leader").await?;
        }
        (leaders == 1.0).then_some(())
    })
    .await;
    let follower = (leader + 1) % REPLICAS;
    let sent =
        fleet.client().replica(follower).list_shards(ListShardsRequest {}).await.unwrap_err();
    assert_eq!(
        (sent.code(), sent.message()),
        (Code::FailedPrecondition, "coordinator: not leader")
    );
    let hint = sent.metadata().get("bigfleet-leader-addr").unwrap();
    assert_eq!(hint.to_str().unwrap(), fleet.places[leader].grpc);
}

#[tokio::test]
async fn a_real_shard_is_listed_and_outlives_every_coordinator() {
    let mut fleet = Fleet::open().await;
    let mut shard = Shard::start(&fleet, "s-1", &[]);
    let client = fleet.client();
    let entry = until("a shard that was heard", async || {
        let shards = client.shards().await.ok()?;
        shards.into_iter().find(|shard| shard.last_heartbeat_unix_ns > 0)
    })
    .await;
    assert_eq!((entry.shard_id, entry.address), ("s-1".to_owned(), shard.grpc.clone()));
    let listed = fleet.ctl(&["list-shards"]).await;
    let table = String::from_utf8(listed.stdout).unwrap();
    assert!(table.starts_with("SHARD") && table.contains("s-1"), "{table}");
    let status = fleet.ctl(&["status"]).await;
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));

    for replica in 0..REPLICAS {
        fleet.kill(replica).await;
    }
    shard.cycles().await;

    fleet.start_all();
    fleet.until_open().await;
    until("the shard again, at the same address", async || {
        let shards = client.shards().await.ok()?;
        shards.into_iter().find(|shard| shard.last_heartbeat_unix_ns > 0)
    })
    .await;
}
