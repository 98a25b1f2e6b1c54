//! §6.3: domain choice, one world per rule. Gangs span machines, so none folds.

use crate::seen::{Seen, run};

/// A gang of four 4-core units named `n`, unless another aggregate is given.
fn gang(machines: &str) -> Seen {
    run(&format!(
        r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 16}}, "min_unit": {{"cpu": 4}},
            "group": "g", "requirements": ["rack Same"]}}], "machines": [{machines}]}}"#
    ))
}

fn machines(id: &str, count: u32, rack: &str, more: &str) -> String {
    format!(
        r#"{{"id": "{id}", "count": {count}, "labels": {{"rack": "{rack}"}}, "resources": {{"cpu": 4}}{more}}}"#
    )
}

const BOUND: &str = r#", "state": "Configured", "cluster": "a""#;
const OWN: &str = r#", "state": "Configured", "cluster": "a", "stamp": {"need": "n"}"#;
const SPEC: &str = r#", "state": "Speculative", "price_per_hour": 1"#;

#[test]
fn rule_1_satisfiable_over_not() {
    let seen = gang(&[machines("own", 3, "r0", OWN), machines("s", 4, "r1", SPEC)].join(","));
    assert_eq!(seen.domain(0), Some("r1"));
    assert!(seen.verdict(0).satisfiable && seen.verdict(0).satisfied);
    assert_eq!(seen.action("s-0").domain_rule, 1);
}

#[test]
fn rule_2_larger_cover_by_what_is_creditable() {
    let seen = gang(
        &[
            machines("b", 1, "r0", OWN),
            machines("i", 4, "r0", ""),
            machines("f", 2, "r1", BOUND),
            machines("s", 2, "r1", SPEC),
        ]
        .join(","),
    );
    assert_eq!(seen.domain(0), Some("r1"));
    assert_eq!(seen.action("s-0").domain_rule, 2);
}

#[test]
fn rule_3_larger_cover_by_what_is_own() {
    let seen = gang(
        &[
            machines("f", 2, "r0", BOUND),
            machines("i", 2, "r0", ""),
            machines("o", 2, "r1", OWN),
            machines("s", 2, "r1", SPEC),
        ]
        .join(","),
    );
    assert_eq!(seen.domain(0), Some("r1"));
    assert_eq!(seen.action("s-0").domain_rule, 3);
}

#[test]
fn rule_4_what_is_paid_for_then_the_smaller_load() {
    let paid = gang(&[machines("s", 4, "r0", SPEC), machines("i", 4, "r1", "")].join(","));
    assert_eq!(paid.domain(0), Some("r1"));
    assert_eq!(paid.action("i-0").domain_rule, 4);
    let load = gang(&[machines("s", 5, "r0", SPEC), machines("t", 4, "r1", SPEC)].join(","));
    assert_eq!(load.domain(0), Some("r1"));
}

#[test]
fn rule_5_neither_satisfiable_the_larger_cover() {
    let seen = gang(&[machines("o", 2, "r0", OWN), machines("s", 3, "r1", SPEC)].join(","));
    assert_eq!(seen.domain(0), Some("r1"));
    assert!(!seen.verdict(0).satisfiable);
    assert_eq!(seen.action("s-0").domain_rule, 5);
}

#[test]
fn rule_6_between_equals_nothing_moves() {
    let credit = gang(
        &[
            machines("s", 2, "r0", SPEC),
            machines("f", 1, "r1", BOUND),
            machines("t", 1, "r1", SPEC),
        ]
        .join(","),
    );
    assert_eq!(credit.domain(0), Some("r1"));
    let own = gang(&[machines("f", 2, "r0", BOUND), machines("o", 2, "r1", OWN)].join(","));
    assert_eq!(own.domain(0), Some("r1"));
}

#[test]
fn rule_7_the_larger_count_then_the_smaller_value() {
    let big = r#"{"id": "big", "state": "Speculative", "labels": {"rack": "r0"}, "resources": {"cpu": 8}}"#;
    let count = gang(&format!("{big},{}", machines("s", 2, "r1", SPEC)));
    assert_eq!(count.domain(0), Some("r1"));
    let value = gang(&[machines("s", 2, "r1", SPEC), machines("t", 2, "r0", SPEC)].join(","));
    assert_eq!(value.domain(0), Some("r0"));
}

#[test]
fn several_same_keys_make_one_domain() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "requirements": ["rack Same", "row Same"]}],
        "machines": [{"id": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0", "row": "x"}},
                     {"id": "b", "resources": {"cpu": 4}, "labels": {"rack": "r0", "row": "y"}},
                     {"id": "c", "count": 2, "resources": {"cpu": 4}, "labels": {"rack": "r1", "row": "y"}}]}"#,
    );
    assert_eq!(seen.claims(0), ["c-0", "c-1"]);
    assert_eq!(seen.verdict(0).domain.as_ref().unwrap().len(), 2);
}

#[test]
fn an_earlier_gang_consumes_what_it_would_take() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g1", "requirements": ["rack Same"], "arrival": 1},
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g2", "requirements": ["rack Same"], "arrival": 2}],
        "machines": [{"id": "x", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "y", "count": 2, "state": "Speculative", "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#);
    assert_eq!(seen.claims(0), ["x-0", "x-1"]);
    assert_eq!(seen.claims(1), ["y-0", "y-1"]);
}

#[test]
fn a_second_look_finds_what_tier_mates_left() {
    let seen = run(r#"{"needs": [
            {"name": "p", "cluster": "a", "aggregate": {"cpu": 4}, "arrival": 1},
            {"cluster": "a", "aggregate": {"cpu": 16}, "min_unit": {"cpu": 4}, "group": "g", "requirements": ["rack Same"], "arrival": 2}],
        "machines": [{"id": "m", "count": 2, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0"}, "stamp": {"need": "p"}}]}"#);
    assert_eq!(seen.claims(0), ["m-0"]);
    assert_eq!(seen.claims(1), ["m-1"]);
    assert_eq!(seen.domain(1), Some("r0"));
}
