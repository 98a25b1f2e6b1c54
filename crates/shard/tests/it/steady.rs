//! Constant demand, preemption, and clocks that jump.

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::{fake::Seed, protocol::Kind};
use bigfleet_scripted::{cluster::Shape, operator::Reclaim};
use bigfleet_shard::Options;

use crate::rig::{Rig, pods, pods_of, slow};

fn mutations(rig: &Rig) -> usize {
    Kind::ALL.iter().map(|kind| rig.calls(*kind).len()).sum()
}

#[tokio::test(start_paused = true)]
async fn shard_inv_08_a_thousand_cycles_without_an_action() {
    let seed = Seed { idle: 10, speculative: 30, spot: 30, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let mut operators = Vec::new();
    for (name, pods, millis) in [("a", 7, 1500), ("b", 3, 7000), ("c", 20, 900_i64)] {
        let operator = rig.operator(name).await;
        operator.roll_up(self::pods(name, pods, millis)).await.expect("accepted");
        operators.push((operator, name, pods, millis));
    }
    // Idle machines that nobody wants are given back in the meantime.
    rig.pass(2000).await;
    rig.fake.clear_calls();
    for _ in 0..100 {
        for (operator, name, pods, millis) in &mut operators {
            // Connections do not last for ever.
            if operator.ended().is_some() {
                operator.reconnect().await.expect("a session");
            }
            operator.roll_up(self::pods(name, *pods, *millis)).await.expect("accepted");
        }
        rig.pass(100).await;
    }
    assert_eq!(mutations(&rig), 0, "{}", rig.told());
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_more_important_takes_machines_and_the_operator_is_told_why() {
    let rig = Rig::start(Options::default(), slow(), &Seed { idle: 5, ..Seed::default() }).await;
    let cheap = rig.operator("cheap").await;
    cheap.on_reclaim(|_| Reclaim::Drain(Duration::from_secs(3)));
    cheap.roll_up(pods("cheap", 1, 30_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(30).await;
    let dear = rig.operator("dear").await;
    let shape = Shape::new(30_000, 1 << 30).priority(1_000_000);
    dear.roll_up(pods_of("dear", 1, &shape)).await.expect("accepted");
    let met = |operator: &bigfleet_scripted::operator::Operator| {
        operator.read(|state| state.picture.count(MachineState::Configured))
    };
    rig.until("taken over", |_| met(&dear) == 1 && met(&cheap) == 0).await;
    assert_eq!(cheap.read(|state| state.picture.machines.len()), 0, "gone is said");
    let priority = cheap.read(|state| {
        state.frames.iter().find_map(|frame| match &frame.payload {
            Some(bigfleet_wire::v1alpha1::shard_message::Payload::ReclaimInstruction(one)) => {
                Some((one.preemptor_priority, one.grace_period_seconds))
            }
            _ => None,
        })
    });
    assert_eq!(priority, Some((1_000_000, 10)), "a wide gap leaves little time");
    rig.stop().await;
}

/// A preemption does not wait for an operator that is away.
#[tokio::test(start_paused = true)]
async fn a_preemption_goes_on_without_an_operator() {
    let rig = Rig::start(Options::default(), slow(), &Seed { idle: 5, ..Seed::default() }).await;
    let mut cheap = rig.operator("cheap").await;
    cheap.roll_up(pods("cheap", 1, 30_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(30).await;
    cheap.abort().await;
    let dear = rig.operator("dear").await;
    let shape = Shape::new(30_000, 1 << 30).priority(1_000_000);
    dear.roll_up(pods_of("dear", 1, &shape)).await.expect("accepted");
    let met = || dear.read(|state| state.picture.count(MachineState::Configured));
    rig.until("taken over", |_| met() == 1).await;
    assert_eq!(rig.knobs().graces.values().next(), Some(&Duration::from_secs(10)), "all of it");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_changes_no_hold() {
    let seed = Seed { speculative: 9, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.skew_wall(Duration::from_secs(3600), false);
    operator.roll_up(vec![]).await.expect("accepted");
    rig.until("idle", |rig| rig.count(MachineState::Idle) == 1).await;
    let idle = tokio::time::Instant::now();
    rig.skew_wall(Duration::from_secs(7200), true);
    rig.until("given back", |rig| !rig.calls(Kind::Delete).is_empty()).await;
    let held = idle.elapsed().as_secs();
    assert!((599..620).contains(&held), "ten minutes: {held} s");
    rig.stop().await;
}
