//! Operators that do not read.

use std::time::Duration;

use bigfleet_net::tls::Security;
use tonic::Code;

use super::rig::{Rig, node, until};
use crate::session::{BlobError, SessionOptions};

/// Fills whatever buffers lie between until frames stay in the outbox.
fn flood(rig: &Rig, cluster: &str, round: usize) {
    for key in 0..64 {
        let key = format!("node:{round}:{key}");
        let frame = node(&key, &"x".repeat(64 * 1024));
        rig.sessions.put_state(&cluster.into(), key, frame);
    }
}

async fn stall(rig: &Rig, cluster: &str) {
    for round in 0..8 {
        flood(rig, cluster, round);
        tokio::task::yield_now().await;
    }
    assert!(rig.sessions.outbox_depth() > 0);
}

#[tokio::test]
async fn shard_inv_14_a_stalled_operator_harms_nobody_else_and_is_ended() {
    let options = SessionOptions { write_limit: Duration::from_secs(1), ..Default::default() };
    let rig = Rig::start_with(Security::Plaintext, options).await;
    let mut stuck = rig.connect("stuck").await;
    let mut other = rig.connect("other").await;
    stall(&rig, "stuck").await;
    let wait = rig.sessions.request_blob(&"stuck".into(), vec![], &"m".into()).unwrap();
    other.roll_up(1).await;
    assert_eq!(other.next().await.echo(), "rollup");
    until("ended", || !rig.sessions.is_connected(&"stuck".into())).await;
    assert_eq!(wait.await.unwrap_err(), BlobError::NoSession);
    assert_eq!(rig.sessions.outbox_depth(), 0, "what it did not read is let go");
    assert!(rig.sessions.is_connected(&"other".into()));
    // Should it wake up, it learns why.
    stuck.ends_with(Code::DeadlineExceeded).await;
    rig.connect("stuck").await;
}

#[tokio::test]
async fn a_stalled_session_can_be_replaced() {
    let rig = Rig::start().await;
    let mut stuck = rig.connect("c").await;
    stall(&rig, "c").await;
    let mut new = rig.connect("c").await;
    rig.sessions.put_state(&"c".into(), "node:a".into(), node("node:a", "new"));
    assert_eq!(new.next().await.node().node_name, "new");
    stuck.ends_with(Code::Aborted).await;
}

#[tokio::test]
async fn acks_that_nobody_reads_end_the_session() {
    let rig = Rig::start().await;
    let mut stuck = rig.connect("c").await;
    stall(&rig, "c").await;
    for _ in 0..2000 {
        stuck.say_hello("c").await;
    }
    until("ended", || rig.sessions.count() == 0).await;
    stuck.ends_with(Code::ResourceExhausted).await;
}
