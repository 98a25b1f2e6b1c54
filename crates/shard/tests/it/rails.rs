//! The rails (§10).

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::fake::Seed;
use bigfleet_scripted::operator::{Answer, Reclaim};
use bigfleet_shard::Options;

use crate::rig::{Rig, pods, slow};

#[tokio::test(start_paused = true)]
async fn shard_inv_10_reclaims_stay_below_the_cap_whatever_wakes_the_cycle() {
    let options = Options { reclaim_cap_fraction: Some(0.05), ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 200, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.on_reclaim(|_| Reclaim::NoFinal);
    operator.roll_up(pods("c", 40, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 40).await;
    rig.pass(60).await;
    // Each roll-up wakes a cycle; the cap is per interval.
    for second in 0..40 {
        operator.roll_up(vec![]).await.expect("accepted");
        rig.pass(1).await;
        let told = operator.read(|state| state.received.reclaim_instructions);
        let intervals = second / 10 + 2;
        assert!(told <= 2 * intervals, "{told} reclaims after {second} s");
    }
    let told = operator.read(|state| state.received.reclaim_instructions);
    assert!(told >= 4, "they go on: {told}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_11_a_wiped_roll_up_is_held_twice() {
    let options = Options { empty_rollup_guard: true, ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 100, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 15, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 15).await;
    rig.pass(60).await;
    for _ in 0..2 {
        assert_eq!(operator.roll_up(vec![]).await.expect("answered"), Answer::Held);
        rig.pass(120).await;
        assert_eq!(rig.count(MachineState::Configured), 15);
    }
    assert_eq!(operator.roll_up(vec![]).await.expect("answered"), Answer::Accepted);
    rig.until("released", |rig| rig.count(MachineState::Configured) == 0).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_action_limit_defers_and_comes_back() {
    let options = Options { max_actions_per_cycle: Some(3), ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 200, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 20, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 20).await;
    assert!(rig.metrics.actions_deferred.get() > 0);
    rig.stop().await;
}

/// A queue too small for a decision drops, and what is dropped is decided again.
#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_nothing_is_lost() {
    let options =
        Options { execute_concurrency: 1, provider_max_inflight: 1, ..Options::default() };
    let rig = Rig::start(options, slow(), &Seed { idle: 200, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 20, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 20).await;
    assert!(rig.metrics.actions_dropped.get() > 0);
    rig.stop().await;
}

/// shard invariant 17: demand that flaps within the hold buys once.
#[tokio::test(start_paused = true)]
async fn shard_inv_17_flapping_demand_buys_once() {
    let rig = Rig::start(Options::default(), slow(), &Seed { spot: 20, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    operator.on_reclaim(|_| Reclaim::Drain(Duration::from_secs(2)));
    for _ in 0..10 {
        operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
        rig.pass(100).await;
        operator.roll_up(vec![]).await.expect("accepted");
        rig.pass(30).await;
    }
    let creates = rig.calls(bigfleet_provider::protocol::Kind::Create).len();
    assert_eq!(creates, 1, "{}", rig.told());
    rig.stop().await;
}
