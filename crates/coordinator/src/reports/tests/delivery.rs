use super::*;

fn unassign(value: &str) -> Command {
    Command::UnassignDomain { domain: Domain::new("zone", value) }
}

#[test]
fn gaining_and_losing_shards_are_told() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    leader.ok(&report("b", 1, 1));
    leader.commit(&assign("1", "a"));
    let (from, to) = ("a".into(), "b".into());
    leader.commit(&Command::MoveDomain { domain: Domain::new("zone", "1"), from, to });
    leader.commit(&assign("2", "a"));
    let ack = leader.ok(&report("a", 1, 2));
    assert_eq!(told(&ack), ["-1", "+2"], "only the last word about a domain");
    let sequences: Vec<i64> = ack.instructions.iter().map(|one| one.sequence_number).collect();
    assert!(sequences.is_sorted() && sequences[0] >= 1, "{sequences:?}");
    assert!(ack.instructions.iter().all(|one| one.coordinator_term == TERM));
    assert!(ack.instructions.iter().all(|one| one.instruction_id.len() == 16));
    assert_eq!(told(&leader.ok(&report("b", 1, 2))), ["+1"]);
    let again = leader.ok(&report("a", 1, 3));
    assert_eq!(again.instructions, ack.instructions, "the same ids until they are answered");
    leader.commit(&unassign("2"));
    assert_eq!(told(&leader.ok(&report("a", 1, 4))), ["-1", "-2"]);
    let waiting: Vec<_> =
        leader.reports.pending().map(|(id, count)| (id.to_string(), count)).collect();
    assert_eq!(waiting, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    leader.pass(7);
    assert_eq!(leader.reports.oldest_instruction(leader.now), Some(Duration::from_secs(7)));
}

#[test]
fn shared_scope_gets_no_such_instruction() {
    let mut leader = Leader::new();
    leader.ok(&shared("a", 1, None));
    leader.commit(&assign("1", "a"));
    assert!(leader.ok(&shared("a", 2, None)).instructions.is_empty());
}

#[test]
fn all_domains_again_after_a_leader_or_epoch_change() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    leader.commit(&assign("1", "a"));
    leader.commit(&assign("2", "a"));
    let ack = leader.ok(&report("a", 1, 2));
    let acks =
        ack.instructions.iter().map(|one| super::ack(&one.instruction_id, Outcome::Accepted));
    let acked = wire::ShardReport { instruction_acks: acks.collect(), ..report("a", 1, 3) };
    assert!(leader.ok(&acked).instructions.is_empty());
    assert_eq!(told(&leader.ok(&report("a", 2, 1))), ["+1", "+2"], "a new process");
    leader.elect();
    let ack = leader.ok(&report("a", 2, 2));
    assert_eq!(told(&ack), ["+1", "+2"], "a new leader");
    assert_eq!(ack.instructions[0].sequence_number, 1, "which counts from one");
    assert_eq!(ack.instructions[0].coordinator_term, TERM + 1);
}

#[test]
fn at_most_64_an_answer() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    for number in 0..130 {
        leader.commit(&assign(&format!("{number:03}"), "a"));
    }
    let mut cycle = 2;
    let mut answer = leader.ok(&report("a", 1, cycle));
    for (count, more) in [(64, true), (64, true), (2, false)] {
        assert_eq!(answer.instructions.len(), count);
        assert_eq!(answer.next_report_after_ms, if more { 1_000 } else { 0 });
        cycle += 1;
        let acks =
            answer.instructions.iter().map(|one| ack(&one.instruction_id, Outcome::Accepted));
        answer = leader
            .ok(&wire::ShardReport { instruction_acks: acks.collect(), ..report("a", 1, cycle) });
    }
    assert!(answer.instructions.is_empty());
}

#[test]
fn step_5_outcomes() {
    for (outcome, deliveries) in [
        (Outcome::Accepted, 1),
        (Outcome::RejectedInvalid, 1),
        (Outcome::RejectedStale, 1),
        (Outcome::Failed, 6),
        (Outcome::Unspecified, 6),
    ] {
        let mut leader = Leader::new();
        leader.ok(&report("a", 1, 1));
        leader.commit(&assign("1", "a"));
        let mut seen = 0;
        let mut answer = leader.ok(&report("a", 1, 2));
        for cycle in 3..12 {
            let Some(one) = answer.instructions.first() else { break };
            seen += 1;
            let acks = vec![ack("no such", outcome), ack(&one.instruction_id, outcome)];
            let report = wire::ShardReport { instruction_acks: acks, ..report("a", 1, cycle) };
            answer = leader.ok(&report);
        }
        assert_eq!(seen, deliveries, "{outcome:?}");
        let given_up = leader.reports.take_tally().instructions_given_up;
        assert_eq!(given_up, u64::from(deliveries > 1), "{outcome:?}");
    }
}

#[test]
fn clusters_are_asked_for_and_bound() {
    let mut leader = Leader::new();
    let digest = |clusters: &[&str]| bigfleet_model::digest::of_set(clusters.iter().copied());
    let sees = |shard: &str, cycle, clusters: &[&str], named: bool| wire::ShardReport {
        cluster_digest: digest(clusters),
        cluster_ids: clusters.iter().filter(|_| named).map(|&id| id.to_owned()).collect(),
        ..report(shard, 1, cycle)
    };
    assert!(!leader.ok(&report("old", 1, 1)).want_cluster_ids, "a shard without digest");
    assert!(!leader.ok(&sees("a", 1, &[], false)).want_cluster_ids);
    assert!(leader.ok(&sees("a", 2, &["k", "l"], false)).want_cluster_ids);
    let ack = leader.ok(&sees("a", 3, &["k", "l"], true));
    assert!(matches!(&leader.commits[..], [Command::Batch { commands }] if commands.len() == 2));
    assert!(!ack.want_cluster_ids, "they agree");
    assert!(!leader.ok(&sees("a", 4, &["k", "l"], false)).want_cluster_ids);
    // Claimed by two: the first keeps it.
    assert!(leader.ok(&sees("b", 1, &["k", "m"], false)).want_cluster_ids);
    let ack = leader.ok(&sees("b", 2, &["k", "m"], true));
    assert!(!ack.want_cluster_ids, "asking again would change nothing");
    assert!(matches!(leader.commits[..], [Command::BindCluster { .. }]));
    assert_eq!(leader.reports.take_tally().binding_conflicts, 1);
    assert_eq!(elsewhere(&ack), ["k of a"]);
    let ack = leader.ok(&sees("b", 3, &["k", "m"], false));
    assert!(!ack.want_cluster_ids && elsewhere(&ack) == ["k of a"], "said every time");
    assert!(leader.ok(&sees("b", 4, &["k", "m", "n"], false)).want_cluster_ids);
    leader.commit(&Command::RemoveShard { id: "a".into() });
    let ack = leader.ok(&sees("b", 5, &["k", "m", "n"], true));
    assert_eq!(leader.state.clusters_of("b").count(), 3);
    assert!(elsewhere(&ack).is_empty());
}

fn elsewhere(ack: &wire::ReportAck) -> Vec<String> {
    let bound = ack.bound_elsewhere.iter();
    bound.map(|one| format!("{} of {}", one.cluster_id, one.shard_id)).collect()
}

/// Both views of a shard's clusters are as they were when its neighbour is removed, and
/// yet there is something to bind.
#[test]
fn a_claimed_cluster_is_bound_when_its_owner_is_removed() {
    let mut leader = Leader::new();
    let digest = bigfleet_model::digest::of_set(["k"]);
    let sees = |shard: &str, cycle, named: bool| wire::ShardReport {
        cluster_digest: digest,
        cluster_ids: named.then(|| "k".to_owned()).into_iter().collect(),
        ..report(shard, 1, cycle)
    };
    leader.ok(&sees("a", 1, true));
    assert_eq!(elsewhere(&leader.ok(&sees("b", 1, true))), ["k of a"]);
    leader.ok(&report("c", 1, 1));
    let (cluster, from, to) = ("k".into(), "a".into(), "c".into());
    leader.commit(&Command::MoveCluster { cluster, from, to });
    assert_eq!(elsewhere(&leader.ok(&sees("b", 2, false))), ["k of c"]);
    leader.commit(&Command::RemoveShard { id: "c".into() });
    let ack = leader.ok(&sees("b", 3, false));
    assert!(ack.want_cluster_ids && ack.bound_elsewhere.is_empty());
    assert!(!leader.ok(&sees("b", 4, true)).want_cluster_ids);
    assert_eq!(leader.state.clusters_of("b").count(), 1);
}

/// What a shard was to be told before it was removed is not its business any more.
#[test]
fn a_removed_shard_is_told_nothing_of_its_past() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    leader.commit(&assign("1", "a"));
    leader.commit(&Command::RemoveShard { id: "a".into() });
    assert!(leader.ok(&report("a", 1, 2)).instructions.is_empty());
}

#[test]
fn a_shard_that_turns_to_shared_scope_gets_assignments_instead() {
    let mut leader = Leader::new();
    leader.ok(&report("a", 1, 1));
    leader.commit(&assign("1", "a"));
    let ack = leader.ok(&shared("a", 2, None));
    assert!(ack.instructions.is_empty());
    assert_eq!(ack.assignment.unwrap().domains.len(), 1);
}
