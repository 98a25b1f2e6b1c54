use super::*;
use crate::state::{Effect, Refused};

#[test]
fn step_1_fleets() {
    let mut leader = Leader::new();
    let of = |fleet: &str| wire::ShardReport { fleet_id: fleet.into(), ..report("a", 1, 1) };
    assert!(leader.ok(&of("")).acknowledged);
    let ack = leader.ok(&of("u.00000004"));
    assert_eq!((ack.coordinator_term, ack.fleet_id.as_str()), (TERM, FLEET));
    assert!(!ack.acknowledged && ack.instructions.is_empty(), "term and fleet id only");
    assert!(leader.commits.is_empty());
    let superseded = leader.report(&of("u.00000006")).unwrap_err();
    assert!(superseded.to_string().starts_with("superseded"), "{superseded}");
    for foreign in ["v.00000005", "nonsense"] {
        let foreign = leader.report(&of(foreign)).unwrap_err();
        assert!(foreign.to_string().starts_with("foreign fleet"), "{foreign}");
    }
    assert_eq!(leader.reports.take_tally().foreign_fleet, 3);
}

#[test]
fn step_1_history_lost() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    let term = wire::ShardReport { observed_term: TERM + 1, ..report("a", 1, 2) };
    let index = i64::try_from(leader.index).unwrap();
    let version = wire::ShardReport { assignment_version: index + 1, ..report("a", 1, 2) };
    for lost in [term, version] {
        let rejected = leader.report(&lost).unwrap_err().to_string();
        assert!(rejected.starts_with("history lost: run snapshot restore"), "{rejected}");
        // A shard that knows no fleet knows no history of it.
        leader.ok(&wire::ShardReport { fleet_id: String::new(), ..lost });
    }
    assert_eq!(leader.reports.take_tally().foreign_fleet, 2);
    leader.ok(&wire::ShardReport {
        observed_term: TERM,
        assignment_version: index,
        ..report("a", 1, 9)
    });
}

#[test]
fn step_2_registration_is_committed_first() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 3, 1));
    assert!(matches!(leader.commits[..], [Command::AddShard { registered_at: 5, epoch: 3, .. }]));
    leader.ok(&report("a", 3, 2));
    assert!(leader.commits.is_empty(), "no heartbeat is a commit");
    leader.ok(&report("a", 4, 1));
    assert!(matches!(leader.commits[..], [Command::UpdateShard { epoch: 4, .. }]));
    let shares = wire::ShardReport { assignment_digest: 9, ..report("a", 4, 2) };
    leader.ok(&shares);
    assert!(matches!(leader.commits[..], [Command::UpdateShard { shared: true, .. }]));
    leader.ok(&report("a", 4, 3));
    assert!(leader.commits.is_empty(), "shared never falls");
}

#[test]
fn step_2_an_address_alone_changes_once_a_minute() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    let mut cycle = 1;
    let mut moves = |leader: &mut Leader, address: &str, epoch: i64| {
        cycle += 1;
        leader
            .ok(&wire::ShardReport { shard_address: address.into(), ..report("a", epoch, cycle) });
        leader.commits.len()
    };
    assert_eq!(moves(&mut leader, "b:1", 1), 1);
    assert_eq!(moves(&mut leader, "c:1", 1), 0);
    leader.pass(60);
    assert_eq!(moves(&mut leader, "c:1", 1), 1);
    assert_eq!(moves(&mut leader, "d:1", 2), 1, "a newer process at once");
    assert_eq!(moves(&mut leader, "", 2), 0, "an empty one says nothing");
    // Without an epoch it may move, and the newest process stays known.
    leader.pass(60);
    assert_eq!(moves(&mut leader, "e:1", 0), 1);
    assert_eq!(leader.state.shard("a").unwrap().epoch, 2);
}

/// Fault matrix: two processes with one shard_id.
#[test]
fn step_3_two_processes_one_id() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 2, 1));
    let twin = wire::ShardReport { instance: 999, ..report("a", 2, 5) };
    for stale in [report("a", 1, 9), twin.clone()] {
        let rejected = leader.report(&stale).unwrap_err();
        assert!(rejected.to_string().starts_with("stale shard epoch"), "{rejected}");
    }
    // By every leader: the newest process is replicated.
    leader.elect();
    assert!(leader.report(&twin).is_err() && leader.report(&report("a", 1, 9)).is_err());
    assert_eq!(leader.reports.take_tally().stale_epoch, 2);
    assert_eq!(leader.reports.last_heartbeat("a"), 0, "it was not heard");
    leader.ok(&report("a", 2, 2));
}

#[test]
fn step_3_a_late_report_changes_nothing_soft() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 5));
    leader.commit(&assign("1", "a"));
    let heard = leader.reports.last_heartbeat("a");
    leader.pass(5);
    for cycle in [4, 5] {
        let ack = leader.ok(&report("a", 1, cycle));
        assert!(ack.acknowledged && ack.instructions.is_empty(), "cycle {cycle}");
        assert_eq!(leader.reports.snapshots("a")[0].cycle, 5);
        assert_eq!(leader.reports.last_heartbeat("a"), heard);
    }
    let id = leader.ok(&report("a", 1, 6)).instructions[0].instruction_id.clone();
    let acks = vec![ack(&id, Outcome::Accepted)];
    leader.ok(&wire::ShardReport { instruction_acks: acks, ..report("a", 1, 5) });
    assert!(leader.ok(&report("a", 1, 7)).instructions.is_empty(), "its acks count");
    leader.ok(&report("a", 2, 1));
    assert_eq!(leader.reports.snapshots("a")[0].cycle, 1, "a new process counts from one");
    // Without an epoch, cycles alone are compared.
    leader.ok(&report("b", 0, 5));
    leader.ok(&report("b", 0, 4));
    assert_eq!(leader.reports.snapshots("b")[0].cycle, 5);
    leader.ok(&report("b", 1, 1));
    assert_eq!(leader.reports.snapshots("b")[0].cycle, 1, "its first process that says so");
}

/// It has not heard what it lost, and would act on what it remembers.
#[test]
fn step_3_a_repeated_report_opens_no_shard() {
    let mut leader = Leader::new();
    let shares = |cycle| wire::ShardReport { assignment_digest: 9, ..report("a", 1, cycle) };
    assert!(leader.ok(&shares(1)).acknowledged);
    let repeated = leader.ok(&shares(1));
    assert!(!repeated.acknowledged && repeated.assignment.is_none());
    assert!(leader.ok(&shares(2)).acknowledged);
}

#[test]
fn step_4_keeps_the_whole_list_but_what_means_nothing() {
    let mut leader = Leader::new();
    let resources = |text: &str| {
        Some(wire::Resources { resources: [("cpu".to_owned(), text.to_owned())].into() })
    };
    let shortfall = |deficit: &str, bucket: i32, age: i32| wire::Shortfall {
        deficit: resources(deficit),
        interruption_penalty_bucket: bucket,
        age_cycles: age,
        ..wire::Shortfall::default()
    };
    let mut same = shortfall("1", 1, 6);
    same.requirements = vec![wire::NodeSelectorRequirement {
        key: "zone".into(),
        operator: 5,
        ..wire::NodeSelectorRequirement::default()
    }];
    let good = vec![same, shortfall("2", 1, 6), shortfall("3", 1, 5)];
    let mut all = good.clone();
    all.extend([shortfall("much", 1, 9), shortfall("1", 99, 9)]);
    leader.ok(&wire::ShardReport { shortfalls: all, ..report("a", 1, 1) });
    assert_eq!(leader.reports.snapshots("")[0].shortfalls, good, "with their requirements");
    assert_eq!(leader.reports.take_tally().shortfalls_dropped, 2);
    assert_eq!(leader.reports.escalated(), Escalated { same: 1, other: 1 });
    leader.ok(&wire::ShardReport { shortfalls: vec![good[1].clone(); 120], ..report("a", 1, 2) });
    assert_eq!(leader.reports.snapshots("a")[0].shortfalls.len(), 100);
    leader.ok(&report("a", 1, 3));
    assert!(leader.reports.snapshots("a")[0].shortfalls.is_empty(), "an empty list clears it");
    assert!(leader.reports.snapshots("b").is_empty());
}

#[test]
fn liveness_by_a_clock_that_does_not_jump() {
    for hour in [-3_600_000_000_000, 3_600_000_000_000] {
        liveness_while_the_clock_jumps_by(hour);
    }
}

fn liveness_while_the_clock_jumps_by(nanos: i64) {
    let mut leader = Leader::new();
    assert_eq!(leader.reports.liveness("a", leader.now), Liveness::Unknown);
    leader.ok(&report("a", 1, 1));
    leader.commit(&assign("1", "a"));
    leader.now.unix_nanos += nanos;
    for (pass, wanted) in
        [(30, Liveness::Live), (1, Liveness::Stale), (269, Liveness::Stale), (1, Liveness::Expired)]
    {
        leader.pass(pass);
        assert_eq!(leader.reports.liveness("a", leader.now), wanted);
    }
    assert!(leader.reports.snapshots("").is_empty(), "expiry drops soft state");
    assert!(leader.state.shard("a").is_some(), "and nothing else");
    assert_eq!(leader.state.domains_of("a").count(), 1);
    assert_eq!(told(&leader.ok(&report("a", 1, 1))), ["+1"], "told again on return");
    leader.commit(&Command::RemoveShard { id: "a".into() });
    leader.pass(0);
    assert_eq!(leader.reports.liveness("a", leader.now), Liveness::Unknown);
}

#[test]
fn a_second_claim_found_at_commit_is_counted_too() {
    let mut leader = Leader::new();
    let refused = Refused::ClusterAlreadyBound { cluster: "k".into(), owner: None };
    let outcome = Ok(Effect::Batch(vec![Err(refused)]));
    leader.reports.committed(&leader.state, &outcome, leader.now);
    assert_eq!(leader.reports.take_tally().binding_conflicts, 0, "an operator's mistake is none");
    leader.reports.count_conflicts(&outcome);
    assert_eq!(leader.reports.take_tally().binding_conflicts, 1);
}
