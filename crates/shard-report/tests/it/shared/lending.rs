//! Machines on transfer: let go of, received, settled (coordinator chapter §9).

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::{
    Error,
    fake::{Method, Script},
    protocol::Kind,
};
use bigfleet_wire::v1alpha1::{
    CoordinatorInstruction, CrossShardDrain, InstructAck, PenaltyBucket, QuotaSlice,
    ReassignSpeculative, ShardReport, TransferOwnership, TransferSelector,
    coordinator_instruction::Payload, instruct_ack::Outcome,
};

use crate::{
    rig::{PATIENCE, ack_of, instruct},
    shared::rig::{Sharer, assignment, configured, loan, machines, pass, provider, until},
};

fn selector(count: i32) -> Option<TransferSelector> {
    Some(TransferSelector { count, ..TransferSelector::default() })
}

fn idle(id: &str, count: i32) -> CoordinatorInstruction {
    let payload = TransferOwnership {
        selector: selector(count),
        transfer_id: id.to_owned(),
        ..TransferOwnership::default()
    };
    instruct(id, 1, Some(Payload::TransferOwnership(payload)))
}

pub(crate) async fn acked(sharer: &Sharer, id: &str) -> InstructAck {
    let has = |reports: &[ShardReport]| reports.iter().any(|one| ack_of(one, id).is_some());
    sharer.coordinator.wait_for("an ack", has, PATIENCE).await.expect("acked");
    sharer.coordinator.reports().iter().find_map(|one| ack_of(one, id)).expect("found")
}

/// A donor lets go of idle machines of one domain and says the same every time; the
/// recipient owns them, uses one, and settles it.
#[tokio::test(start_paused = true)]
async fn idle_machines_are_lent_used_and_settled() {
    let fake = provider();
    let (donor, recipient) =
        (Sharer::start(&fake, "donor").await, Sharer::start(&fake, "recipient").await);
    let mut open = assignment(5, &["a"], &[]);
    open.open_transfers = vec!["t".to_owned()];
    donor.assign(open).await;
    recipient.assign(assignment(6, &[], &["c"])).await;
    pass(30).await;
    donor.coordinator.instruct(idle("t", 2));
    let ack = acked(&donor, "t").await;
    assert_eq!(
        (ack.outcome(), ack.machine_ids.clone()),
        (Outcome::Accepted, vec!["idle-a0".to_owned(), "idle-a1".to_owned()],)
    );
    assert_eq!(ack.home_domain.as_ref().map(|home| home.topology_value.as_str()), Some("a"));
    assert_eq!(donor.metric("bigfleet_shard_holdings{holding=\"out\"} "), 1.0);
    // Delivered again, before the coordinator has moved it.
    let reports = donor.coordinator.reports().len();
    donor.coordinator.instruct(idle("t", 2));
    let again = |all: &[ShardReport]| all[reports..].iter().any(|one| ack_of(one, "t").is_some());
    donor.coordinator.wait_for("an ack", again, PATIENCE).await.expect("acked");
    let reports = &donor.coordinator.reports()[reports..];
    let same = reports.iter().find_map(|one| ack_of(one, "t")).expect("found");
    assert_eq!(same.machine_ids, ack.machine_ids);

    let mut moved = assignment(7, &["a"], &[]);
    moved.machines_out = vec![loan("t", "idle-a0", "a"), loan("t", "idle-a1", "a")];
    let mut received = assignment(8, &[], &["c"]);
    received.machines_in = moved.machines_out.clone();
    donor.assign(moved).await;
    assert!(donor.holdings().out.is_empty(), "the Assignment says it now");
    recipient.assign(received).await;
    pass(30).await;
    let operator = recipient.operator("c").await;
    operator.roll_up(machines("c", 1)).await.expect("an answer");
    until("used", || configured(&fake, "c").len() == 1).await;
    let used = configured(&fake, "c");
    let settled = |all: &[ShardReport]| all.last().is_some_and(|one| !one.settled.is_empty());
    recipient.coordinator.wait_for("it is settled", settled, PATIENCE).await.expect("settled");
    let report = recipient.last_report().await;
    let ids: Vec<&str> = report.settled.iter().map(|one| one.machine_id.as_str()).collect();
    assert_eq!(ids, used);
    assert_eq!(recipient.metric("bigfleet_shard_holdings{holding=\"settled\"} "), 1.0);

    // Half an hour unused, the other one goes home, too.
    let both = |all: &[ShardReport]| all.last().is_some_and(|one| one.settled.len() == 2);
    let hour = std::time::Duration::from_secs(3_600);
    recipient.coordinator.wait_for("both are settled", both, hour).await.expect("settled");
    let mut over = assignment(9, &[], &["c"]);
    over.digest = 99;
    recipient.assign(over).await;
    assert!(recipient.holdings().settled.is_empty());
    assert_eq!(configured(&fake, "c"), used, "bound, it is its cluster's");
    assert!(donor.touched().iter().all(|id| !ack.machine_ids.contains(id)));
    donor.stop().await;
    recipient.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slots_are_lent_and_what_is_not_there_is_refused() {
    let fake = provider();
    let donor = Sharer::start(&fake, "donor").await;
    let mut open = assignment(5, &["b"], &[]);
    open.open_transfers = vec!["s".to_owned(), "n".to_owned(), "m".to_owned()];
    donor.assign(open).await;
    pass(30).await;
    donor.coordinator.instruct(slots("s", 3));
    let ack = acked(&donor, "s").await;
    assert_eq!(ack.machine_ids, ["slot-b0", "slot-b1", "slot-b2"]);
    let elsewhere = TransferOwnership {
        selector: Some(TransferSelector {
            count: 1,
            zone: "a".to_owned(),
            ..TransferSelector::default()
        }),
        transfer_id: "n".to_owned(),
        ..TransferOwnership::default()
    };
    donor.coordinator.instruct(instruct("n", 1, Some(Payload::TransferOwnership(elsewhere))));
    assert_eq!(acked(&donor, "n").await.outcome(), Outcome::RejectedInvalid);
    let malformed =
        TransferOwnership { transfer_id: "m".to_owned(), ..TransferOwnership::default() };
    donor.coordinator.instruct(instruct("m", 1, Some(Payload::TransferOwnership(malformed))));
    assert_eq!(acked(&donor, "m").await.outcome(), Outcome::RejectedInvalid);
    // No Assignment has named this one.
    donor.coordinator.instruct(idle("unknown", 1));
    pass(60).await;
    assert_eq!(donor.coordinator.pending().len(), 1, "asked again, unanswered");
    donor.stop().await;
}

fn slots(id: &str, count: i32) -> CoordinatorInstruction {
    let payload = ReassignSpeculative {
        selector: selector(count),
        transfer_id: id.to_owned(),
        ..ReassignSpeculative::default()
    };
    instruct(id, 1, Some(Payload::ReassignSpeculative(payload)))
}

/// Who borrows a slot creates it on the share of its home: none is lent that may not be
/// created, and one that is lent is not bought besides.
#[tokio::test(start_paused = true)]
async fn no_slot_past_the_share_is_lent() {
    let fake = provider();
    let donor = Sharer::start(&fake, "donor").await;
    // Four machines are Idle already.
    let slice = QuotaSlice { provider: "fake".into(), region: "r".into(), slice: 6 };
    let mut open = assignment(5, &["b"], &["c"]);
    open.open_transfers = vec!["s".to_owned(), "n".to_owned()];
    open.quota_slices = vec![slice.clone()];
    donor.assign(open).await;
    pass(30).await;
    let pools = donor.last_report().await.summary.unwrap_or_default().pools;
    assert_eq!(pools.iter().map(|row| row.speculative).sum::<i32>(), 2);
    donor.coordinator.instruct(slots("s", 3));
    assert_eq!(acked(&donor, "s").await.machine_ids, ["slot-b0", "slot-b1"]);
    donor.coordinator.instruct(slots("n", 1));
    assert_eq!(acked(&donor, "n").await.outcome(), Outcome::RejectedInvalid);
    let operator = donor.operator("c").await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("what is Idle", || configured(&fake, "c").len() == 4).await;
    pass(300).await;
    assert_eq!(configured(&fake, "c").len(), 4);

    // One of them has gone home unused.
    let mut home = assignment(6, &["b"], &["c"]);
    home.machines_out = vec![loan("s", "slot-b0", "b")];
    home.quota_slices = vec![slice];
    donor.assign(home).await;
    until("it may be bought again", || configured(&fake, "c").len() == 5).await;
    pass(300).await;
    assert_eq!(configured(&fake, "c").len(), 5);
    donor.stop().await;
}

/// A Configure that the provider refused, and nobody can say what came of it: the machine
/// may be back where it was, and it is not given back before that is known.
#[tokio::test(start_paused = true)]
async fn what_may_roll_back_is_not_settled() {
    let fake = provider();
    let recipient = Sharer::start(&fake, "recipient").await;
    let mut received = assignment(5, &[], &["c"]);
    received.machines_in = vec![loan("t", "idle-a0", "a")];
    recipient.assign(received).await;
    pass(30).await;
    let operator = recipient.operator("c").await;
    let refusal = Error::Internal("out of sorts".to_owned());
    fake.fail_next("idle-a0", MachineState::Configured, refusal);
    for _ in 0..4 {
        let delay = Duration::from_secs(30);
        fake.script(Script { delay, ..Script::next(Method::Get) });
    }
    fake.clear_calls();
    operator.roll_up(machines("c", 1)).await.expect("an answer");
    let configure = Method::Mutate(Kind::Configure);
    until("a refusal", || fake.calls().iter().any(|call| call.method == configure)).await;
    let reply_delay = Duration::from_secs(20);
    fake.script(Script { reply_delay, ..Script::next(Method::List) });
    pass(15).await;
    assert_eq!(fake.machine("idle-a0").expect("there").state, MachineState::Idle);
    assert!(recipient.holdings().settled.is_empty(), "it is not bound");
    until("it is used all the same", || configured(&fake, "c").len() == 1).await;
    until("and settled then", || !recipient.holdings().settled.is_empty()).await;
    recipient.stop().await;
}

/// A drain for a neighbour: told once all are idle; they are not used again meanwhile.
#[tokio::test(start_paused = true)]
async fn machines_are_drained_for_a_neighbour() {
    let fake = provider();
    let donor = Sharer::start(&fake, "donor").await;
    let mut open = assignment(5, &["a"], &["c"]);
    open.open_transfers = vec!["d".to_owned()];
    donor.assign(open).await;
    pass(30).await;
    let operator = donor.operator("c").await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("all in use", || configured(&fake, "c").len() == 8).await;
    let drain = CrossShardDrain {
        selector: selector(2),
        transfer_id: "d".to_owned(),
        preemptor_priority: 2_000_000,
        preemptor_penalty_bucket: PenaltyBucket::PenaltyBucket2048.into(),
        ..CrossShardDrain::default()
    };
    donor.coordinator.instruct(instruct("d", 1, Some(Payload::CrossShardDrain(drain))));
    until("they are chosen", || !donor.holdings().out.is_empty()).await;
    let ack = acked(&donor, "d").await;
    assert_eq!((ack.outcome(), ack.machine_ids.len()), (Outcome::Accepted, 2));
    for id in &ack.machine_ids {
        assert_eq!(fake.machine(id).expect("there").state, MachineState::Idle, "{id}");
    }
    fake.clear_calls();
    pass(600).await;
    let touched = donor.touched();
    assert!(ack.machine_ids.iter().all(|id| !touched.contains(id)), "kept from reuse");
    assert_eq!(configured(&fake, "c").len(), 6);
    donor.stop().await;
}
