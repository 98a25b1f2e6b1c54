//! The session as a whole.

use std::{sync::Arc, time::Duration};

use bigfleet_in_cluster::memory::{Fault, Verb};
use bigfleet_net::tls::{Security, Tls};
use bigfleet_operator::hold::DemandSource;
use bigfleet_testkit::pki::{Material, Pki};
use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, BootstrapRequest, NodeStateUpdate, ReclaimInstruction,
    shard_message::Payload as Down,
};
use k8s_openapi::api::coordination::v1::Lease;
use prometheus_client::registry::Registry;
use serde_json::json;

use crate::{
    rig::{Rig, server, wait},
    shard::{FakeShard, Words},
};

#[tokio::test]
async fn a_session_begins_with_who_we_are_and_what_we_can() {
    let rig = Rig::start().await;
    rig.roll_ups(3).await;
    let heard = rig.shard.heard();
    let hello = heard.hellos()[0];
    assert_eq!((hello.cluster_id.as_str(), hello.protocol_version.as_str()), ("c-1", "v1alpha1"));
    assert_eq!(hello.features, ["final-reclaim-ack", "need-status"]);
    let times: Vec<i64> = heard.roll_ups().map(|one| one.timestamp_unix_nanos).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    drop(heard);
    assert_eq!(rig.metrics.session_connected.get(), 1);
    rig.running.stop().await;
}

#[tokio::test]
async fn frames_go_where_they_belong_in_the_order_of_the_stream() {
    let rig = Rig::start().await;
    rig.roll_ups(1).await;
    let node = |id: &str| {
        Down::NodeStateUpdate(NodeStateUpdate { machine_id: id.to_owned(), ..Default::default() })
    };
    rig.shard.send(node("m-1")).await.unwrap();
    rig.shard
        .send(Down::ReclaimInstruction(ReclaimInstruction {
            instruction_id: "i-1".to_owned(),
            ..Default::default()
        }))
        .await
        .unwrap();
    rig.shard.send_empty().await.unwrap();
    rig.shard
        .send(Down::AvailableCapacity(AvailableCapacityUpdate {
            supersedes_key: "available:x".to_owned(),
            ..Default::default()
        }))
        .await
        .unwrap();
    rig.shard.ack("something newer").await.unwrap();
    rig.shard.resync().await.unwrap();
    rig.shard.resync().await.unwrap();
    rig.shard.send(node("m-2")).await.unwrap();
    rig.until("all", |rig| rig.side.lines.lock().unwrap().len() >= 6).await;
    let lines = rig.side.lines.lock().unwrap().clone();
    let kinds: Vec<&str> =
        lines.iter().map(|line| line.rsplit_once(' ').map_or(line.as_str(), |(a, _)| a)).collect();
    assert_eq!(kinds, ["began", "node m-1", "reclaim i-1", "capacity", "resync", "node m-2"]);
    let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(number(&lines[1]) < number(&lines[2]) && number(&lines[2]) < number(&lines[5]));
    assert!(rig.side.ack());
    rig.shard.until("the ack", |heard| heard.reclaim_acks().len() == 1).await;
    assert_eq!(rig.shard.heard().sessions(), 1, "nothing of it ended the session");
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_07_blobs_are_made_while_the_api_server_is_away() {
    let rig = Rig::start().await;
    rig.roll_ups(1).await;
    rig.server.away(true);
    for number in 0..200 {
        rig.shard
            .send(Down::BootstrapRequest(BootstrapRequest {
                request_id: format!("r-{number}"),
                machine_id: format!("m-{number}"),
                ..Default::default()
            }))
            .await
            .unwrap();
    }
    rig.shard.until("all blobs", |heard| heard.blobs().len() == 200).await;
    let heard = rig.shard.heard();
    let blob = heard.blobs().into_iter().find(|blob| blob.request_id == "r-7").unwrap();
    assert_eq!(blob.user_data, b"join m-7");
    drop(heard);
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_16_only_the_holder_of_the_lease_dials() {
    let (server, shard) = (server(), FakeShard::start(Security::Plaintext).await);
    let elect = |identity: &str| {
        let identity = identity.to_owned();
        Rig::at(server.clone(), shard.clone(), move |options| {
            options.leader_elect = true;
            options.identity = identity;
        })
    };
    let first = elect("operator-1");
    shard.until("a session", |heard| heard.sessions() == 1).await;
    let second = elect("operator-2");
    second.until("a ready standby", |rig| rig.readiness.is_ready()).await;
    first.roll_ups(5).await;
    let (sessions, hellos) = {
        let heard = shard.heard();
        (heard.sessions(), heard.hellos().len())
    };
    assert_eq!((sessions, hellos), (1, 1));
    // The lease expires unseen: the session stays.
    server.inject(Fault::unreachable().on(Verb::Update, "leases"));
    server.inject(Fault::unreachable().on(Verb::Get, "leases"));
    first.roll_ups(5).await;
    assert_eq!(shard.heard().sessions(), 1);
    server.heal();
    first.running.stop().await;
    // Given back, so the other need not wait for it to run out.
    shard.until("the other's session", |heard| heard.sessions() == 2).await;
    assert_eq!(shard.heard().live_sessions(), 1);
    let lease: Lease = server.get(Some("bigfleet-system"), "bigfleet-operator").unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("operator-2"));
    second.running.stop().await;
    assert_eq!(shard.heard().live_sessions(), 0);
}

#[tokio::test]
async fn operator_inv_16_whoever_sees_another_with_the_lease_closes() {
    let server = server();
    let rig = Rig::with(server, |options| options.leader_elect = true).await;
    rig.roll_ups(1).await;
    let mut lease: Lease = rig.server.get(Some("bigfleet-system"), "bigfleet-operator").unwrap();
    let spec = lease.spec.as_mut().unwrap();
    spec.holder_identity = Some("somebody".to_owned());
    spec.renew_time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(jiff::Timestamp::now()));
    rig.server.put(&lease);
    rig.shard.until("closed", |heard| heard.live_sessions() == 0).await;
    assert!(rig.side.has("ended"));
    rig.running.stop().await;
}

#[tokio::test]
async fn a_standby_holds_nothing() {
    let rig = Rig::with(server(), |options| {
        options.leader_elect = true;
        options.demand_source = DemandSource::Upc;
    })
    .await;
    let held = |rig: &Rig| {
        let mut registry = Registry::default();
        rig.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text.contains("rollup_held{reason=\"demand_source\"} 1")
    };
    rig.until("held", held).await;
    let mut lease: Lease = rig.server.get(Some("bigfleet-system"), "bigfleet-operator").unwrap();
    let spec = lease.spec.as_mut().unwrap();
    spec.holder_identity = Some("somebody".to_owned());
    rig.server.put(&lease);
    rig.shard.until("closed", |heard| heard.live_sessions() == 0).await;
    rig.until("not held", |rig| !held(rig)).await;
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_15_nothing_is_written_when_nothing_changes() {
    let rig = Rig::start().await;
    for number in 0..50 {
        rig.request(&format!("cr-{number}"), &json!({}));
    }
    rig.request("bad", &json!({"resources": {"cpu": "much"}}));
    rig.until("stamped", |rig| (0..50).all(|n| rig.is_acknowledged(&format!("cr-{n}")))).await;
    rig.until("told", |rig| !rig.events("Untranslatable").is_empty()).await;
    rig.until("written", |rig| rig.running.pool().unfinished() == 0).await;
    let writes = rig.server.writes();
    // Two rounds of whatever has rounds, and a hundred roll-ups.
    rig.roll_ups(220).await;
    assert_eq!(rig.server.writes(), writes);
    rig.running.stop().await;
}

#[tokio::test]
async fn operator_inv_05_a_shard_that_does_not_read_gets_the_newest_and_what_was_in_transit() {
    let rig = Rig::start().await;
    rig.roll_ups(2).await;
    // Larger than any window: what does not fit waits with us.
    let values: Vec<String> = (0..40_000).map(|number| format!("value-{number:06}")).collect();
    let big = json!({"requirements": [{"key": "k", "operator": "In", "values": values}]});
    rig.shard.set_reading(false);
    let before = rig.shard.heard().roll_ups().count();
    rig.request("big", &big);
    rig.until("seen", |rig| rig.metrics.rollup_bytes.get() > 500_000).await;
    for number in 0..30 {
        rig.request(&format!("cr-{number}"), &json!({}));
    }
    // Blobs wait behind, and no more than 256 of them, once the transport is full.
    let mut asked = 0;
    while rig.metrics.outbox_dropped.get() == 0 {
        assert!(asked < 100_000, "nothing was dropped");
        rig.shard.bootstrap("c-1", &format!("{asked}-"), 10).await.unwrap();
        asked += 10;
    }
    rig.until("all seen", |rig| rig.running.cycle().requests() == 31).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    rig.shard.set_reading(true);
    rig.shard
        .until("the newest", |heard| {
            heard.latest().is_some_and(|one| {
                one.needs.iter().any(|need| need.aggregate_resources["cpu"] == "30")
            })
        })
        .await;
    let heard = rig.shard.heard();
    let partial = heard
        .roll_ups()
        .skip(before)
        .filter(|one| !one.needs.iter().any(|need| need.aggregate_resources["cpu"] == "30"));
    assert!(partial.count() <= 4, "what was in transit, and no more");
    let times: Vec<i64> = heard.roll_ups().map(|one| one.timestamp_unix_nanos).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "never an older one after a newer");
    drop(heard);
    rig.shard.until("what waited", |heard| heard.blobs().len() >= 256).await;
    rig.shard
        .until("all others", |heard| {
            heard.blobs().len() as u64 + rig.metrics.outbox_dropped.get() == asked
        })
        .await;
    rig.running.stop().await;
}

fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

#[tokio::test]
async fn a_server_that_is_no_shard_gets_nothing() {
    let pki = Pki::new().unwrap();
    let material = |identity: &str| pki.material(&[identity]).unwrap();
    let (cluster, provider, real) = (
        material("bigfleet://cluster/c-1"),
        material("bigfleet://provider/p"),
        material("bigfleet://shard/shard-0"),
    );
    let ours = mtls(&cluster);
    let impostor = FakeShard::start(mtls(&provider)).await;
    let rig = Rig::at(server(), impostor, |options| options.security = ours.clone());
    rig.until("refused", |rig| rig.metrics.session_reconnects.get() >= 1).await;
    assert_eq!(rig.shard.heard().sessions(), 0);
    rig.running.stop().await;
    let shard = FakeShard::start(mtls(&real)).await;
    let rig = Rig::at(server(), shard, |options| options.security = ours);
    rig.roll_ups(1).await;
    rig.running.stop().await;
}

#[tokio::test]
async fn an_unreachable_shard_is_dialled_again_and_readiness_does_not_care() {
    let shard = FakeShard::start(Security::Plaintext).await;
    let rig = Rig::at(server(), shard, |options| options.shard_addr = "localhost:1".to_owned());
    wait("dialled", || rig.metrics.session_reconnects.get() >= 2).await;
    assert!(rig.readiness.is_ready());
    assert_eq!(rig.metrics.session_connected.get(), 0);
    rig.running.stop().await;
}
