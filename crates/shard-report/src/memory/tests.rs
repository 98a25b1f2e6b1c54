//! Every rule of §14's instructions, and what is remembered of reports.

use bigfleet_wire::v1alpha1::{
    AssignDomain, CrossShardDrain, ReassignSpeculative, TransferOwnership, UnassignDomain,
    coordinator_instruction::Payload,
};

use super::*;
use crate::REMEMBERED;

fn assign(value: &str) -> Payload {
    Payload::AssignDomain(AssignDomain {
        topology_key: "zone".into(),
        topology_value: value.into(),
    })
}

fn unassign(value: &str) -> Payload {
    let (topology_key, topology_value) = ("zone".into(), value.into());
    Payload::UnassignDomain(UnassignDomain { topology_key, topology_value })
}

fn instruct(
    id: &str,
    term: i64,
    sequence: i64,
    payload: Option<Payload>,
) -> CoordinatorInstruction {
    CoordinatorInstruction {
        coordinator_term: term,
        sequence_number: sequence,
        instruction_id: id.into(),
        payload,
    }
}

fn answer(term: i64, instructions: Vec<CoordinatorInstruction>) -> ReportAck {
    ReportAck { coordinator_term: term, acknowledged: true, instructions, ..ReportAck::default() }
}

/// A memory, and what it made of the shard.
struct Obedient {
    memory: Memory,
    orders: Vec<Order>,
}

impl Obedient {
    fn new() -> Self {
        Self { memory: Memory::new(1), orders: Vec::new() }
    }

    /// One report and its answer; what the report carried.
    fn exchange(&mut self, answer: ReportAck) -> (Carried, Result<Obeyed, Ignored>) {
        let carried = self.memory.begin();
        let orders = &mut self.orders;
        let obeyed = self.memory.receive(answer, |order| orders.push(order));
        (carried, obeyed)
    }

    fn obey(&mut self, term: i64, instructions: Vec<CoordinatorInstruction>) {
        self.exchange(answer(term, instructions)).1.unwrap();
    }

    /// Acks that the next report carries.
    fn acks(&self) -> Vec<(&str, Outcome, &str)> {
        let acks = self.memory.acks.iter();
        acks.map(|ack| (ack.instruction_id.as_str(), ack.outcome(), ack.reason.as_str())).collect()
    }
}

#[test]
fn every_rule_of_an_instruction_in_its_order() {
    let mut shard = Obedient::new();
    shard.obey(
        7,
        vec![
            instruct("", 7, 1, Some(assign("ignored"))),
            instruct("a", 7, 2, Some(assign("a"))),
            instruct("stale", 6, 3, Some(assign("stale"))),
            instruct("unknown", 7, 4, None),
            instruct("bad", 7, 5, Some(assign(""))),
            instruct("r", 7, 6, Some(Payload::ReassignSpeculative(ReassignSpeculative::default()))),
            instruct("d", 7, 7, Some(Payload::CrossShardDrain(CrossShardDrain::default()))),
            instruct("t", 7, 8, Some(Payload::TransferOwnership(TransferOwnership::default()))),
            instruct("u", 7, 9, Some(unassign("a"))),
        ],
    );
    assert_eq!(
        shard.acks(),
        [
            ("a", Outcome::Accepted, ""),
            ("stale", Outcome::RejectedStale, "term 6 is below 7"),
            (
                "unknown",
                Outcome::RejectedInvalid,
                "unknown payload; this shard is older than its coordinator"
            ),
            ("bad", Outcome::Failed, "topology_value has 0 bytes; send 1 to 63"),
            ("r", Outcome::RejectedInvalid, "unsupported"),
            ("d", Outcome::RejectedInvalid, "unsupported"),
            ("t", Outcome::RejectedInvalid, "unsupported"),
            ("u", Outcome::Accepted, ""),
        ]
    );
    assert_eq!(shard.orders.len(), 2);
    // Done wins over stale, and what was not done is judged again.
    shard.obey(
        8,
        vec![
            instruct("a", 7, 1, Some(assign("a"))),
            instruct("stale", 8, 2, Some(assign("b"))),
            instruct("bad", 8, 3, Some(assign("c"))),
        ],
    );
    assert_eq!(
        shard.acks(),
        [
            ("a", Outcome::Accepted, "duplicate-redelivery"),
            ("stale", Outcome::Accepted, ""),
            ("bad", Outcome::Accepted, ""),
        ]
    );
    assert_eq!(shard.orders.len(), 4);
}

#[test]
fn sequence_orders_a_batch_and_fences_nothing() {
    let mut shard = Obedient::new();
    shard.obey(
        1,
        vec![instruct("2", 1, 20, Some(unassign("z"))), instruct("1", 1, 10, Some(assign("z")))],
    );
    assert!(matches!(shard.orders[..], [Order::Assign(_), Order::Unassign(_)]));
    shard.obey(1, vec![instruct("3", 1, 5, Some(assign("z")))]);
    assert_eq!(shard.orders.len(), 3);
}

#[test]
fn equal_terms_pass_lower_ones_drop_the_batch() {
    let mut shard = Obedient::new();
    shard.obey(5, vec![instruct("a", 5, 1, Some(assign("a")))]);
    shard.obey(5, vec![instruct("b", 5, 2, Some(assign("b")))]);
    let old = answer(4, vec![instruct("c", 9, 3, Some(assign("c")))]);
    let (carried, obeyed) = shard.exchange(old);
    assert_eq!(obeyed, Err(OldLeader { theirs: 4, mark: 5 }.into()));
    assert_eq!(shard.orders.len(), 2);
    assert_eq!(carried.observed_term, 5);
    assert_eq!(shard.acks(), [("b", Outcome::Accepted, "")], "given to an old leader, kept");
}

/// Of two leaders in one batch the newer counts, and from then on.
#[test]
fn a_higher_term_raises_the_mark_wherever_it_stands() {
    let mut shard = Obedient::new();
    shard.obey(
        5,
        vec![
            instruct("new", 6, 1, Some(assign("new"))),
            instruct("old", 5, 2, Some(assign("old"))),
        ],
    );
    let stale = ("old", Outcome::RejectedStale, "term 5 is below 6");
    assert_eq!(shard.acks(), [("new", Outcome::Accepted, ""), stale]);
    let (carried, obeyed) = shard.exchange(answer(5, vec![]));
    assert_eq!(obeyed, Err(OldLeader { theirs: 5, mark: 6 }.into()));
    assert_eq!(carried.observed_term, 6);
}

#[test]
fn acks_stay_until_a_report_that_carried_them_is_acknowledged() {
    let mut shard = Obedient::new();
    shard.obey(1, vec![instruct("a", 1, 1, Some(assign("a")))]);
    for _ in 0..3 {
        // No answer, or one that acknowledges nothing.
        assert_eq!(shard.memory.begin().acks.len(), 1);
        let nothing = ReportAck { acknowledged: false, ..answer(1, vec![]) };
        assert_eq!(shard.exchange(nothing).0.acks.len(), 1);
    }
    assert_eq!(shard.exchange(answer(1, vec![])).0.acks.len(), 1);
    assert!(shard.memory.begin().acks.is_empty());
}

#[test]
fn one_ack_an_id_however_often_it_is_redelivered() {
    let mut shard = Obedient::new();
    let batch = || vec![instruct("a", 1, 1, Some(assign("a")))];
    for _ in 0..5 {
        let unheard = ReportAck { acknowledged: false, ..answer(1, batch()) };
        shard.exchange(unheard).1.unwrap();
    }
    assert_eq!(shard.acks(), [("a", Outcome::Accepted, "duplicate-redelivery")]);
    assert_eq!(shard.orders.len(), 1);
}

#[test]
fn the_last_4096_are_remembered() {
    let mut shard = Obedient::new();
    let name = |at: usize| format!("i{at}");
    let batch = |range: std::ops::Range<usize>| {
        range.map(|at| instruct(&name(at), 1, at as i64, Some(assign("z")))).collect::<Vec<_>>()
    };
    shard.obey(1, batch(0..REMEMBERED));
    shard.obey(1, batch(0..REMEMBERED));
    assert_eq!(shard.orders.len(), REMEMBERED, "all are known");
    shard.obey(1, batch(REMEMBERED..REMEMBERED + 1));
    shard.obey(1, batch(0..1));
    assert_eq!(shard.orders.len(), REMEMBERED + 2, "the oldest is not");
}

#[test]
fn answers_of_another_fleet_or_an_older_generation_change_nothing() {
    let mut shard = Obedient::new();
    let of = |fleet_id: &str, term| ReportAck {
        fleet_id: fleet_id.into(),
        want_cluster_ids: true,
        ..answer(term, vec![instruct(fleet_id, term, 1, Some(assign("z")))])
    };
    shard.exchange(of("u.00000001", 1)).1.unwrap();
    for foreign in ["v.00000009", "u.00000000", "nonsense"] {
        let before = format!("{:?}", shard.memory);
        let ignored = shard.memory.receive(of(foreign, 9), |_| panic!("obeyed"));
        assert!(matches!(ignored, Err(Ignored::Fleet(_))), "{foreign}");
        assert_eq!(format!("{:?}", shard.memory), before, "{foreign}");
    }
    assert_eq!(shard.memory.begin().fleet_id, "u.00000001");
    shard.exchange(of("u.00000002", 2)).1.unwrap();
    shard.exchange(answer(2, vec![])).1.unwrap();
    assert_eq!(shard.memory.begin().fleet_id, "u.00000002", "adopted, and kept without one");
}

#[test]
fn clusters_are_sent_until_a_report_with_them_is_acknowledged() {
    let mut shard = Obedient::new();
    let wanted = ReportAck { want_cluster_ids: true, ..answer(1, vec![]) };
    assert!(!shard.exchange(wanted.clone()).0.clusters);
    let unheard = ReportAck { acknowledged: false, ..answer(1, vec![]) };
    assert!(shard.exchange(unheard).0.clusters);
    assert!(shard.exchange(wanted).0.clusters);
    assert!(shard.exchange(answer(1, vec![])).0.clusters, "asked again");
    assert!(!shard.memory.begin().clusters);
}

#[test]
fn reports_are_numbered_from_one() {
    let mut memory = Memory::new(1);
    assert_eq!([1, 2, 3].map(|_| memory.begin().cycle), [1, 2, 3]);
}

#[test]
fn the_coordinators_pace_is_passed_on() {
    let mut shard = Obedient::new();
    let soon = ReportAck { next_report_after_ms: 1_000, ..answer(3, vec![]) };
    let next_report_after = Some(Duration::from_secs(1));
    let obeyed = shard.exchange(soon).1.unwrap();
    assert_eq!((obeyed.term, obeyed.attempt), (3, Attempt::Answered));
    assert_eq!(obeyed.next_report_after, next_report_after);
    assert_eq!(shard.exchange(answer(3, vec![])).1.unwrap().next_report_after, None);
}
