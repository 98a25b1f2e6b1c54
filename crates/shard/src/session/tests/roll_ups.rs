//! Roll-ups and their answers.

use std::{sync::Arc, thread::available_parallelism};

use bigfleet_wire::v1alpha1::{self as wire, operator_message::Payload};
use tonic::Code;

use super::rig::{Rig, until};
use crate::session::RollUpAnswer;

#[tokio::test]
async fn answers_name_the_roll_up_they_mean() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    for (answer, held) in [(RollUpAnswer::Accepted, false), (RollUpAnswer::Held, true)] {
        *rig.host.decide.lock().unwrap() = Arc::new(move |_| answer.clone());
        operator.roll_up(42).await;
        let ack = operator.next().await.ack();
        assert_eq!((ack.echo.as_str(), ack.held), ("rollup", held));
        assert_eq!((ack.rollup_timestamp_unix_nanos, ack.shard_epoch), (42, 7));
    }
}

#[tokio::test]
async fn shard_inv_12_a_refusal_is_told_and_the_stream_lives() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    // Two bytes each: the cut must not fall into the middle of one.
    let error = format!("n{}", "ä".repeat(2000));
    let refused = error.clone();
    *rig.host.decide.lock().unwrap() = Arc::new(move |_| RollUpAnswer::Rejected(error.clone()));
    operator.roll_up(43).await;
    let ack = operator.next().await.ack();
    assert_eq!((ack.rollup_timestamp_unix_nanos, ack.held), (43, false));
    let told = ack.echo.strip_prefix("rollup_rejected: ").unwrap();
    assert_eq!(told.len(), 1023);
    assert!(refused.starts_with(told));
    *rig.host.decide.lock().unwrap() = Arc::new(|_| RollUpAnswer::Accepted);
    operator.roll_up(44).await;
    assert_eq!(operator.next().await.ack().rollup_timestamp_unix_nanos, 44);
}

#[tokio::test]
async fn a_newer_roll_up_replaces_the_one_that_waits() {
    let rig = Rig::start().await;
    rig.hold_roll_ups();
    let mut operator = rig.connect("c").await;
    operator.large_roll_up(1).await;
    until("the first is being worked on", || rig.entered() == 1).await;
    for timestamp in 2..=5 {
        operator.large_roll_up(timestamp).await;
    }
    // Hello is read after them and answered before.
    operator.say_hello("c").await;
    assert_eq!(operator.next().await.echo(), "hello");
    rig.let_roll_ups_go().await;
    assert_eq!(operator.next().await.ack().rollup_timestamp_unix_nanos, 1);
    assert_eq!(operator.next().await.ack().rollup_timestamp_unix_nanos, 5);
    assert_eq!(rig.applied(), [1, 5]);
}

#[tokio::test]
async fn large_roll_ups_leave_processors_to_the_cycle() {
    let rig = Rig::start().await;
    rig.hold_roll_ups();
    let at_once = available_parallelism().unwrap().get().div_ceil(2);
    let mut operators = Vec::new();
    for number in 0..at_once + 2 {
        let operator = rig.connect(&number.to_string()).await;
        operator.large_roll_up(1).await;
        operators.push(operator);
    }
    until("as many as may are worked on", || rig.entered() == at_once).await;
    // What waits for its turn is replaced by a newer one.
    let last = operators.last_mut().unwrap();
    last.large_roll_up(2).await;
    last.say_hello(&(at_once + 1).to_string()).await;
    assert_eq!(last.next().await.echo(), "hello");
    assert_eq!(rig.entered(), at_once);
    rig.let_roll_ups_go().await;
    assert_eq!(last.next().await.ack().rollup_timestamp_unix_nanos, 2);
    for operator in &mut operators[..=at_once] {
        assert_eq!(operator.next().await.ack().rollup_timestamp_unix_nanos, 1);
    }
    assert_eq!(rig.entered(), at_once + 2);
}

#[tokio::test]
async fn a_slow_roll_up_delays_no_blob() {
    let rig = Rig::start().await;
    rig.hold_roll_ups();
    let mut operator = rig.connect("c").await;
    operator.large_roll_up(1).await;
    until("being worked on", || rig.entered() == 1).await;
    let wait = rig.sessions.request_blob(&"c".into(), vec![], &"m".into()).unwrap();
    let request_id = operator.next().await.blob_request().request_id;
    let response = wire::BootstrapBlobResponse { request_id, ..Default::default() };
    operator.send(Payload::BootstrapResponse(response)).await;
    super::rig::soon(wait).await.unwrap();
    rig.let_roll_ups_go().await;
    assert_eq!(operator.next().await.echo(), "rollup");
}

#[tokio::test]
async fn shard_inv_26_a_roll_up_of_a_replaced_session_is_dropped() {
    let rig = Rig::start().await;
    rig.hold_roll_ups();
    let mut old = rig.connect("c").await;
    old.large_roll_up(1).await;
    until("being worked on", || rig.entered() == 1).await;
    old.large_roll_up(2).await;
    let mut new = rig.connect("c").await;
    old.ends_with(Code::Aborted).await;
    rig.let_roll_ups_go().await;
    new.roll_up(3).await;
    assert_eq!(new.next().await.ack().rollup_timestamp_unix_nanos, 3);
    assert_eq!(rig.applied(), [3]);
}

#[tokio::test]
async fn shard_inv_26_a_roll_up_of_an_ended_session_is_dropped() {
    let rig = Rig::start().await;
    rig.hold_roll_ups();
    let mut old = rig.connect("c").await;
    old.large_roll_up(1).await;
    until("being worked on", || rig.entered() == 1).await;
    old.half_close();
    old.ends_with(Code::Ok).await;
    until("removed", || rig.sessions.count() == 0).await;
    rig.let_roll_ups_go().await;
    let mut new = rig.connect("c").await;
    new.roll_up(3).await;
    assert_eq!(new.next().await.ack().rollup_timestamp_unix_nanos, 3);
    assert_eq!(rig.applied(), [3]);
}

#[tokio::test]
async fn a_worker_that_dies_does_not_leave_the_session_deaf() {
    let rig = Rig::start().await;
    *rig.host.decide.lock().unwrap() = Arc::new(|_| panic!("as the test wants"));
    let mut operator = rig.connect("c").await;
    operator.roll_up(1).await;
    operator.ends_with(Code::Internal).await;
    let mut operator = rig.connect("c").await;
    operator.large_roll_up(1).await;
    operator.ends_with(Code::Internal).await;
}
