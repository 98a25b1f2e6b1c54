//! The loop beside the RPCs: passes, what they begin, and what can be seen of it.

use bigfleet_coordinator::{rebalance::Settings, service::Rebalancing, state::Command};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use crate::{
    rig::{Client, Rig, assign, report},
    single::hint,
};

fn cores(count: u32) -> Option<wire::Resources> {
    Some(wire::Resources { resources: [("cpu".to_owned(), count.to_string())].into() })
}

/// A shared-scope shard with idle machines of 4 cores that lacks cores.
fn shared(id: &str, cycle: i64, fleet: &str, idle: i32, lacks: u32) -> wire::ShardReport {
    let pool = wire::PoolRow {
        instance_type: "m".into(),
        zone: "a".into(),
        idle,
        allocatable: cores(4),
        ..wire::PoolRow::default()
    };
    let lacking = wire::Shortfall { deficit: cores(lacks), age_cycles: 6, ..Default::default() };
    wire::ShardReport {
        assignment_digest: 1,
        fleet_id: fleet.into(),
        summary: Some(wire::ShardSummary {
            provider_address: "p:9000".into(),
            pools: vec![pool],
            ..wire::ShardSummary::default()
        }),
        shortfalls: if lacks > 0 { vec![lacking] } else { Vec::new() },
        ..report(id, cycle)
    }
}

async fn tell(client: &mut Client, report: wire::ShardReport) -> wire::ReportAck {
    client.report_shard(report).await.expect("it is taken").into_inner()
}

/// Shard `r` lacks what `a` has, and the leader has just seen it.
async fn a_transfer(rig: &Rig) -> (Client, Rebalancing, String) {
    let mut client = rig.client().await;
    let mut rebalancing = Rebalancing::new(Settings::default());
    let fleet = tell(&mut client, shared("a", 1, "", 20, 0)).await.fleet_id;
    tell(&mut client, shared("r", 1, &fleet, 0, 8)).await;
    client.assign_domain(assign("1", "a")).await.unwrap();
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    (client, rebalancing, fleet)
}

#[tokio::test]
async fn a_donor_that_has_nothing_is_counted_apart() {
    let rig = Rig::plaintext().await;
    let (mut client, mut rebalancing, fleet) = a_transfer(&rig).await;
    let ack = tell(&mut client, shared("a", 2, &fleet, 20, 0)).await;
    let mut refuses = shared("a", 3, &fleet, 20, 0);
    refuses.instruction_acks = vec![wire::InstructAck {
        instruction_id: ack.instructions[0].instruction_id.clone(),
        outcome: wire::instruct_ack::Outcome::RejectedInvalid.into(),
        reason: "no quiet machine".into(),
        ..wire::InstructAck::default()
    }];
    tell(&mut client, refuses).await;
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    let moves = rig.series("rebalance_moves_total");
    assert!(moves.iter().any(|one| one.contains("outcome=\"refused\"")), "{moves:?}");
    assert!(!moves.iter().any(|one| one.contains("outcome=\"given_up\"")), "{moves:?}");
}

#[tokio::test]
async fn a_shortfall_becomes_a_transfer_that_can_be_seen() {
    let rig = Rig::plaintext().await;
    let (mut client, mut rebalancing, fleet) = a_transfer(&rig).await;

    let ack = tell(&mut client, shared("a", 2, &fleet, 20, 0)).await;
    let [instruction] = &ack.instructions[..] else { panic!("one transfer: {ack:?}") };
    let Some(Payload::TransferOwnership(order)) = &instruction.payload else {
        panic!("idle machines: {instruction:?}");
    };
    assert_eq!(order.selector.as_ref().unwrap().count, 2);
    assert_eq!((&*order.from_shard_id, &*order.to_shard_id), ("a", "r"));
    let id = order.transfer_id.clone();
    assert_eq!(ack.assignment.unwrap().open_transfers.concat(), id);
    let listed = client.list_transfers(wire::ListTransfersRequest {}).await.unwrap().into_inner();
    let [transfer] = &listed.transfers[..] else { panic!("{listed:?}") };
    assert_eq!((&*transfer.kind, &*transfer.phase), ("idle", "releasing"));
    assert_eq!((&transfer.transfer_id, transfer.overdue_ms), (&id, 0));

    let mut gives = shared("a", 3, &fleet, 18, 0);
    gives.instruction_acks = vec![wire::InstructAck {
        instruction_id: id.clone(),
        outcome: wire::instruct_ack::Outcome::Accepted.into(),
        machine_ids: vec!["m-1".into(), "m-2".into()],
        home_domain: Some(wire::DomainAssignment {
            topology_key: "zone".into(),
            topology_value: "1".into(),
            shard_id: "a".into(),
        }),
        ..wire::InstructAck::default()
    }];
    tell(&mut client, gives).await;
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    let received = tell(&mut client, shared("r", 2, &fleet, 0, 0)).await.assignment.unwrap();
    assert_eq!(received.machines_in.len(), 2);
    let listed = client.list_transfers(wire::ListTransfersRequest {}).await.unwrap().into_inner();
    let transfer = &listed.transfers[0];
    assert_eq!((&*transfer.phase, transfer.machine_ids.len()), ("moved", 2));
    assert_eq!(transfer.home.as_ref().unwrap().shard_id, "a");

    let mut settles = shared("r", 3, &fleet, 0, 0);
    settles.settled = received.machines_in;
    tell(&mut client, settles).await;
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    let moves = rig.series("rebalance_moves_total");
    for outcome in ["begun", "moved", "settled"] {
        let line = |line: &&String| line.contains(outcome) && line.contains("tier=\"1\"");
        let found = moves.iter().find(line);
        assert!(found.is_some_and(|line| line.ends_with(" 1")), "{outcome}: {moves:?}");
    }
    assert_eq!(
        rig.series("rebalance_duration_seconds_count"),
        ["rebalance_duration_seconds_count 1"]
    );
    rig.stop().await;
}

#[tokio::test]
async fn only_a_leader_that_has_heard_enough_rebalances() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    let fleet = tell(&mut client, shared("a", 1, "", 20, 0)).await.fleet_id;
    tell(&mut client, shared("r", 1, &fleet, 0, 8)).await;
    for id in ["x", "y"] {
        let (address, registered_at, epoch, instance) = (String::new(), 1, 1, 1);
        let id = id.into();
        let shared = false;
        let add = Command::AddShard { id, address, registered_at, epoch, instance, shared };
        rig.replica.apply(&add).unwrap();
    }
    let mut rebalancing = Rebalancing::new(Settings::default());
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    let waits = "rebalance_skipped_total{reason=\"waiting\"} 1";
    assert_eq!(rig.series("rebalance_skipped"), [waits], "two of four were heard");
    rig.replica.follow(Some(hint()));
    rig.coordinator.rebalance_tick(&mut rebalancing).await.unwrap();
    assert_eq!(rig.series("rebalance_skipped"), [waits]);
    assert!(rig.series("rebalance_moves").is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn what_is_not_let_go_of_is_listed_with_its_age() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    let fleet = tell(&mut client, shared("a", 1, "", 0, 0)).await.fleet_id;
    tell(&mut client, shared("b", 1, &fleet, 0, 0)).await;
    client.assign_domain(assign("1", "a")).await.unwrap();
    let held = tell(&mut client, shared("a", 2, &fleet, 0, 0)).await.assignment.unwrap();
    let request = wire::MoveDomainRequest {
        topology_key: "zone".into(),
        topology_value: "1".into(),
        from_shard_id: "a".into(),
        to_shard_id: "b".into(),
    };
    client.move_domain(request).await.unwrap();
    rig.coordinator.tick(&rig.readiness).await;
    let listed = client.list_transfers(wire::ListTransfersRequest {}).await.unwrap().into_inner();
    let [row] = &listed.releasing[..] else { panic!("{listed:?}") };
    assert_eq!((&*row.topology_value, &*row.from_shard_id, &*row.to_shard_id), ("1", "a", "b"));
    assert_eq!(rig.series("rows_releasing"), ["rows_releasing 1"]);
    // It learns of it, stores it, and says that it let go.
    let stored = |cycle, stored: &wire::Assignment| wire::ShardReport {
        assignment_version: stored.version,
        assignment_digest: stored.digest,
        ..shared("a", cycle, &fleet, 0, 0)
    };
    let lost = tell(&mut client, stored(3, &held)).await.assignment.unwrap();
    assert!(lost.domains.is_empty());
    tell(&mut client, stored(4, &lost)).await;
    let listed = client.list_transfers(wire::ListTransfersRequest {}).await.unwrap().into_inner();
    assert!(listed.releasing.is_empty());
    let gained = tell(&mut client, shared("b", 2, &fleet, 0, 0)).await.assignment.unwrap();
    assert_eq!(gained.domains.len(), 1);
    rig.stop().await;
}
