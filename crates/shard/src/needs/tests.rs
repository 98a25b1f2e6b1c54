use std::cell::Cell;

use bigfleet_wire::v1alpha1::CapacityNeed;
use proptest::prelude::*;

use super::*;

const NOW: i64 = 1_000;

fn roll_up(timestamp_unix_nanos: i64, needs: Vec<CapacityNeed>) -> ClusterCapacityNeeds {
    ClusterCapacityNeeds { timestamp_unix_nanos, needs, ..Default::default() }
}

/// Needs of different priority and so of different identity.
fn rows(count: i32, cpu: &str) -> Vec<CapacityNeed> {
    (0..count).map(|priority| need(priority, &[("cpu", cpu)])).collect()
}

fn need(priority: i32, aggregate: &[(&str, &str)]) -> CapacityNeed {
    let aggregate =
        aggregate.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned()));
    CapacityNeed { priority, aggregate_resources: aggregate.collect(), ..Default::default() }
}

fn send(needs: &Needs, configured: usize, rows: Vec<CapacityNeed>) -> RollUpAnswer {
    needs.ingest(&"c".into(), roll_up(NOW, rows), NOW, configured, &|| true)
}

fn staged(needs: &Needs) -> Option<Vec<Need>> {
    let mut taken = needs.take_staged();
    assert!(taken.len() <= 1);
    taken.pop().map(|(_, needs)| needs)
}

fn staged_rows(needs: &Needs) -> Option<usize> {
    staged(needs).map(|needs| needs.len())
}

use RollUpAnswer::{Accepted, Held};

#[test]
fn shard_inv_11_a_wiped_roll_up_does_nothing_twice_and_applies_on_the_third() {
    let needs = Needs::new(true);
    assert_eq!(send(&needs, 0, rows(10, "1")), Accepted);
    assert_eq!(staged_rows(&needs), Some(10));
    for held in 1..=2 {
        assert_eq!(send(&needs, 0, vec![]), Held);
        assert_eq!(staged_rows(&needs), None, "a held one is not handed on");
        let view = needs.view(&"c".into()).unwrap();
        assert_eq!((view.held, view.rows), (held, 10));
    }
    assert_eq!(send(&needs, 0, vec![]), Accepted);
    assert_eq!(staged_rows(&needs), Some(0));
    let view = needs.view(&"c".into()).unwrap();
    assert_eq!((view.held, view.rows), (0, 0));
    assert_eq!(send(&needs, 0, vec![]), Accepted, "the new baseline is small");
}

#[test]
fn shard_inv_11_a_normal_roll_up_resets() {
    let needs = Needs::new(true);
    send(&needs, 0, rows(20, "1"));
    assert_eq!(send(&needs, 0, rows(1, "1")), Held);
    assert_eq!(send(&needs, 0, rows(1, "1")), Held);
    assert_eq!(send(&needs, 0, rows(20, "1")), Accepted);
    assert_eq!(send(&needs, 0, rows(1, "1")), Held);
    assert_eq!(send(&needs, 0, rows(1, "1")), Held);
    assert_eq!(send(&needs, 0, rows(1, "1")), Accepted);
}

#[test]
fn a_tenth_is_enough_and_nine_rows_are_not_guarded() {
    let needs = Needs::new(true);
    send(&needs, 0, rows(20, "1"));
    assert_eq!(send(&needs, 0, rows(2, "1")), Accepted);
    assert_eq!(send(&needs, 0, vec![]), Accepted, "two rows are no baseline");
    send(&needs, 0, rows(9, "1"));
    assert_eq!(send(&needs, 0, vec![]), Accepted);
    send(&needs, 0, rows(11, "1"));
    assert_eq!(send(&needs, 0, rows(1, "1")), Held);
}

#[test]
fn a_few_large_rows_are_guarded_by_what_they_ask_for() {
    let large = || vec![need(0, &[("cpu", "1000"), ("memory", "1000")])];
    // What is left, Configured machines, and the answer.
    let cases = [
        (&[][..], 10, Held),
        (&[], 9, Accepted),
        (&[("cpu", "99"), ("memory", "99")], 10, Held),
        (&[("cpu", "99")], 10, Held),
        (&[("cpu", "100"), ("memory", "99")], 10, Accepted),
        (&[("cpu", "99"), ("memory", "100")], 10, Accepted),
        (&[("gpu", "5000")], 10, Held),
    ];
    for (left, configured, answer) in cases {
        let needs = Needs::new(true);
        send(&needs, configured, large());
        assert_eq!(send(&needs, configured, vec![need(0, left)]), answer, "{left:?}");
        // The baseline does not move while one is held.
        let held = u32::from(answer == Held);
        assert_eq!(needs.view(&"c".into()).unwrap().held, held);
        assert_eq!(send(&needs, configured, large()), Accepted);
    }
    // Rows that ask for nothing have nothing to lose.
    let needs = Needs::new(true);
    send(&needs, 10, vec![need(0, &[])]);
    assert_eq!(send(&needs, 10, vec![]), Accepted);
}

#[test]
fn a_first_roll_up_that_is_empty_is_held_if_machines_are_bound() {
    let needs = Needs::new(true);
    assert_eq!(send(&needs, 10, vec![]), Held);
    assert_eq!(needs.view(&"c".into()).unwrap().accepted_at, None, "the gate stays shut");
    assert_eq!(staged_rows(&needs), None);
    assert_eq!(send(&needs, 10, vec![]), Held);
    assert_eq!(send(&needs, 10, vec![]), Accepted);
    assert_eq!(staged_rows(&needs), Some(0));
    assert!(needs.view(&"c".into()).unwrap().accepted_at.is_some());

    let needs = Needs::new(true);
    assert_eq!(send(&needs, 9, vec![]), Accepted);
    let needs = Needs::new(true);
    assert_eq!(send(&needs, 10, rows(1, "1")), Accepted);
}

#[test]
fn without_the_guard_everything_is_believed() {
    let needs = Needs::new(false);
    assert_eq!(send(&needs, 10, vec![]), Accepted);
    assert_eq!(send(&needs, 10, rows(100, "1")), Accepted);
    assert_eq!(send(&needs, 10, vec![]), Accepted);
    assert_eq!(needs.view(&"c".into()).unwrap().held, 0);
}

fn bad() -> Vec<CapacityNeed> {
    vec![need(0, &[("cpu", "1")]), need(1, &[("cpu", "many")])]
}

#[test]
fn shard_inv_12_a_rejected_roll_up_changes_nothing() {
    let needs = Needs::new(true);
    send(&needs, 10, rows(20, "1"));
    let before = needs.view(&"c".into()).unwrap();
    assert_eq!(send(&needs, 10, vec![]), Held);
    let RollUpAnswer::Rejected(text) = send(&needs, 10, bad()) else {
        panic!("taken in");
    };
    assert!(text.starts_with("needs[1].aggregate_resources[\"cpu\"]: "), "{text}");
    let after = needs.view(&"c".into()).unwrap();
    assert_eq!((after.rows, after.accepted_at), (before.rows, before.accepted_at));
    assert_eq!((after.held, after.rejected), (1, 1), "nor does it reset the guard");
    assert_eq!(after.last_rejection, text);
    assert_eq!(staged_rows(&needs), Some(20), "the last good one stays");
    let foreign = ClusterCapacityNeeds { cluster_id: "d".into(), ..Default::default() };
    let answer = needs.ingest(&"c".into(), foreign, NOW, 0, &|| true);
    assert!(matches!(&answer, RollUpAnswer::Rejected(text) if text.starts_with("cluster_id: ")));
    assert_eq!(needs.view(&"c".into()).unwrap().rejected, 2);
    assert_eq!(needs.view(&"d".into()), None);
}

#[test]
fn a_roll_up_that_is_too_large_is_refused_before_it_is_read() {
    let needs = Needs { max_needs: 2, ..Needs::new(true) };
    assert_eq!(send(&needs, 0, rows(2, "1")), Accepted);
    let unread = vec![need(0, &[("cpu", "many")]); 3];
    let RollUpAnswer::Rejected(text) = send(&needs, 0, unread) else {
        panic!("taken in");
    };
    assert!(text.starts_with("needs: 3 entries are more than the 2 of one roll-up"), "{text}");
    assert_eq!(Needs::new(true).max_needs, 1_000_000);
}

#[test]
fn shard_inv_26_a_roll_up_of_a_replaced_session_is_not_applied() {
    let needs = Needs::new(true);
    send(&needs, 0, rows(3, "1"));
    for message in [roll_up(NOW, rows(1, "1")), roll_up(NOW, bad())] {
        let asked = Cell::new(0);
        let answer = needs.ingest(&"c".into(), message, NOW, 0, &|| {
            assert!(needs.clusters.try_lock().is_err(), "asked under the table's lock");
            asked.set(asked.get() + 1);
            false
        });
        assert_eq!((answer, asked.get()), (RollUpAnswer::Dropped, 1));
    }
    let view = needs.view(&"c".into()).unwrap();
    assert_eq!((view.rows, view.rejected), (3, 0));
    assert_eq!(staged_rows(&needs), Some(3));
    let answer = needs.ingest(&"new".into(), roll_up(NOW, vec![]), NOW, 0, &|| false);
    assert_eq!((answer, needs.views().len()), (RollUpAnswer::Dropped, 1));
}

#[test]
fn an_untaken_roll_up_is_replaced_whole() {
    let needs = Needs::new(true);
    send(&needs, 0, rows(3, "1"));
    send(&needs, 0, rows(2, "5"));
    needs.ingest(&"b".into(), roll_up(NOW, vec![]), NOW, 0, &|| true);
    let taken = needs.take_staged();
    let counts: Vec<_> = taken.iter().map(|(cluster, needs)| (&**cluster, needs.len())).collect();
    assert_eq!(counts, [("b", 0), ("c", 2)], "a cluster without needs reports, too");
    assert!(needs.take_staged().is_empty());
    assert_eq!(needs.view(&"c".into()).unwrap().rows, 2, "taken is not gone");
}

#[test]
fn arrival_is_the_roll_ups_time_but_never_after_our_own() {
    for (timestamp, arrival) in [(5, 5), (NOW, NOW), (NOW + 1, NOW), (0, NOW), (-5, NOW)] {
        let needs = Needs::new(true);
        needs.ingest(&"c".into(), roll_up(timestamp, rows(1, "1")), NOW, 0, &|| true);
        assert_eq!(staged(&needs).unwrap()[0].arrival, arrival, "{timestamp}");
    }
}

#[test]
fn needs_that_stay_keep_their_arrival_in_an_untaken_roll_up() {
    let needs = Needs::new(true);
    let at = |timestamp, priorities: &[i32]| {
        let rows = priorities.iter().map(|priority| need(*priority, &[("cpu", "1")])).collect();
        needs.ingest(&"c".into(), roll_up(timestamp, rows), NOW, 0, &|| true);
    };
    at(1, &[1, 2, 4]);
    at(2, &[0, 2, 3, 4, 5]);
    at(3, &[1, 2, 5]);
    let mut arrivals: Vec<_> = staged(&needs)
        .unwrap()
        .iter()
        .map(|need| (need.profile.priority(), need.arrival))
        .collect();
    arrivals.sort_unstable();
    assert_eq!(arrivals, [(1, 3), (2, 1), (5, 2)], "one that left comes anew");
}

proptest! {
    /// Against the rule as the chapter words it, with all three clauses.
    #[test]
    fn shard_inv_11_any_sequence_obeys_the_rule(
        sequence in prop::collection::vec((0..40i32, 1..60i128, 0..20usize), 1..40),
    ) {
        let needs = Needs::new(true);
        let (mut baseline, mut held) = (None, 0);
        for (count, cpu, configured) in sequence {
            let total = i128::from(count) * cpu;
            let wiped = match baseline {
                None => count == 0 && configured >= 10,
                Some((rows, before)) => {
                    (rows >= 10 && count * 10 < rows)
                        || (configured >= 10 && before > 0 && total * 10 < before)
                }
            };
            let expected = if wiped && held < 2 {
                held += 1;
                Held
            } else {
                (baseline, held) = (Some((count, total)), 0);
                Accepted
            };
            prop_assert_eq!(send(&needs, configured, rows(count, &cpu.to_string())), expected);
            prop_assert_eq!(needs.view(&"c".into()).unwrap().held, held);
        }
    }
}
