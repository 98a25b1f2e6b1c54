//! A cluster and its operator against a shard that hands machines out and takes
//! them back.

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    member::{Member, Standing},
    operator::{Operator, OperatorOptions, Reclaim},
};
use bigfleet_wire::v1alpha1::{
    MachineState, NodeStateUpdate, ReclaimInstruction, operator_message::Payload as Up,
    shard_message::Payload as Down,
};

use crate::fake_shard::{FakeShard, PATIENCE, node};

/// What a step of the loop is: live, then ask.
fn step(cluster: &mut Cluster, operator: &Operator) {
    let now = operator.next_timestamp();
    let roll_up = operator.read(|state| cluster.step(now, &state.picture));
    operator.send_roll_up(roll_up).unwrap();
}

async fn until_met(cluster: &mut Cluster, operator: &Operator) {
    loop {
        step(cluster, operator);
        if operator.read(|state| cluster.demand_met(&state.picture)) {
            return;
        }
        operator.next_frame(PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn demand_is_met_lost_and_met_again_over_sessions() {
    let shard = FakeShard::start().await;
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&Shape::new(2_000, 4 << 30), 4);
    let options = OperatorOptions::new("c");
    let mut operator =
        Operator::connect(&shard.addr, &Security::Plaintext, options.clone()).await.unwrap();
    operator.on_reclaim(|_| Reclaim::Drain(Duration::ZERO));

    step(&mut cluster, &operator);
    let wanted = shard
        .find(|frame| match frame {
            Up::Rollup(roll_up) => Some(roll_up.needs.clone()),
            _ => None,
        })
        .await;
    assert_eq!(wanted[0].aggregate_resources["cpu"], "8");
    shard.machine("a", MachineState::Configured).await;
    shard.machine("b", MachineState::Configured).await;
    until_met(&mut cluster, &operator).await;
    assert_eq!(cluster.evictions(), 0);

    // The machine goes only when its drain is said to be over.
    shard
        .send(Down::ReclaimInstruction(ReclaimInstruction {
            instruction_id: "i".to_owned(),
            nodes: vec!["a".to_owned()],
            grace_period_seconds: 600,
            ..Default::default()
        }))
        .await;
    shard.until(|heard| heard.reclaim_acks().iter().any(|(.., finished)| *finished)).await;
    step(&mut cluster, &operator);
    assert_eq!((cluster.evictions(), cluster.waiting()), (2, 2));
    shard
        .send(Down::NodeStateUpdate(NodeStateUpdate {
            gone: true,
            ..node("a", MachineState::Idle)
        }))
        .await;

    // The operator is replaced by one that knows nothing; the pods are still there.
    operator.abort().await;
    operator = Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    shard.machine("b", MachineState::Configured).await;
    shard.machine("d", MachineState::Configured).await;
    shard.ack("resync").await;
    operator.wait_for("resync", |state| state.picture.resynced, PATIENCE).await.unwrap();
    until_met(&mut cluster, &operator).await;
    assert_eq!((cluster.evictions(), cluster.live()), (2, 4));
    assert_eq!(cluster.roll_up().needs, wanted);
}

#[tokio::test]
async fn a_member_comes_back_by_itself_with_the_pods_it_had() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&Shape::new(2_000, 4 << 30), 2);
    let shard = FakeShard::start().await;
    let operator = Operator::new("127.0.0.1:1", &Security::Plaintext, OperatorOptions::new("c"));
    let member = Member::start(operator, cluster, Duration::from_millis(5));
    // Nobody is there; it lives all the same.
    member.wait_for("steps", |now| now.steps > 2, PATIENCE).await.unwrap();
    assert!(!member.standing().connected);

    member.operator().await.set_addr(&shard.addr);
    member.wait_for("a session", |now| now.connected, PATIENCE).await.unwrap();
    shard.machine("a", MachineState::Configured).await;
    member.wait_for("met demand", |now| now.demand_met, PATIENCE).await.unwrap();

    shard.end_with(tonic::Status::unavailable("stopping")).await;
    let again = |now: &Standing| now.sessions == 2 && now.connected && now.demand_met;
    member.wait_for("a second session", again, PATIENCE).await.unwrap();
    assert_eq!(member.standing().evictions, 0, "no replay is no eviction");

    member.cluster().scale(0, 4);
    member.wait_for("more demand", |now| now.waiting == 2, PATIENCE).await.unwrap();
    let never = member.wait_for("a miracle", |now| now.live == 0, Duration::from_millis(20)).await;
    assert!(never.unwrap_err().to_string().contains("waiting: 2"));
    let cluster = member.stop();
    assert_eq!((cluster.live(), cluster.waiting()), (4, 2));
    shard.until(|heard| heard.ends.len() == 2).await;
}
