//! §6.1, §6.2: credit of bound supply and of purchases under way.

use crate::seen::run;

#[test]
fn own_machines_count_before_cheaper_free_ones() {
    let seen = run(r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "cheap", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 1},
                     {"id": "own", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 9, "stamp": {"need": "n"}}]}"#);
    assert_eq!(seen.claims(0), ["own"]);
    assert_eq!(seen.actions(), ["Reclaim cheap"]);
}

#[test]
fn equals_never_take_each_others_machines() {
    let seen = run(r#"{"needs": [
            {"name": "old", "cluster": "a", "aggregate": {"cpu": 4}, "arrival": 1},
            {"name": "young", "cluster": "a", "aggregate": {"cpu": 4}, "arrival": 2, "requirements": ["x DoesNotExist"]}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "stamp": {"need": "young"}}]}"#);
    assert_eq!(seen.claims(1), ["m"]);
}

#[test]
fn at_the_end_of_step_b_all_that_is_left_is_free() {
    let seen = run(r#"{"needs": [
            {"name": "old", "cluster": "a", "aggregate": {"cpu": 8}, "arrival": 1},
            {"name": "young", "cluster": "a", "aggregate": {"cpu": 4}, "arrival": 2, "requirements": ["x DoesNotExist"]}],
        "machines": [{"id": "m", "count": 3, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "stamp": {"need": "young"}}]}"#);
    assert_eq!(seen.claims(1), ["m-0"]);
    assert_eq!(seen.claims(0), ["m-1", "m-2"]);
}

#[test]
fn who_took_free_machines_gives_back_what_is_past_coverage() {
    // Own first takes own and free; by price the free one alone covers.
    let seen = run(r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 6}}],
        "machines": [{"id": "own", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 2, "stamp": {"need": "n"}},
                     {"id": "free", "state": "Configured", "cluster": "a", "resources": {"cpu": 8}, "price_per_hour": 1}]}"#);
    assert_eq!(seen.claims(0), ["free"]);
    assert_eq!(seen.actions(), ["Reclaim own"]);
}

#[test]
fn machines_that_lower_nothing_are_passed_over() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4, "memory": 4}}],
        "machines": [{"id": "a", "state": "Configured", "cluster": "a", "resources": {"cpu": 8}},
                     {"id": "b", "state": "Configured", "cluster": "a", "resources": {"cpu": 8}, "price_per_hour": 1},
                     {"id": "c", "state": "Configured", "cluster": "a", "resources": {"memory": 4}, "price_per_hour": 2}]}"#);
    assert_eq!(seen.claims(0), ["a", "c"]);
}

#[test]
fn creating_counts_for_its_stamp_only() {
    let world = |stamp: &str| {
        format!(
            r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 4}}}}],
            "machines": [{{"id": "m", "state": "Creating", "resources": {{"cpu": 4}}, "stamp": {stamp}}}]}}"#
        )
    };
    assert_eq!(run(&world(r#"{"need": "n"}"#)).claims(0), ["m"]);
    let fingerprint = "p=0|ipb=1|rpb=1|reqs=|spr=";
    let elsewhere = format!(r#"{{"fingerprint": "{fingerprint}", "for_cluster": "b"}}"#);
    assert!(run(&world(&elsewhere)).claims(0).is_empty());
    let other = r#"{"fingerprint": "gone", "for_cluster": "a"}"#;
    assert!(run(&world(other)).claims(0).is_empty());
}

#[test]
fn what_is_in_flight_is_not_bought_again() {
    let seen = run(r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 8}}],
        "machines": [{"id": "creating", "state": "Creating", "resources": {"cpu": 4}, "stamp": {"need": "n"}},
                     {"id": "joining", "state": "Configuring", "cluster": "a", "resources": {"cpu": 4}},
                     {"id": "spec", "state": "Speculative", "resources": {"cpu": 4}}]}"#);
    assert!(seen.actions().is_empty());
    assert!(seen.verdict(0).satisfied);
}

#[test]
fn unstamped_creating_is_reserved_after_idle_and_before_speculative() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}}],
        "machines": [{"id": "creating", "state": "Creating", "resources": {"cpu": 4}},
                     {"id": "idle", "resources": {"cpu": 4}, "price_per_hour": 5},
                     {"id": "spec", "state": "Speculative", "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.actions(), ["Bootstrap idle"]);
    assert_eq!(seen.claims(0), ["creating", "idle"]);
}

#[test]
fn a_machine_of_a_vanished_need_is_credited_to_whom_it_fits() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": 4},
                      "stamp": {"fingerprint": "gone", "priority": 7}}]}"#);
    assert_eq!(seen.claims(0), ["m"]);
}

#[test]
fn a_hard_spread_takes_free_machines_only_from_admissible_domains() {
    let seen = run(
        r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 12}, "spread": [{"topology_key": "rack"}]}],
        "machines": [{"id": "r0", "count": 3, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "r1", "state": "Speculative", "resources": {"cpu": 1}, "labels": {"rack": "r1"}}]}"#,
    );
    // One in r0; a second only once r1 has one, which is after credit.
    assert_eq!(seen.claims(0), ["r0-0", "r1"]);
}

#[test]
fn who_acquired_gives_back_what_the_next_walk_would_drop() {
    // The stamp's worth puts z first; next cycle b comes first and covers the cores.
    let stamp = |dollars: u32| {
        format!(
            r#"{{"priority": 0, "reclamation_dollars": {dollars}, "fingerprint": "p=0|ipb=1|rpb=1|reqs=|spr="}}"#
        )
    };
    let seen = run(&format!(
        r#"{{"needs": [{{"cluster": "a", "aggregate": {{"cpu": 4, "memory": 4}}}}],
        "machines": [{{"id": "z", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}, "price_per_hour": 5, "stamp": {}}},
                     {{"id": "b", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4, "memory": 2}}, "price_per_hour": 5, "stamp": {}}},
                     {{"id": "c", "resources": {{"memory": 2}}, "price_per_hour": 1}}]}}"#,
        stamp(10),
        stamp(0),
    ));
    assert_eq!(seen.claims(0), ["b", "c"]);
    assert_eq!(seen.actions(), ["Bootstrap c", "Reclaim z"]);
}

#[test]
fn who_acquired_keeps_what_serves_until_the_purchase_does() {
    let seen = run(r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 8}}],
        "machines": [{"id": "dear", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 5, "stamp": {"need": "n"}},
                     {"id": "large", "resources": {"cpu": 8}, "price_per_hour": 1}]}"#);
    assert_eq!(seen.claims(0), ["dear", "large"]);
    assert_eq!(seen.actions(), ["Bootstrap large"]);
}

/// Four machines cover, two to a rack; a fifth stands alone in the third rack.
fn spread_over(racks: [&str; 4]) -> String {
    let bound = |id: usize, rack: &str, cores: u32, price: u32| {
        format!(
            r#"{{"id": "m{id}", "state": "Configured", "cluster": "a", "resources": {{"cpu": {cores}}}, "labels": {{"rack": "{rack}"}}, "price_per_hour": {price}, "stamp": {{"need": "n"}}}}"#
        )
    };
    let mut machines: Vec<String> =
        racks.iter().enumerate().map(|(id, rack)| bound(id, rack, 8, 1)).collect();
    machines.push(bound(4, "r0", 4, 2));
    format!(
        r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 31}}, "spread": [{{"topology_key": "rack"}}]}}], "machines": [{}]}}"#,
        machines.join(", ")
    )
}

#[test]
fn a_covered_spread_keeps_its_balance() {
    let seen = run(&spread_over(["r1", "r1", "r2", "r2"]));
    assert_eq!(seen.claims(0), ["m0", "m1", "m2", "m3", "m4"]);
    assert!(seen.actions().is_empty());
}

#[test]
fn a_spread_keeps_no_surplus_for_a_balance_out_of_reach() {
    let seen = run(&spread_over(["r1", "r1", "r1", "r1"]));
    assert_eq!(seen.actions(), ["Reclaim m4"]);
}
