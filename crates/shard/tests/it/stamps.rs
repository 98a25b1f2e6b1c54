//! Stamps follow demand: a machine counts as what it was last counted for (§5).

use std::time::Duration;

use bigfleet_model::{MachineState, machine::stamp::key};
use bigfleet_provider::{fake::Seed, protocol::Kind};
use bigfleet_scripted::{cluster::Shape, operator::Bootstrap};
use bigfleet_shard::Options;

use crate::rig::{Rig, pods_of, slow};

fn at(priority: i32) -> Shape {
    Shape::new(30_000, 1 << 30).priority(priority)
}

/// One machine for two: who has it is a matter of priority.
async fn contested() -> Rig {
    Rig::start(Options::default(), slow(), &Seed { idle: 5, ..Seed::default() }).await
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_protected_by_the_need_it_serves_now() {
    let rig = contested().await;
    let operator = rig.operator("a").await;
    operator.roll_up(pods_of("a", 1, &at(0))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(30).await;
    // The same pods, more important now.
    operator.roll_up(pods_of("a", 1, &at(1000))).await.expect("accepted");
    rig.pass(30).await;
    let other = rig.operator("b").await;
    other.roll_up(pods_of("b", 1, &at(500))).await.expect("accepted");
    rig.pass(300).await;
    assert!(rig.calls(Kind::Drain).is_empty(), "taken by somebody less important");
    rig.stop().await;
}

/// Somebody less important waits all the while: a stamp lost for one cycle would
/// be enough.
#[tokio::test(start_paused = true)]
async fn a_machine_is_protected_at_every_step_of_its_life() {
    let rig = contested().await;
    let other = rig.operator("b").await;
    let operator = rig.operator("a").await;
    operator.roll_up(pods_of("a", 1, &at(1000))).await.expect("accepted");
    other.roll_up(pods_of("b", 1, &at(500))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(300).await;
    assert!(rig.calls(Kind::Drain).is_empty(), "taken by somebody less important");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_06_a_restarted_shard_protects_whom_it_has_not_heard_of() {
    let rig = contested().await;
    let operator = rig.operator("a").await;
    operator.roll_up(pods_of("a", 1, &at(1000))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(30).await;
    let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
    let other = rig.operator("b").await;
    other.roll_up(pods_of("b", 1, &at(500))).await.expect("accepted");
    rig.pass(300).await;
    assert!(rig.calls(Kind::Drain).is_empty(), "its stamp is echoed by the provider");
    rig.stop().await;
}

/// The other way round: what is known to be less important may be taken.
#[tokio::test(start_paused = true)]
async fn shard_inv_06_a_restarted_shard_knows_whom_it_may_take_from() {
    let rig = contested().await;
    let operator = rig.operator("a").await;
    operator.roll_up(pods_of("a", 1, &at(0))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(30).await;
    let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
    let other = rig.operator("b").await;
    other.roll_up(pods_of("b", 1, &at(1000))).await.expect("accepted");
    rig.until("taken", |rig| !rig.calls(Kind::Drain).is_empty()).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn configure_sends_the_stamp_as_it_stands_when_sent() {
    let rig = contested().await;
    let operator = rig.operator("a").await;
    operator.on_bootstrap(|_| Bootstrap::Late(Duration::from_secs(15)));
    operator.roll_up(pods_of("a", 1, &at(0))).await.expect("accepted");
    rig.pass(5).await;
    operator.roll_up(pods_of("a", 1, &at(1000))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    let served = rig.fake.random(MachineState::Configured).expect("one");
    let echo = rig.fake.machine(&served).expect("known").shard_metadata;
    assert_eq!(echo[key::PRIORITY], "1000");
    rig.stop().await;
}

/// Bought for a need that is gone by the time the machine exists.
#[tokio::test(start_paused = true)]
async fn a_purchase_that_nobody_wants_any_more_rests_and_is_given_back() {
    let rig =
        Rig::start(Options::default(), slow(), &Seed { speculative: 5, ..Seed::default() }).await;
    let operator = rig.operator("a").await;
    operator.roll_up(pods_of("a", 1, &at(0))).await.expect("accepted");
    rig.until("bought", |rig| rig.count(MachineState::Creating) == 1).await;
    rig.pass(5).await;
    assert_eq!(operator.read(|state| state.picture.machines.len()), 1, "on its way");
    operator.roll_up(vec![]).await.expect("accepted");
    rig.until("created", |rig| rig.count(MachineState::Idle) == 1).await;
    rig.pass(30).await;
    assert_eq!(operator.read(|state| state.picture.machines.len()), 0, "shard_inv_16: told");
    assert!(rig.calls(Kind::Configure).is_empty());
    rig.until("given back", |rig| rig.count(MachineState::Speculative) == 5).await;
    rig.stop().await;
}

/// The second half of a purchase follows in the same moment, whatever else is
/// wanted: the machine is not up for grabs.
#[tokio::test(start_paused = true)]
async fn a_purchase_belongs_to_whoever_bought_it() {
    let rig =
        Rig::start(Options::default(), slow(), &Seed { speculative: 5, ..Seed::default() }).await;
    let buyer = rig.operator("buyer").await;
    buyer.roll_up(pods_of("buyer", 1, &at(0))).await.expect("accepted");
    rig.until("bought", |rig| rig.count(MachineState::Creating) == 1).await;
    let other = rig.operator("other").await;
    other.roll_up(pods_of("other", 1, &at(0))).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(5).await;
    assert_eq!(buyer.read(|state| state.picture.count(MachineState::Configured)), 1);
    rig.stop().await;
}
