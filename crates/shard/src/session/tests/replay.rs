//! The replay after Hello and its marker.

use std::sync::Arc;

use super::rig::{Rig, node, until};

#[tokio::test]
async fn shard_inv_21_the_marker_waits_for_the_reconcile_and_its_replay() {
    let rig = Rig::start().await;
    rig.host.reconciled.send_replace(false);
    rig.host.replayed.lock().unwrap().extend((0..100).map(|n| format!("node:{n}")));
    let mut operator = rig.hello("c").await;
    // Control frames and changes go out meanwhile.
    operator.roll_up(1).await;
    assert_eq!(operator.next().await.echo(), "rollup");
    rig.sessions.put_state(&"c".into(), "node:x".into(), node("node:x", "live"));
    assert_eq!(operator.next().await.node().node_name, "live");
    rig.host.reconciled.send_replace(true);
    for number in 0..100 {
        assert_eq!(operator.next().await.node().supersedes_key, format!("node:{number}"));
    }
    let ack = operator.next().await.ack();
    assert_eq!((ack.echo.as_str(), ack.shard_epoch), ("resync", 7));
}

#[tokio::test]
async fn shard_inv_26_a_replay_that_outlives_its_session_marks_nothing() {
    let rig = Rig::start().await;
    rig.host.reconciled.send_replace(false);
    let mut old = rig.hello("c").await;
    let mut new = rig.hello("c").await;
    old.end().await;
    rig.host.reconciled.send_replace(true);
    assert_eq!(new.next().await.echo(), "resync");
    new.roll_up(1).await;
    assert_eq!(new.next().await.echo(), "rollup", "one marker only");
    until("empty", || rig.sessions.outbox_depth() == 0).await;
}

#[tokio::test]
async fn a_replay_ends_with_its_session() {
    let rig = Rig::start().await;
    rig.host.reconciled.send_replace(false);
    let operator = rig.hello("c").await;
    until("begun", || Arc::strong_count(&rig.host.replaying) == 2).await;
    drop(operator);
    until("given up", || Arc::strong_count(&rig.host.replaying) == 1).await;
}
