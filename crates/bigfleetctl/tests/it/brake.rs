//! The brake works with every coordinator dead.

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    ActuationMode, ActuationState, GetActuationRequest, shard_admin_client::ShardAdminClient,
};

use crate::rig::{Ctl, Shard, leading};

async fn state(shard: &Shard) -> ActuationState {
    let channel = connect(&shard.addr, &Security::Plaintext, Rule::any_shard()).await.unwrap();
    let mut rpc = ShardAdminClient::new(channel);
    rpc.get_actuation(GetActuationRequest {}).await.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shard_hears_with_all_coordinators_dead() {
    let mut shards = Vec::new();
    for id in ["s-1", "s-2", "s-3"] {
        shards.push((id, Shard::start(id, Security::Plaintext).await));
    }
    let list: Vec<(&str, &str)> = shards.iter().map(|(id, shard)| (*id, &*shard.addr)).collect();
    let coordinator = leading(&Security::Plaintext, &list).await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    ctl.run(&["list-shards"]).await.ok();
    coordinator.stop().await.unwrap();

    let done = ctl.run(&["pause", "--all", "--reason", "incident 7", "--yes"]).await;
    assert!(done.err.contains("last known addresses"), "{done:?}");
    let out = done.ok();
    assert_eq!(
        out.lines().filter(|line| line.contains("  PAUSED  ") && line.ends_with("  ok")).count(),
        3,
        "{out}"
    );
    for (id, shard) in &shards {
        let state = state(shard).await;
        assert_eq!(state.mode(), ActuationMode::Paused, "{id}");
        assert_eq!(state.reason, "incident 7");
    }
    let shown = ctl.run(&["resume", "--all", "--reason", "over", "--dry-run"]).await.ok();
    assert_eq!(
        shown.lines().filter(|line| line.starts_with("would let shard s-")).count(),
        3,
        "{shown}"
    );
    ctl.run(&["resume", "--all", "--reason", "over"]).await.failed(2);
    assert_eq!(state(&shards[0].1).await.mode(), ActuationMode::Paused);
    let (one, two) = (&shards[0].1, &shards[1].1);
    ctl.run(&["shadow", "--shard", "s-1", "s-2", "--reason", "look", "--yes"]).await.ok();
    ctl.run(&["resume", "--shard-addr", &one.addr, "--reason", "over", "--yes"]).await.ok();
    assert_eq!(state(one).await.mode(), ActuationMode::Active);
    assert_eq!(state(two).await.mode(), ActuationMode::DryRun);
    assert_eq!(state(&shards[2].1).await.mode(), ActuationMode::Paused);

    // One that is gone does not keep the others from hearing.
    let (_, gone) = shards.remove(0);
    gone.stop().await;
    let done = ctl.run(&["pause", "--all", "--reason", "again", "--yes"]).await;
    assert!(done.out.contains("shard s-1 does not answer"), "{done:?}");
    assert!(done.failed(1).contains("1 of 3 shards did not do it"));
    assert_eq!(state(&shards[0].1).await.mode(), ActuationMode::Paused);
    for (_, shard) in shards {
        shard.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registry_adds_shards_and_takes_away_dead_ones() {
    let shard = Shard::start("s-1", Security::Plaintext).await;
    let coordinator = leading(&Security::Plaintext, &[("old", "127.0.0.1:1")]).await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    ctl.run(&["list-shards"]).await.ok();
    crate::rig::lead(&coordinator, &[("s-1", &shard.addr)]);
    let out = ctl.run(&["pause", "--all", "--reason", "x", "--yes", "-o", "json"]).await.ok();
    let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!((&rows[0]["shard"], &rows[0]["mode"]), (&"s-1".into(), &"PAUSED".into()));
    shard.stop().await;
}

#[tokio::test]
async fn nobody_to_tell_is_a_failure() {
    let ctl = Ctl::to(&["127.0.0.1:1"]);
    let error = ctl.run(&["pause", "--all", "--reason", "x", "--yes"]).await.failed(1);
    assert!(error.contains("no shard is known") && error.contains("--shard-addr"), "{error}");
    let error = ctl.run(&["pause", "--shard", "s-9", "--reason", "x", "--yes"]).await.failed(1);
    assert!(error.contains("shard s-9"), "{error}");
    ctl.run(&["pause", "--shard-addr", "127.0.0.1:1", "--reason", "x", "--yes"]).await.failed(1);
}
