use bigfleet_model::FleetId;

use super::*;
use crate::state::{Key, TransferKind, TransferPhase, TransferRequest};

fn zones(assignment: &wire::Assignment) -> Vec<&str> {
    assignment.domains.iter().map(|domain| domain.topology_value.as_str()).collect()
}

/// A leader whose shards `a`, `b`, `c` have what they are assigned.
fn leader() -> (Leader, [Option<wire::Assignment>; 3]) {
    let mut leader = Leader::new();
    for shard in ["a", "b", "c"] {
        leader.ok(&shared(shard, 1, None));
    }
    leader.commit(&assign("1", "a"));
    leader.commit(&assign("2", "b"));
    let stored = ["a", "b", "c"].map(|shard| leader.ok(&shared(shard, 2, None)).assignment);
    (leader, stored)
}

fn move_domain(value: &str, from: &str, to: &str) -> Command {
    Command::MoveDomain { domain: Domain::new("zone", value), from: from.into(), to: to.into() }
}

#[test]
fn step_7_an_assignment_is_due_by_index_or_digest() {
    let (mut leader, [stored, ..]) = leader();
    let stored = stored.unwrap();
    assert_eq!(zones(&stored), ["1"]);
    assert_eq!(u64::try_from(stored.version).unwrap(), leader.index);
    assert!(leader.ok(&shared("a", 3, Some(&stored))).assignment.is_none());
    let other = wire::Assignment { digest: 12345, ..stored.clone() };
    assert_eq!(leader.ok(&shared("a", 4, Some(&other))).assignment.unwrap().digest, stored.digest);
    let older = wire::Assignment { version: 1, ..stored.clone() };
    assert!(leader.ok(&shared("a", 5, Some(&older))).assignment.is_some());
    // A shard that has the version but not the content is told all the same.
    leader.commit(&assign("9", "c"));
    leader.commit(&assign("8", "a"));
    let claims = i64::try_from(leader.index).unwrap();
    let claims = wire::Assignment { version: claims, ..stored.clone() };
    let before = leader.ok(&shared("a", 51, Some(&claims))).assignment.unwrap();
    assert_eq!(zones(&before), ["1", "8"]);
    leader.commit(&Command::UnassignDomain { domain: Domain::new("zone", "8") });
    let claims = i64::try_from(leader.index).unwrap();
    let claims = wire::Assignment { version: claims, ..before };
    assert_eq!(zones(&leader.ok(&shared("a", 52, Some(&claims))).assignment.unwrap()), ["1"]);
    let unnamed = wire::ShardReport { fleet_id: String::new(), ..shared("a", 60, None) };
    let ack = leader.ok(&unnamed);
    assert!(ack.assignment.is_none() && ack.fleet_id == FLEET, "it must know the fleet first");
    // Of another provider: no row of quotas, until the shard says where its provider is.
    leader.commit(&Command::UpsertProvider {
        name: "p".into(),
        address: "p:9000".into(),
        region: "eu".into(),
    });
    let per_shard = [("a".into(), 3)].into();
    leader.commit(&Command::SetQuota { provider: "p".into(), region: "eu".into(), per_shard });
    let stored = leader.ok(&shared("a", 70, Some(&stored))).assignment.unwrap();
    assert!(stored.quota_slices.is_empty());
    let summary = wire::ShardSummary { provider_address: "p:9000".into(), ..Default::default() };
    let at = wire::ShardReport { summary: Some(summary), ..shared("a", 80, Some(&stored)) };
    assert_eq!(leader.ok(&at).assignment.unwrap().quota_slices[0].slice, 3);
}

/// Release precedes claim, across leader changes.
#[test]
fn step_6_a_move_waits_for_the_loser() {
    let (mut leader, [a, b, _]) = leader();
    let (a, b) = (a.unwrap(), b.unwrap());
    leader.commit(&move_domain("1", "a", "b"));
    let granted = leader.ok(&shared("b", 3, Some(&b))).assignment.unwrap();
    assert_eq!(zones(&granted), ["2"], "not while a holds it");
    // Word from before the move says nothing.
    leader.ok(&shared("a", 2, Some(&a)));
    assert!(leader.commits.is_empty());
    let lost = leader.ok(&shared("a", 3, Some(&a))).assignment.unwrap();
    assert!(zones(&lost).is_empty() && leader.commits.is_empty());
    // It stored the Assignment and is not quiet yet.
    let mut quiet = shared("a", 4, Some(&lost));
    quiet.releasing = Some(wire::Assignment { domains: a.domains, ..Default::default() });
    leader.ok(&quiet);
    assert!(leader.commits.is_empty());
    leader.elect();
    // Not of this very fleet: no evidence.
    leader.ok(&wire::ShardReport { fleet_id: String::new(), ..shared("a", 5, Some(&lost)) });
    assert!(leader.commits.is_empty());
    leader.ok(&shared("a", 6, Some(&lost)));
    assert!(matches!(&leader.commits[..], [Command::Released { keys, .. }] if keys.len() == 1));
    let granted = leader.ok(&shared("b", 4, Some(&granted))).assignment.unwrap();
    assert_eq!(zones(&granted), ["1", "2"]);
}

/// Fault matrix: a report delayed past a move back has no effect.
#[test]
fn step_6_a_delayed_word_is_older_than_the_grant() {
    let (mut leader, [a, ..]) = leader();
    leader.commit(&move_domain("1", "a", "b"));
    let lost = leader.ok(&shared("a", 3, a.as_ref())).assignment.unwrap();
    let delayed = shared("a", 4, Some(&lost));
    leader.commit(&move_domain("1", "b", "a"));
    leader.commit(&move_domain("1", "a", "c"));
    leader.ok(&delayed);
    assert!(leader.commits.is_empty());
    let row = leader.state.row(&Key::Domain(Domain::new("zone", "1"))).unwrap();
    assert_eq!(row.held_by(), None);
}

fn begin(id: &str, kind: TransferKind) -> Command {
    let request = TransferRequest {
        count: 3,
        min_unit: [("cpu".to_owned(), "2".to_owned())].into(),
        ..TransferRequest::default()
    };
    Command::BeginTransfer { id: id.into(), kind, from: "a".into(), to: "b".into(), request }
}

#[test]
fn a_releasing_transfer_is_an_instruction_to_its_donor() {
    let (mut leader, [a, b, _]) = leader();
    leader.commit(&begin("t", TransferKind::Idle));
    leader.commit(&begin("u", TransferKind::Drain));
    let first = leader.ok(&shared("a", 3, a.as_ref()));
    assert_eq!(told(&first), ["give t", "drain u"]);
    assert_eq!(first.instructions[0].instruction_id, "t");
    let open = &first.assignment.unwrap().open_transfers;
    assert_eq!(open[..], ["t", "u"]);
    // A new leader goes on by the record.
    leader.elect();
    assert_eq!(told(&leader.ok(&shared("a", 4, a.as_ref()))), ["give t", "drain u"]);
    // A volume that was lost knows no fleet, and nothing of what it may give.
    let lost = wire::ShardReport { fleet_id: String::new(), ..shared("a", 5, None) };
    assert!(leader.ok(&lost).instructions.is_empty());
    assert_eq!(told(&leader.ok(&shared("a", 6, a.as_ref()))), ["give t", "drain u"]);
    let mut acks = shared("a", 7, a.as_ref());
    acks.instruction_acks = vec![ack("t", Outcome::Failed), ack("u", Outcome::RejectedInvalid)];
    assert_eq!(told(&leader.ok(&acks)), ["give t"], "asked again; refused");
    assert_eq!(leader.reports.take_refused(), ["u".into()].into());
    // From another shard it says nothing.
    let mut gave = ack("t", Outcome::Accepted);
    gave.machine_ids = vec!["m".into()];
    gave.home_domain = Some(a.unwrap().domains[0].clone());
    let mut other = shared("b", 3, b.as_ref());
    other.instruction_acks = vec![gave.clone()];
    leader.ok(&other);
    assert!(leader.commits.is_empty());
    let mut acks = shared("a", 8, None);
    acks.instruction_acks = vec![gave];
    let ack = leader.ok(&acks);
    assert!(ack.instructions.is_empty());
    assert_eq!(ack.assignment.unwrap().machines_out.len(), 1);
    assert_eq!(leader.state.transfers()["t"].phase, TransferPhase::Moved);
    let received = leader.ok(&shared("b", 4, b.as_ref())).assignment.unwrap();
    assert_eq!(received.machines_in[0].machine_id, "m");
    let mut settles = shared("b", 5, Some(&received));
    settles.settled = received.machines_in;
    leader.ok(&settles);
    assert!(leader.state.transfers().is_empty());
    leader.ok(&wire::ShardReport { cycle: 6, ..settles });
    assert!(leader.commits.is_empty(), "said twice");
}

/// A drain is not answered for a quarter of an hour: what comes after more of them than
/// go into one answer goes with the next all the same, and so does each of them in turn.
#[test]
fn what_is_not_answered_keeps_nothing_else_back() {
    let (mut leader, [a, ..]) = leader();
    for number in 0..70 {
        leader.commit(&begin(&format!("d{number:02}"), TransferKind::Drain));
    }
    let first = leader.ok(&shared("a", 3, a.as_ref()));
    assert_eq!((first.instructions.len(), first.next_report_after_ms), (64, 1_000));
    leader.commit(&begin("idle", TransferKind::Idle));
    let second = leader.ok(&shared("a", 4, a.as_ref()));
    assert!(told(&second).contains(&"give idle".to_owned()), "{:?}", told(&second));
    let both: BTreeSet<String> = [told(&first), told(&second)].concat().into_iter().collect();
    assert_eq!(both.len(), 71);
    let sequences = second.instructions.iter().map(|one| one.sequence_number);
    assert!(sequences.is_sorted());
}

/// Names that cannot be replicated end the transfer, not the donor's word.
#[test]
fn what_cannot_be_moved_ends_its_transfer() {
    let (mut leader, [a, ..]) = leader();
    let home = a.as_ref().unwrap().domains[0].clone();
    let long = wire::DomainAssignment { topology_value: "v".repeat(64), ..home.clone() };
    for (cycle, (machine, home)) in (3..).zip([("x".repeat(254), home), ("m".to_owned(), long)]) {
        leader.commit(&begin("t", TransferKind::Idle));
        let mut gave = ack("t", Outcome::Accepted);
        gave.machine_ids = vec![machine];
        gave.home_domain = Some(home);
        let acks = vec![gave];
        leader.ok(&wire::ShardReport { instruction_acks: acks, ..shared("a", cycle, None) });
        assert_eq!(leader.commits, [Command::EndTransfer { id: "t".into() }]);
        assert!(leader.state.transfers().is_empty());
    }
}

/// Fault matrix: reports delayed past a second transfer of the same machine have no effect.
#[test]
fn a_delayed_word_of_an_ended_transfer_is_not_about_the_next() {
    let (mut leader, [a, b, _]) = leader();
    let home = a.as_ref().unwrap().domains[0].clone();
    let gives = |id: &str, cycle| {
        let mut gave = ack(id, Outcome::Accepted);
        gave.machine_ids = vec!["m".into()];
        gave.home_domain = Some(home.clone());
        wire::ShardReport { instruction_acks: vec![gave], ..shared("a", cycle, a.as_ref()) }
    };
    leader.commit(&begin("t", TransferKind::Idle));
    let gave = gives("t", 3);
    leader.ok(&gave);
    let received = leader.ok(&shared("b", 3, b.as_ref())).assignment.unwrap();
    let settles = wire::ShardReport {
        settled: received.machines_in.clone(),
        ..shared("b", 4, Some(&received))
    };
    leader.ok(&settles);
    assert!(leader.state.transfers().is_empty());

    // While the second waits for its donor, the first says again what it let go of.
    leader.commit(&begin("u", TransferKind::Idle));
    for elected in [false, true] {
        if elected {
            leader.elect();
        }
        leader.ok(&gave);
        leader.ok(&settles);
        assert!(leader.commits.is_empty(), "{:?}", leader.commits);
        assert_eq!(leader.state.transfers()["u"].phase, TransferPhase::Releasing);
    }
    // And when it has moved.
    leader.ok(&gives("u", 5));
    for elected in [false, true] {
        if elected {
            leader.elect();
        }
        leader.ok(&settles);
        leader.ok(&gave);
        assert!(leader.commits.is_empty(), "{:?}", leader.commits);
        let lent = &leader.state.transfers()["u"];
        assert_eq!((lent.phase, lent.machine_ids.len()), (TransferPhase::Moved, 1));
    }
}

#[test]
fn a_donor_is_asked_for_a_while() {
    let (mut leader, _) = leader();
    leader.commit(&begin("t", TransferKind::Idle));
    leader.commit(&begin("u", TransferKind::Drain));
    assert!(leader.reports.give_up(&leader.state, leader.now).is_empty());
    leader.pass(121);
    let ends = leader.reports.give_up(&leader.state, leader.now);
    assert_eq!(ends, [Command::EndTransfer { id: "t".into() }]);
    leader.pass(30 * 60);
    assert_eq!(leader.reports.give_up(&leader.state, leader.now).len(), 2);
}

#[test]
fn recovering_asks_what_shards_hold_and_tells_nothing() {
    let (mut leader, [a, ..]) = leader();
    leader.state.begin_recovery(&FleetId::new("u", 6), 1_700_000_000_000);
    leader.elect();
    let on = |fleet: &str, report: wire::ShardReport| wire::ShardReport {
        fleet_id: fleet.into(),
        ..report
    };
    let ack = leader.ok(&shared("a", 3, a.as_ref()));
    assert!(!ack.acknowledged && ack.fleet_id == "u.00000006" && !ack.want_holdings);
    // It has adopted the generation: no version counts any more.
    let fresh = |cycle| {
        on(
            "u.00000006",
            wire::ShardReport { assignment_version: 0, ..shared("a", cycle, a.as_ref()) },
        )
    };
    let ack = leader.ok(&fresh(4));
    assert!(ack.want_holdings && ack.assignment.is_none() && ack.instructions.is_empty());
    assert_eq!(ack.next_report_after_ms, 1_000);
    let mut holds = fresh(5);
    holds.holdings =
        Some(wire::Assignment { domains: a.clone().unwrap().domains, ..Default::default() });
    assert!(!leader.ok(&holds).want_holdings);
    assert!(matches!(leader.commits[..], [Command::AdoptHoldings { .. }]));
    leader.ok(&wire::ShardReport { cycle: 6, ..holds });
    assert!(leader.commits.is_empty(), "once");
    let own = on("u.00000006", report("own", 1, 1));
    let ack = leader.ok(&own);
    assert!(!ack.want_holdings && ack.next_report_after_ms == 1_000);
    for shard in ["b", "c"] {
        let mut holds = on("u.00000006", shared(shard, 3, None));
        holds.holdings = Some(wire::Assignment::default());
        leader.ok(&holds);
    }
    leader.commit(&Command::ConfirmRestore {});
    assert_eq!(zones(&leader.ok(&fresh(7)).assignment.unwrap()), ["1"], "at the next report");
}

/// Ages are those of this leadership, of each row its own.
#[test]
fn what_is_on_its_way_has_an_age() {
    let (mut leader, _) = leader();
    let look = |leader: &mut Leader| drop(leader.reports.give_up(&leader.state, leader.now));
    let ages = |leader: &Leader| -> Vec<i64> {
        let listed = leader.reports.on_the_way(&leader.state, leader.now);
        let ages = listed.releasing.iter().map(|row| row.age_ms / 1_000);
        ages.chain(listed.transfers.iter().map(|one| one.age_ms / 1_000)).collect()
    };
    look(&mut leader);
    assert_eq!(leader.reports.oldest_releasing(&leader.state, leader.now), None);
    leader.pass(5);
    leader.commit(&move_domain("1", "a", "b"));
    look(&mut leader);
    leader.pass(90);
    leader.commit(&move_domain("2", "b", "c"));
    leader.commit(&begin("t", TransferKind::Drain));
    look(&mut leader);
    leader.pass(10);
    look(&mut leader);
    assert_eq!(ages(&leader), [100, 10, 10]);
    let oldest = leader.reports.oldest_releasing(&leader.state, leader.now);
    assert_eq!(oldest, Some(Duration::from_secs(100)));
    assert_eq!(leader.reports.overdue_transfer(&leader.state, leader.now), Some(Duration::ZERO));
    leader.pass(30 * 60);
    let overdue = leader.reports.overdue_transfer(&leader.state, leader.now);
    assert_eq!(overdue, Some(Duration::from_secs(10)));
    assert_eq!(leader.reports.oldest_instruction(leader.now), None, "a transfer has its own age");
    leader.elect();
    look(&mut leader);
    leader.pass(1);
    assert_eq!(ages(&leader), [1, 1, 1], "since the election");
}
