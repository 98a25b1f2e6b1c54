//! `status` with parts missing.

use bigfleet_net::tls::Security;

use crate::rig::{Ctl, Shard, leading};

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_works_with_parts_missing_and_says_which() {
    let shard = Shard::start("s-1", Security::Plaintext).await;
    let coordinator =
        leading(&Security::Plaintext, &[("s-1", &shard.addr), ("s-2", "127.0.0.1:1")]).await;
    let ctl = Ctl::to(&[coordinator.addr(), "127.0.0.1:1"]);
    let screen = ctl.run(&["status"]).await.ok();
    for part in [
        "FLEET 6f2c.00000000  leader node-1 (term 7)",
        "UNAUTHENTICATED TRANSPORT",
        "COORDINATOR  1 of 2 replicas answer, 3 voters",
        "SHARDS  2, 0 paused, 0 in dry-run; reports are rebuilding",
        "ACTIVE",
        "replica at 127.0.0.1:1 does not answer",
        "MISSING\n  brake: shard s-2 does not answer",
    ] {
        assert!(screen.contains(part), "{part:?} is not in:\n{screen}");
    }
    let json = ctl.run(&["status", "-o", "json"]).await.ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["plaintext"], &json["shards"][0]["mode"]), (&true.into(), &"ACTIVE".into()));

    coordinator.stop().await.unwrap();
    let done = ctl.run(&["status"]).await;
    for part in [
        "NO LEADER",
        "no coordinator leads",
        "showing those last known",
        "ACTIVE",
        "SHORTFALLS  not known",
    ] {
        assert!(done.out.contains(part), "{part:?} is not in:\n{}", done.out);
    }
    done.failed(3);
    shard.stop().await;
}
