//! Reclaim instructions and their acks.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_wire::v1alpha1::{Hello, operator_message::Payload};

use super::rig::{Rig, soon, until};
use crate::session::{Instruction, NoSession, Progress};

const GRACE: Duration = Duration::from_secs(120);

fn instruct(rig: &Rig, cluster: &str) -> Instruction {
    rig.sessions.instruct(&cluster.into(), &"m".into(), GRACE, 5).unwrap()
}

async fn reaches(instruction: &mut Instruction, condition: fn(&Progress) -> bool) -> Progress {
    *soon(instruction.progress.wait_for(condition)).await.unwrap()
}

#[tokio::test]
async fn an_instruction_is_followed_to_its_end() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    let mut instruction = instruct(&rig, "c");
    assert_eq!(*instruction.progress.borrow(), Progress::default());
    let frame = operator.next().await.instruction();
    assert_eq!(frame.instruction_id, instruction.id);
    assert_eq!((frame.nodes, frame.grace_period_seconds), (vec!["m".to_owned()], 120));
    assert_eq!(frame.preemptor_priority, 5);
    assert!(reaches(&mut instruction, |progress| progress.sent.is_some()).await.sent.is_some());
    assert!(!instruction.take_back(), "it is written");
    operator.ack(&instruction.id, 1, false).await;
    let acked = reaches(&mut instruction, |progress| progress.first_ack.is_some()).await;
    assert_eq!((acked.first_ack, acked.finished), (Some(1), false));
    operator.ack(&instruction.id, 0, true).await;
    let done = reaches(&mut instruction, |progress| progress.finished).await;
    assert_eq!((done.first_ack, done.session_ended), (Some(1), false));
}

#[tokio::test]
async fn shard_inv_20_a_promise_outlives_the_session_that_made_it() {
    let rig = Rig::start().await;
    let mut operator = rig.dial(&Security::Plaintext).await;
    let features = vec!["final-reclaim-ack".to_owned()];
    let hello = Hello { cluster_id: "c".into(), features, ..Default::default() };
    operator.send(Payload::Hello(hello)).await;
    assert_eq!(operator.next().await.echo(), "hello");
    let mut instruction = instruct(&rig, "c");
    operator.ack(&instruction.id, 1, false).await;
    reaches(&mut instruction, |progress| progress.first_ack.is_some()).await;
    operator.half_close();
    operator.end().await;
    until("removed", || rig.sessions.features(&"c".into()).is_none()).await;
    assert!(instruction.features.final_reclaim_ack);
    assert!(!instruction.progress.borrow().session_ended, "its drain goes on");
}

#[tokio::test]
async fn one_that_is_not_written_can_be_taken_back() {
    let rig = Rig::start().await;
    let mut operator = rig.connect("c").await;
    // The runtime has one thread and nothing is awaited: they cannot be written yet.
    let instruction = instruct(&rig, "c");
    assert!(instruction.take_back());
    assert!(!instruction.take_back());
    drop(instruct(&rig, "c"));
    operator.roll_up(1).await;
    assert_eq!(operator.next().await.echo(), "rollup", "neither went out");
    assert_eq!(instruction.progress.borrow().sent, None);
}

#[tokio::test]
async fn a_session_that_ends_before_the_first_ack_is_noticed_at_once() {
    let rig = Rig::start().await;
    assert!(matches!(rig.sessions.instruct(&"c".into(), &"m".into(), GRACE, 0), Err(NoSession)));
    let operator = rig.connect("c").await;
    let (mut waiting, mut acked) = (instruct(&rig, "c"), instruct(&rig, "c"));
    operator.ack(&acked.id, 1, false).await;
    reaches(&mut acked, |progress| progress.first_ack.is_some()).await;
    let mut new = rig.connect("c").await;
    reaches(&mut waiting, |progress| progress.session_ended).await;
    assert!(!acked.progress.borrow().session_ended, "its drain goes on");

    // The operator goes on with it on its next session, and with a late first ack.
    new.ack(&acked.id, 0, true).await;
    reaches(&mut acked, |progress| progress.finished).await;
    new.ack(&waiting.id, 0, false).await;
    let late = reaches(&mut waiting, |progress| progress.first_ack.is_some()).await;
    assert_eq!(late.first_ack, Some(0));
    new.half_close();
}

#[tokio::test]
async fn acks_of_other_clusters_and_unknown_ones_change_nothing() {
    let rig = Rig::start().await;
    let (operator, mut other) = (rig.connect("c").await, rig.connect("d").await);
    let mut instruction = instruct(&rig, "c");
    other.ack(&instruction.id, 0, true).await;
    other.ack("", 0, true).await;
    other.ack("0123456789abcdef", 0, true).await;
    other.say_hello("d").await;
    assert_eq!(other.next().await.echo(), "hello");
    operator.ack(&instruction.id, 1, false).await;
    let acked = reaches(&mut instruction, |progress| progress.first_ack.is_some()).await;
    assert!(!acked.finished);
}
