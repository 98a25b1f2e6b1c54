//! Cordons, acks, and what of them outlives a session.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_scripted::operator::{Operator, OperatorOptions, Reclaim, State};
use bigfleet_wire::v1alpha1::{
    MachineState, NodeStateUpdate, ReclaimInstruction, shard_message::Payload as Down,
};

use crate::fake_shard::{FakeShard, PATIENCE, node};

const LONG: Duration = Duration::from_secs(3_600);

async fn operator(shard: &FakeShard, reclaim: Reclaim) -> Operator {
    let options = OperatorOptions::new("c");
    let operator = Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    operator.on_reclaim(move |_| reclaim.clone());
    operator
}

fn instruction(id: &str, nodes: &[&str], grace_period_seconds: i64) -> Down {
    Down::ReclaimInstruction(ReclaimInstruction {
        instruction_id: id.to_owned(),
        nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
        grace_period_seconds,
        preemptor_priority: 0,
    })
}

async fn acks(shard: &FakeShard, count: usize) -> Vec<(usize, i32, i32, bool)> {
    shard.until(|heard| heard.reclaim_acks().len() >= count).await;
    shard.heard().reclaim_acks()
}

/// Waits until the operator has taken in everything sent so far.
async fn in_step(operator: &Operator) {
    let known = operator.read(|state| state.hellos);
    operator.say_hello().unwrap();
    operator.wait_for("in step", |state| state.hellos > known, PATIENCE).await.unwrap();
}

#[tokio::test]
async fn cordons_acks_drains_and_acks_again() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::Drain(Duration::ZERO)).await;
    shard.machine("a", MachineState::Configured).await;
    shard.machine("b", MachineState::Configured).await;
    shard.send(instruction("i", &["a", "b"], 600)).await;
    assert_eq!(acks(&shard, 2).await, [(1, 2, 0, false), (1, 2, 2, true)]);
    operator.read(|state| {
        assert!(!state.picture.schedulable("a") && !state.picture.schedulable("b"));
        assert_eq!(state.picture.cordons["a"].instruction, "i");
    });
    assert!(!operator.finish_reclaim("i"), "it is over");
}

#[tokio::test]
async fn a_drain_past_its_grace_ends_with_it_and_drained_nothing() {
    let shard = FakeShard::start().await;
    let _operator = operator(&shard, Reclaim::Drain(LONG)).await;
    shard.send(instruction("i", &["a"], 1)).await;
    assert_eq!(acks(&shard, 2).await, [(1, 1, 0, false), (1, 1, 0, true)]);
}

#[tokio::test]
async fn the_final_ack_waits_for_the_script() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::NoFinal).await;
    shard.send(instruction("i", &["a"], 600)).await;
    assert_eq!(acks(&shard, 1).await, [(1, 1, 0, false)]);
    in_step(&operator).await;
    assert!(operator.finish_reclaim("i"));
    assert_eq!(acks(&shard, 2).await[1], (1, 1, 1, true));
}

#[tokio::test]
async fn silence_nothing_to_do_and_a_late_ack() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::Silent).await;
    operator.on_reclaim(|instruction| match instruction.instruction_id.as_str() {
        "late" => Reclaim::LateFirstAck {
            after: Duration::from_millis(50),
            drain: Duration::from_millis(1),
        },
        "nothing" => Reclaim::NothingToDo,
        _ => Reclaim::Silent,
    });
    shard.send(instruction("silent", &["a"], 600)).await;
    shard.send(instruction("late", &["b"], 600)).await;
    shard.send(instruction("nothing", &["c", "d"], 600)).await;
    in_step(&operator).await;
    operator.read(|state| assert!(!state.picture.cordons.contains_key("a")));
    let heard = acks(&shard, 3).await;
    assert_eq!(heard, [(1, 0, 0, false), (1, 1, 0, false), (1, 1, 1, true)]);
}

#[tokio::test]
async fn without_the_feature_there_is_no_final_ack() {
    let shard = FakeShard::start().await;
    let options = OperatorOptions::new("c").features(&[]);
    let operator = Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    for id in ["1", "2", "3"] {
        shard.send(instruction(id, &["a"], 600)).await;
    }
    in_step(&operator).await;
    assert_eq!(acks(&shard, 3).await, [(1, 1, 0, false); 3]);
}

#[tokio::test]
async fn a_final_ack_is_said_again_on_each_session_while_the_node_is_marked() {
    let shard = FakeShard::start().await;
    let mut operator = operator(&shard, Reclaim::NoFinal).await;
    shard.machine("a", MachineState::Configured).await;
    shard.send(instruction("i", &["a"], 600)).await;
    acks(&shard, 1).await;
    operator.abort().await;
    assert!(operator.finish_reclaim("i"), "a drain is not tied to its session");

    operator.reconnect().await.unwrap();
    assert_eq!(acks(&shard, 2).await[1], (2, 1, 1, true));
    operator.reconnect().await.unwrap();
    assert_eq!(acks(&shard, 3).await[2], (3, 1, 1, true));
    let gone = NodeStateUpdate { gone: true, ..node("a", MachineState::Idle) };
    shard.send(Down::NodeStateUpdate(gone)).await;
    let left = |state: &State| state.drains.is_empty() && state.picture.cordons.is_empty();
    operator.wait_for("the mark to go", left, PATIENCE).await.unwrap();
    operator.reconnect().await.unwrap();
    in_step(&operator).await;
    assert_eq!(shard.heard().reclaim_acks().len(), 3);
}

#[tokio::test]
async fn a_drain_stops_with_the_binding_it_belongs_to() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::NoFinal).await;
    shard.machine("a", MachineState::Configured).await;
    shard.machine("b", MachineState::Configured).await;
    shard.send(instruction("i", &["a", "b"], 600)).await;
    acks(&shard, 1).await;
    shard.machine("a", MachineState::Configuring).await;
    let rebound = |state: &State| state.drains["i"].nodes.len() == 1;
    operator.wait_for("the new binding", rebound, PATIENCE).await.unwrap();
    assert!(operator.finish_reclaim("i"));
    assert_eq!(acks(&shard, 2).await[1], (1, 2, 1, true));
}

/// A CONFIGURED frame lifts a cordon only with proof that the reclaim is over.
#[tokio::test]
async fn uncordons_by_the_ended_instruction_and_not_before() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::Drain(Duration::ZERO)).await;
    shard.machine("a", MachineState::Configured).await;
    shard.send(instruction("i", &["a"], 600)).await;
    acks(&shard, 2).await;
    shard.machine("a", MachineState::Configured).await;
    in_step(&operator).await;
    operator.read(|state| assert!(!state.picture.schedulable("a"), "instructions overtake frames"));
    let ended = |id: &str| {
        Down::NodeStateUpdate(NodeStateUpdate {
            ended_instruction_id: id.to_owned(),
            ..node("a", MachineState::Configured)
        })
    };
    shard.send(ended("another")).await;
    in_step(&operator).await;
    operator.read(|state| assert!(!state.picture.schedulable("a")));
    shard.send(ended("i")).await;
    operator.wait_for("uncordon", |state| state.picture.schedulable("a"), PATIENCE).await.unwrap();
    assert!(operator.read(|state| state.drains.is_empty()));
}

#[tokio::test]
async fn uncordons_what_has_been_seen_to_leave_and_what_an_earlier_session_asked_for() {
    let shard = FakeShard::start().await;
    let mut operator = operator(&shard, Reclaim::Drain(Duration::ZERO)).await;
    shard.machine("a", MachineState::Configured).await;
    shard.machine("b", MachineState::Configured).await;
    shard.send(instruction("i", &["a"], 600)).await;
    shard.send(instruction("j", &["b"], 600)).await;
    acks(&shard, 4).await;
    shard.machine("a", MachineState::Draining).await;
    shard.machine("a", MachineState::Configured).await;
    operator.wait_for("uncordon", |state| state.picture.schedulable("a"), PATIENCE).await.unwrap();
    operator.reconnect().await.unwrap();
    operator.read(|state| assert!(!state.picture.schedulable("b")));
    shard.machine("b", MachineState::Configured).await;
    operator.wait_for("uncordon", |state| state.picture.schedulable("b"), PATIENCE).await.unwrap();
}

#[tokio::test]
async fn no_cordon_is_lifted_under_a_running_drain() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::NoFinal).await;
    shard.machine("a", MachineState::Configured).await;
    shard.send(instruction("i", &["a"], 600)).await;
    acks(&shard, 1).await;
    shard.machine("a", MachineState::Draining).await;
    shard.machine("a", MachineState::Configured).await;
    in_step(&operator).await;
    operator.read(|state| assert!(!state.picture.schedulable("a")));
    assert!(operator.finish_reclaim("i"));
    assert!(operator.read(|state| state.picture.schedulable("a")), "tested at a drain's end");
}

/// A shard that restarted knows only the second.
#[tokio::test]
async fn each_of_two_instructions_for_a_node_is_acked_to_its_end() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard, Reclaim::NoFinal).await;
    shard.machine("a", MachineState::Configured).await;
    shard.send(instruction("i", &["a"], 600)).await;
    shard.send(instruction("j", &["a"], 600)).await;
    shard.machine("a", MachineState::Draining).await;
    in_step(&operator).await;
    assert!(operator.finish_reclaim("i") && operator.finish_reclaim("j"));
    let heard = acks(&shard, 4).await;
    assert_eq!(heard, [(1, 1, 0, false), (1, 1, 0, false), (1, 1, 1, true), (1, 1, 1, true)]);
}
