//! Drains in two steps (§8).

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_net::tls::Security;
use bigfleet_provider::{fake::Seed, protocol::Kind};
use bigfleet_scripted::operator::{Operator, OperatorOptions, Reclaim};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::shard_message::Payload;
use tokio::time::Instant;

use crate::rig::{Rig, pods, slow};

/// Grace of a voluntary release.
const GRACE: Duration = Duration::from_secs(600);

/// A shard whose one machine has just lost its demand.
async fn reclaiming(features: &[&str], policy: Reclaim) -> (Rig, Operator) {
    let seed = Seed { speculative: 3, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let options = OperatorOptions::new("c").features(features);
    let operator =
        Operator::connect(&rig.addr, &Security::Plaintext, options).await.expect("a session");
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.until("configured", |rig| rig.count(MachineState::Configured) == 1).await;
    operator.on_reclaim(move |_| policy.clone());
    operator.roll_up(vec![]).await.expect("accepted");
    let told = operator
        .wait_for("an instruction", |state| state.received.reclaim_instructions == 1, GRACE)
        .await;
    told.expect("the operator is told");
    (rig, operator)
}

/// When the provider was told to drain, counted from now.
async fn drained_after(rig: &Rig) -> Duration {
    let from = Instant::now();
    rig.until("a Drain", |rig| !rig.calls(Kind::Drain).is_empty()).await;
    from.elapsed()
}

fn grace(rig: &Rig) -> Duration {
    *rig.knobs().graces.values().next().expect("one was drained")
}

const FINAL: &[&str] = &["final-reclaim-ack"];

fn about(took: Duration, wanted: u64) -> bool {
    let wanted = Duration::from_secs(wanted);
    took >= wanted.saturating_sub(Duration::from_secs(1)) && took <= wanted + Duration::from_secs(2)
}

#[tokio::test(start_paused = true)]
async fn shard_inv_20_the_provider_waits_for_the_final_ack() {
    let (rig, operator) = reclaiming(FINAL, Reclaim::Drain(Duration::from_secs(100))).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 100), "{took:?}");
    assert!(about(grace(&rig), 499), "what is left of the grace: {:?}", grace(&rig));
    rig.until("idle", |rig| rig.count(MachineState::Idle) == 1).await;
    rig.pass(5).await;
    let frames = operator.frames();
    let last = frames.iter().rev().find_map(|frame| match &frame.payload {
        Some(Payload::NodeStateUpdate(update)) => Some(update),
        _ => None,
    });
    let last = last.expect("it was told of its machine");
    assert!(last.gone && last.state == MachineState::Idle.to_wire(), "shard_inv_16: {last:?}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_20_an_operator_that_never_finishes_holds_nothing_past_its_grace() {
    let (rig, _operator) = reclaiming(FINAL, Reclaim::NoFinal).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 605), "grace and 5 s: {took:?}");
    assert_eq!(grace(&rig), Duration::ZERO, "the operator had it all");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_operator_leaves_the_whole_grace_to_the_provider() {
    let (rig, _operator) = reclaiming(FINAL, Reclaim::Silent).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 605), "{took:?}");
    assert_eq!(grace(&rig), GRACE, "nobody drained");
    assert_eq!(rig.metrics.reclaim_ack_timeouts.get(), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_final_acks_the_provider_drains_at_once() {
    let (rig, _operator) = reclaiming(&[], Reclaim::Drain(Duration::from_secs(100))).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 0), "{took:?}");
    assert_eq!(grace(&rig), GRACE);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_to_drain_is_not_waited_for() {
    let (rig, _operator) = reclaiming(FINAL, Reclaim::NothingToDo).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 0), "{took:?}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_late_first_ack_races_no_eviction() {
    let (after, drain) = (Duration::from_secs(60), Duration::from_secs(100));
    let (rig, _operator) = reclaiming(FINAL, Reclaim::LateFirstAck { after, drain }).await;
    let took = drained_after(&rig).await;
    assert!(about(took, 160), "{took:?}");
    assert_eq!(rig.metrics.reclaim_ack_timeouts.get(), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_does_not_end_the_wait_and_a_later_one_does() {
    let (rig, mut operator) = reclaiming(FINAL, Reclaim::NoFinal).await;
    rig.pass(5).await;
    operator.abort().await;
    rig.pass(100).await;
    assert!(rig.calls(Kind::Drain).is_empty(), "the operator drains on its own clock");
    operator.reconnect().await.expect("a session");
    let instruction = operator.read(|state| state.drains.keys().next().cloned());
    assert!(operator.finish_reclaim(&instruction.expect("it drains")));
    assert!(about(drained_after(&rig).await, 0));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_23_a_session_lost_before_the_first_ack_ends_the_reclaim() {
    let (rig, mut operator) = reclaiming(FINAL, Reclaim::Silent).await;
    operator.abort().await;
    rig.pass(30).await;
    assert!(rig.calls(Kind::Drain).is_empty(), "voluntary: it waits for an operator");
    assert_eq!(rig.count(MachineState::Configured), 1);
    operator.on_reclaim(|_| Reclaim::Drain(Duration::from_secs(3)));
    operator.reconnect().await.expect("a session");
    rig.until("released", |rig| rig.count(MachineState::Speculative) == 3).await;
    assert!(operator.read(|state| state.picture.cordons.is_empty()));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_23_after_a_restart_the_node_is_reclaimed_anew() {
    let (rig, mut operator) = reclaiming(FINAL, Reclaim::Drain(Duration::from_secs(100))).await;
    rig.pass(5).await;
    let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
    operator.set_addr(&rig.addr);
    operator.reconnect().await.expect("a session");
    // Demand is back: the node must be schedulable again.
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.pass(700).await;
    assert_eq!(rig.count(MachineState::Configured), 1);
    assert!(operator.read(|state| state.picture.cordons.is_empty()), "a node stays cordoned");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_24_a_drain_without_an_answer_hands_no_node_back() {
    let (rig, operator) = reclaiming(FINAL, Reclaim::Drain(Duration::from_secs(10))).await;
    // Given up after 30 s, applied at 50 s.
    rig.knobs().late = Duration::from_secs(20);
    rig.until("idle", |rig| rig.count(MachineState::Idle) == 1).await;
    rig.pass(5).await;
    let states: Vec<i32> = operator
        .frames()
        .into_iter()
        .filter_map(|frame| match frame.payload {
            Some(Payload::NodeStateUpdate(update)) => Some(update.state),
            _ => None,
        })
        .collect();
    let draining = states.iter().position(|state| *state == MachineState::Draining.to_wire());
    let after = &states[draining.expect("told")..];
    assert!(!after.contains(&MachineState::Configured.to_wire()), "{states:?}");
    rig.stop().await;
}
