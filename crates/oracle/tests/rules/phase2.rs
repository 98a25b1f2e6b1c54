//! §7: priority inversions.

use crate::seen::run;

#[test]
fn strictly_lower_machines_are_evicted_best_score_first() {
    let seen = run(r#"{"needs": [
            {"cluster": "hi", "aggregate": {"cpu": 4}, "priority": 1000000},
            {"name": "lo", "cluster": "lo", "aggregate": {"cpu": 4}, "priority": 0},
            {"name": "mid", "cluster": "lo", "aggregate": {"cpu": 4}, "priority": 300000}],
        "machines": [{"id": "a", "state": "Configured", "cluster": "lo", "resources": {"cpu": 4}, "stamp": {"need": "mid"}},
                     {"id": "b", "state": "Configured", "cluster": "lo", "resources": {"cpu": 4}, "stamp": {"need": "lo"}}]}"#);
    assert_eq!(seen.actions(), ["Preempt b"]);
    assert_eq!(seen.grace("b"), 10);
    assert!(seen.unresolved().is_empty());
}

#[test]
fn equal_priority_is_never_evicted() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "interruption_penalty": "pinned"},
                               {"cluster": "b", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}}]}"#,
    );
    assert!(seen.actions().is_empty());
}

#[test]
fn the_claimant_not_the_stamp_gives_the_priority() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "priority": 10},
                               {"cluster": "b", "aggregate": {"cpu": 4}, "priority": 20}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"priority": 0}}]}"#);
    assert!(seen.actions().is_empty());
}

#[test]
fn what_drains_for_it_is_awaited_not_preempted_again() {
    let seen = run(
        r#"{"needs": [{"name": "hi", "cluster": "a", "aggregate": {"cpu": 4}, "priority": 10},
                               {"cluster": "b", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "d", "state": "Draining", "cluster": "b", "resources": {"cpu": 4}, "drain": {"deadline": 600, "preemptor_priority": 10, "for": "hi"}},
                     {"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}}]}"#,
    );
    assert!(seen.actions().is_empty());
    assert!(seen.unresolved().iter().all(|(need, _)| *need != 0));
}

#[test]
fn own_incoming_is_reserved_before_a_higher_need_looks() {
    let seen = run(r#"{"needs": [
            {"name": "top", "cluster": "a", "aggregate": {"cpu": 4}, "priority": 20},
            {"name": "picky", "cluster": "a", "aggregate": {"cpu": 4}, "priority": 10, "requirements": ["ssd Exists"]},
            {"cluster": "b", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "d", "state": "Draining", "cluster": "b", "resources": {"cpu": 4}, "labels": {"ssd": "y"}, "drain": {"deadline": 600, "preemptor_priority": 10, "for": "picky"}},
                     {"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.actions(), ["Preempt m"]);
    assert!(seen.unresolved().iter().all(|(need, _)| *need != 1));
}

#[test]
fn a_drain_for_nobody_that_takes_longer_than_a_victim_is_passed_over() {
    let world = |deadline: u32| {
        format!(
            r#"{{"needs": [{{"cluster": "a", "aggregate": {{"cpu": 4}}, "priority": 1000000}},
                         {{"cluster": "b", "aggregate": {{"cpu": 4}}}}],
            "machines": [{{"id": "d", "state": "Draining", "cluster": "b", "resources": {{"cpu": 4}}, "drain": {{"deadline": {deadline}}}}},
                         {{"id": "m", "state": "Configured", "cluster": "b", "resources": {{"cpu": 4}}}}]}}"#
        )
    };
    assert_eq!(run(&world(11)).actions(), ["Preempt m"]);
    assert!(run(&world(10)).actions().is_empty());
}

#[test]
fn excess_goes_before_victims() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "priority": 1000},
                               {"name": "lo", "cluster": "b", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "v", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"need": "lo"}},
                     {"id": "x", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"priority": 900, "fingerprint": "gone"}}]}"#);
    assert_eq!(seen.actions(), ["Preempt x"]);
}

#[test]
fn excess_at_least_as_important_counts_as_incoming() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "priority": 1000},
                               {"name": "lo", "cluster": "b", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "v", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"need": "lo"}},
                     {"id": "x", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"priority": 2000, "fingerprint": "gone"}}]}"#);
    assert_eq!(seen.actions(), ["Reclaim x"]);
    assert!(seen.unresolved().is_empty());
}

#[test]
fn picks_that_later_ones_made_redundant_are_pruned() {
    // Excess 2 cores, then a victim of 8: the excess is not needed.
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}, "priority": 1000},
                               {"name": "lo", "cluster": "b", "aggregate": {"cpu": 8}}],
        "machines": [{"id": "v", "state": "Configured", "cluster": "b", "resources": {"cpu": 8}, "stamp": {"need": "lo"}},
                     {"id": "x", "state": "Configured", "cluster": "b", "resources": {"cpu": 2}, "stamp": {"priority": 900, "fingerprint": "gone"}}]}"#);
    assert_eq!(seen.actions(), ["Preempt v", "Reclaim x"]);
}

#[test]
fn a_gang_that_still_cannot_assemble_evicts_nobody() {
    let world = |cpu: u32| {
        format!(
            r#"{{"needs": [{{"name": "g", "cluster": "a", "aggregate": {{"cpu": {cpu}}}, "min_unit": {{"cpu": 4}}, "group": "g", "priority": 9, "requirements": ["rack Same"]}},
                          {{"cluster": "b", "aggregate": {{"cpu": 8}}}}],
            "machines": [{{"id": "own", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}, "labels": {{"rack": "r0"}}, "stamp": {{"need": "g"}}}},
                         {{"id": "m", "count": 2, "state": "Configured", "cluster": "b", "resources": {{"cpu": 4}}, "labels": {{"rack": "r0"}}}},
                         {{"id": "n", "state": "Configured", "cluster": "b", "resources": {{"cpu": 4}}, "labels": {{"rack": "r1"}}, "price_per_hour": 1}}]}}"#
        )
    };
    assert_eq!(run(&world(16)).unresolved(), [(0, false)]);
    assert!(run(&world(16)).actions().iter().all(|action| !action.starts_with("Preempt")));
    let fits = run(&world(12));
    assert_eq!(fits.actions()[..2], ["Preempt m-0", "Preempt m-1"]);
    assert!(fits.ages().is_empty(), "what Phase 2 closed does not age");
}

#[test]
fn a_gang_without_any_domain_clears_one_that_covers_it() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g", "priority": 9, "requirements": ["rack Same"]},
            {"cluster": "b", "aggregate": {"cpu": 12}}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "n", "count": 2, "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#);
    assert_eq!(seen.actions(), ["Preempt n-0", "Preempt n-1"]);
    assert_eq!(seen.domain(0), Some("r1"));
}

#[test]
fn unknown_work_of_a_silent_cluster_is_left_alone() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}, "priority": 9}], "ready": ["a"],
        "machines": [{"id": "known", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "stamp": {"priority": 1}},
                     {"id": "unknown", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}}]}"#,
    );
    assert_eq!(seen.actions(), ["Preempt known"]);
    assert_eq!(seen.unresolved(), [(0, true)]);
}

#[test]
fn a_machine_held_back_is_not_evicted() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "priority": 9},
                               {"cluster": "b", "aggregate": {"cpu": 4}}],
        "held_back": {"m": "ProviderFailing"},
        "machines": [{"id": "m", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}}]}"#);
    assert!(seen.actions().is_empty());
}

#[test]
fn a_spread_need_evicts_only_where_it_may_bind_later() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 12}, "priority": 9, "spread": [{"topology_key": "rack"}]},
                               {"cluster": "b", "aggregate": {"cpu": 12}}],
        "machines": [{"id": "m", "count": 2, "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "n", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#,
    );
    assert_eq!(seen.actions(), ["Preempt m-0", "Preempt n"]);
    assert_eq!(seen.unresolved(), [(0, true)]);
}
