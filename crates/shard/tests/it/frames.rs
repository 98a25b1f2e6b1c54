//! What operators are told of their machines (§12).

use std::{collections::BTreeSet, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_provider::fake::Seed;
use bigfleet_scripted::{operator::Operator, random::Random};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::shard_message::Payload;

use crate::rig::{Rig, pods, slow};

/// Machines that the provider has bound to a cluster.
fn bound(rig: &Rig, cluster: &str, ids: impl Iterator<Item = String>) -> BTreeSet<String> {
    let of = |id: &String| {
        let machine = rig.fake.machine(id).expect("known");
        machine.cluster.is_some_and(|bound| bound.as_str() == cluster)
    };
    ids.filter(of).collect()
}

/// shard invariants 15, 16: after any storm of disconnects each operator knows
/// exactly its own machines, and their states.
#[tokio::test(start_paused = true)]
async fn shard_inv_15_every_change_reaches_the_operator_across_reconnects() {
    let seed = std::env::var("BIGFLEET_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    println!("seed {seed}: replay with BIGFLEET_SEED={seed}");
    let mut random = Random::new(seed);
    let machines = Seed { idle: 30, speculative: 30, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &machines).await;
    let mut operators = vec![rig.operator("a").await, rig.operator("b").await];
    for round in 0..60 {
        for (operator, name) in operators.iter_mut().zip(["a", "b"]) {
            if operator.ended().is_some() {
                operator.reconnect().await.expect("a session");
            }
            let pods = pods(name, random.below(6) as usize, 3000);
            operator.roll_up(pods).await.expect("answered");
        }
        rig.pass(random.below(40)).await;
        if random.below(3) == 0 {
            operators[round % 2].abort().await;
        }
    }
    for operator in &mut operators {
        if operator.ended().is_some() {
            operator.reconnect().await.expect("a session");
        }
    }
    rig.pass(3600).await;
    let ids = || {
        let idle = (0..30).map(|at| format!("idle-{at}"));
        idle.chain((0..30).map(|at| format!("spec-{at}")))
    };
    for (operator, name) in operators.iter().zip(["a", "b"]) {
        let known: BTreeSet<String> =
            operator.read(|state| state.picture.machines.keys().cloned().collect());
        assert_eq!(known, bound(&rig, name, ids()), "{name}");
        for id in &known {
            let state = operator.read(|state| state.picture.state(id));
            assert_eq!(state, rig.fake.machine(id).map(|machine| machine.state), "{id}");
        }
    }
    rig.stop().await;
}

fn resynced(operator: &Operator) -> bool {
    operator.read(|state| state.picture.resynced)
}

#[tokio::test(start_paused = true)]
async fn shard_inv_21_no_marker_before_the_first_reconcile() {
    let seed = Seed { idle: 30, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods("c", 3, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 3).await;
    rig.pass(5).await;
    let fake = rig.kill().await;
    let rig = Rig::blind(Options::default(), fake, 2).await;
    operator.set_addr(&rig.addr);
    operator.reconnect().await.expect("a session");
    rig.pass(300).await;
    assert!(!resynced(&operator), "nothing is known yet, so nothing is pruned");
    assert_eq!(operator.read(|state| state.picture.machines.len()), 3);
    rig.knobs().down = false;
    operator
        .wait_for("the marker", |state| state.picture.resynced, Duration::from_secs(60))
        .await
        .expect("resynced");
    assert_eq!(operator.read(|state| state.picture.machines.len()), 3);
    // The marker came behind every frame of the replay.
    let frames = operator.frames();
    let is_node = |payload: &Option<Payload>| matches!(payload, Some(Payload::NodeStateUpdate(_)));
    let marker = frames.iter().position(
        |frame| matches!(&frame.payload, Some(Payload::Ack(ack)) if ack.echo == "resync"),
    );
    let nodes = frames.iter().filter(|frame| is_node(&frame.payload)).count();
    let before = frames[..marker.expect("there")].iter().filter(|frame| is_node(&frame.payload));
    assert_eq!(before.count(), nodes, "none behind the marker");
    rig.stop().await;
}
