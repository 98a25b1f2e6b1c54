//! A shard dies and another takes over: only the epoch and the provider remember.

use bigfleet_model::{MachineState, machine::stamp::key};
use bigfleet_provider::{fake::Seed, protocol::Kind};
use bigfleet_scripted::cluster::Shape;
use bigfleet_shard::Options;

use crate::rig::{Rig, pods_of, slow};

fn machines() -> Seed {
    Seed { speculative: 40, ..Seed::default() }
}

fn shape() -> Shape {
    Shape::new(3000, 1 << 30).priority(1000)
}

#[tokio::test(start_paused = true)]
async fn shard_inv_07_nothing_is_reclaimed_before_the_first_roll_up() {
    let rig = Rig::start(Options::default(), slow(), &machines()).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
    rig.pass(300).await;
    let served = rig.count(MachineState::Configured);
    assert!(served > 0);
    let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
    rig.fake.clear_calls();
    operator.set_addr(&rig.addr);
    operator.reconnect().await.expect("a session");
    rig.pass(1800).await;
    assert_eq!(rig.count(MachineState::Configured), served, "silence is never demand zero");
    assert!(rig.calls(Kind::Drain).is_empty());
    // Even an empty one opens the gate.
    operator.roll_up(vec![]).await.expect("accepted");
    rig.until("released", |rig| rig.count(MachineState::Speculative) == 40).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_06_a_restart_keeps_priorities_and_moves_nothing() {
    let rig = Rig::start(Options::default(), slow(), &machines()).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
    rig.pass(300).await;
    let echo = |rig: &Rig| {
        let id = rig.fake.random(MachineState::Configured).expect("one serves");
        let metadata = rig.fake.machine(&id).expect("known").shard_metadata;
        (metadata[key::PRIORITY].clone(), metadata[key::FINGERPRINT].clone())
    };
    let (priority, fingerprint) = echo(&rig);
    assert_eq!(priority, "1000");
    let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
    rig.fake.clear_calls();
    operator.set_addr(&rig.addr);
    operator.reconnect().await.expect("a session");
    operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
    rig.pass(1800).await;
    for kind in Kind::ALL {
        assert!(rig.calls(kind).is_empty(), "same demand, {kind:?}: {:?}", rig.calls(kind));
    }
    assert_eq!(echo(&rig), (priority, fingerprint));
    rig.stop().await;
}

/// The fault matrix: killed in the middle of each of the four calls.
#[tokio::test(start_paused = true)]
async fn killed_in_the_middle_of_anything_it_leaks_and_repeats_nothing() {
    for after in [1, 12, 30, 45, 50, 65] {
        let rig = Rig::start(Options::default(), slow(), &machines()).await;
        let mut operator = rig.operator("c").await;
        operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
        rig.pass(after).await;
        let rig = Rig::over(Options::default(), rig.kill().await, 2).await;
        operator.set_addr(&rig.addr);
        operator.reconnect().await.expect("a session");
        operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
        rig.pass(400).await;
        let configured = rig.count(MachineState::Configured);
        assert_eq!(rig.count(MachineState::Speculative) + configured, 40, "after {after} s");
        // And in the middle of a drain or a delete.
        operator.roll_up(vec![]).await.expect("accepted");
        rig.pass(after).await;
        let rig = Rig::over(Options::default(), rig.kill().await, 3).await;
        operator.set_addr(&rig.addr);
        operator.reconnect().await.expect("a session");
        operator.roll_up(vec![]).await.expect("accepted");
        rig.until("released", |rig| rig.count(MachineState::Speculative) == 40).await;
        rig.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_zombie_is_fenced_where_its_successor_has_been_and_latches() {
    let rig = Rig::start(Options::default(), slow(), &machines()).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
    rig.pass(300).await;
    let successor = Rig::over(Options::default(), rig.fake.clone(), 2).await;
    operator.set_addr(&successor.addr);
    operator.reconnect().await.expect("a session");
    operator.roll_up(vec![]).await.expect("accepted");
    successor.until("released", |rig| rig.count(MachineState::Speculative) == 40).await;
    // The old one still believes in the old demand, and buys.
    let mut lost = rig.operator("c").await;
    lost.roll_up(pods_of("c", 8, &shape())).await.expect("accepted");
    rig.until("latched", |rig| rig.metrics.fenced.get() == 1).await;
    rig.fake.clear_calls();
    lost.abort().await;
    rig.pass(600).await;
    let mutations: usize = Kind::ALL.iter().map(|kind| rig.calls(*kind).len()).sum();
    assert_eq!(mutations, 0, "a latched shard sends nothing");
    rig.stop().await;
    successor.stop().await;
}
