//! What a shard does with what comes back, over the wire.

use bigfleet_scripted::coordinator::Answer;
use bigfleet_wire::v1alpha1::{
    CrossShardDrain, InstructAck, ReassignSpeculative, ReportAck, ShardReport, TransferOwnership,
    UnassignDomain, coordinator_instruction::Payload, instruct_ack::Outcome,
};
use tonic::Code;

use crate::rig::{
    FLEET, PATIENCE, Rig, ack_of, answer, assign, coordinator, instruct, next, reported,
};

/// The ack of an instruction, whenever it comes.
async fn ack(coordinator: &bigfleet_scripted::coordinator::Coordinator, id: &str) -> InstructAck {
    let acked = |reports: &[ShardReport]| reports.iter().any(|report| ack_of(report, id).is_some());
    coordinator.wait_for("an ack", acked, PATIENCE).await.expect("acked");
    coordinator.reports().iter().find_map(|report| ack_of(report, id)).expect("found")
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_instruction_has_its_answer() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    coordinator.set_term(4);
    let gone = UnassignDomain { topology_key: "zone".to_owned(), topology_value: "z1".to_owned() };
    let rows = [
        (assign("a1", 4, "z1"), Outcome::Accepted, ""),
        (assign("a2", 4, "z1"), Outcome::Accepted, ""),
        (assign("a3", 4, "z2"), Outcome::Accepted, ""),
        (instruct("u1", 4, Some(Payload::UnassignDomain(gone.clone()))), Outcome::Accepted, ""),
        (instruct("u2", 4, Some(Payload::UnassignDomain(gone))), Outcome::Accepted, ""),
        (assign("stale", 3, "z3"), Outcome::RejectedStale, "term 3 is below 4"),
        (
            instruct("r", 4, Some(Payload::ReassignSpeculative(ReassignSpeculative::default()))),
            Outcome::RejectedInvalid,
            "unsupported",
        ),
        (
            instruct("d", 4, Some(Payload::CrossShardDrain(CrossShardDrain::default()))),
            Outcome::RejectedInvalid,
            "unsupported",
        ),
        (
            instruct("t", 4, Some(Payload::TransferOwnership(TransferOwnership::default()))),
            Outcome::RejectedInvalid,
            "unsupported",
        ),
        (
            instruct("none", 4, None),
            Outcome::RejectedInvalid,
            "unknown payload; this shard is older than its coordinator",
        ),
    ];
    for (sequence, (instruction, ..)) in (1..).zip(&rows) {
        let mut instruction = instruction.clone();
        instruction.sequence_number = sequence;
        coordinator.instruct(instruction);
    }
    let client = rig.report_to(&[coordinator.addr()]);
    for (instruction, outcome, reason) in &rows {
        let ack = ack(&coordinator, &instruction.instruction_id).await;
        let got = (ack.outcome(), ack.reason.as_str());
        assert_eq!(got, (*outcome, *reason), "{instruction:?}");
    }
    assert_eq!(rig.domains(), ["z2"]);
    assert!(coordinator.pending().is_empty());
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_instruction_without_id_is_ignored_and_a_failed_one_comes_again() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    coordinator.instruct(assign("", 1, "nobody"));
    coordinator.instruct(assign("bad", 1, ""));
    let client = rig.report_to(&[coordinator.addr()]);
    let reports = reported(&coordinator, 4).await;
    for report in &reports[1..4] {
        assert_eq!(report.instruction_acks.len(), 1, "{report:?}");
        assert_eq!(ack_of(report, "bad").expect("answered").outcome(), Outcome::Failed);
    }
    assert!(rig.domains().is_empty());
    client.stop().await;
    rig.stop().await;
}

/// The ack is lost with its report; the coordinator delivers again.
#[tokio::test(start_paused = true)]
async fn coordinator_inv_i3_no_instruction_takes_effect_twice() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let again = || Answer::Ack(Box::new(answer(1, vec![assign("a", 1, "z")])));
    coordinator.next(again());
    coordinator.next(Answer::Refuse(Code::Unavailable, "the ack is lost".to_owned()));
    coordinator.next(again());
    let client = rig.report_to(&[coordinator.addr()]);
    reported(&coordinator, 1).await;
    next(&coordinator).await;
    rig.side.unassign_domain(&rig.side.domains().into_iter().next().expect("assigned"));
    let reports = reported(&coordinator, 5).await;
    let reason = |at: usize| ack_of(&reports[at], "a").map(|ack| (ack.outcome(), ack.reason));
    let accepted = |reason: &str| Some((Outcome::Accepted, reason.to_owned()));
    assert_eq!(reason(0), None);
    assert_eq!(reason(1), accepted(""));
    assert_eq!(reason(2), accepted(""), "put back");
    assert_eq!(reason(3), accepted("duplicate-redelivery"));
    assert_eq!(reason(4), None);
    assert!(rig.domains().is_empty(), "once is enough");
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_leaders_batch_is_dropped_whole_and_unacked() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    coordinator.next(Answer::Ack(Box::new(answer(7, vec![]))));
    let old = ReportAck { next_report_after_ms: 1, ..answer(6, vec![assign("a", 7, "old")]) };
    coordinator.next(Answer::Ack(Box::new(old)));
    coordinator.next(Answer::Ack(Box::new(answer(7, vec![]))));
    coordinator.next(Answer::Ack(Box::new(answer(8, vec![assign("b", 8, "new")]))));
    coordinator.set_term(8);
    let client = rig.report_to(&[coordinator.addr()]);
    let reports = reported(&coordinator, 5).await;
    let terms: Vec<i64> = reports.iter().map(|report| report.observed_term).collect();
    assert_eq!(terms[..5], [0, 7, 7, 7, 8]);
    assert!(reports.iter().all(|report| ack_of(report, "a").is_none()));
    assert!(ack_of(&reports[4], "b").is_some());
    assert_eq!(rig.domains(), ["new"]);
    assert_eq!((rig.side.coordinator_term(), rig.outcomes("error")), (8, 1));
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_fleet_and_an_older_generation_are_not_obeyed() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let from = |fleet: &str, zone: &str| {
        let fleet_id = fleet.to_owned();
        let ack = ReportAck { fleet_id, ..answer(9, vec![assign(zone, 9, zone)]) };
        Answer::Ack(Box::new(ack))
    };
    coordinator.next(from("6f2c.00000001", "ours"));
    coordinator.next(from(FLEET, "older"));
    coordinator.next(from("ffff.00000009", "foreign"));
    coordinator.next(from("6f2c.00000002", "restored"));
    coordinator.set_fleet("6f2c.00000002");
    coordinator.set_term(9);
    let client = rig.report_to(&[coordinator.addr()]);
    let reports = reported(&coordinator, 5).await;
    let fleets: Vec<&str> = reports.iter().map(|report| report.fleet_id.as_str()).collect();
    let (one, two) = ("6f2c.00000001", "6f2c.00000002");
    assert_eq!(fleets[..5], ["", one, one, one, two]);
    assert_eq!(rig.domains(), ["ours", "restored"]);
    assert_eq!(rig.outcomes("error"), 2);
    client.stop().await;
    rig.stop().await;
}

/// With its own provider scope a shard is fenced by its provider alone: no
/// coordinator can stop it.
#[tokio::test(start_paused = true)]
async fn a_stale_epoch_is_an_error_and_stops_nothing() {
    let rig = Rig::start().await;
    let (first, second) = (coordinator().await, coordinator().await);
    first.always(Answer::Refuse(Code::Aborted, "stale shard epoch 3, have 4".to_owned()));
    let client = rig.report_to(&[first.addr(), second.addr()]);
    reported(&first, 4).await;
    assert!(rig.readiness.is_ready());
    assert_eq!(rig.outcomes("error"), 3);
    assert!(second.reports().is_empty(), "every leader would say so");
    client.stop().await;
    rig.stop().await;
}
