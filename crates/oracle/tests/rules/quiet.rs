//! §4.1, §4.3: parked and held needs, machines held back.

use crate::seen::{Seen, run};

const FINGERPRINT: &str = "p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=";

/// A gang that no rack can host.
fn hopeless(age: u32, machines: &str) -> Seen {
    run(&format!(
        r#"{{"needs": [{{"name": "g", "cluster": "a", "aggregate": {{"cpu": 40}}, "min_unit": {{"cpu": 4}}, "group": "g", "requirements": ["rack Same"]}}],
        "gang_ages": [{{"cluster": "a", "group": "g", "fingerprint": "{FINGERPRINT}", "age": {age}}}],
        "machines": [{machines}]}}"#
    ))
}

const IDLE: &str = r#"{"id": "i", "resources": {"cpu": 4}, "labels": {"rack": "r0"}}"#;
const FREE: &str = r#"{"id": "f", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0"}}"#;
const OWN: &str = r#"{"id": "o", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0"}, "stamp": {"need": "g"}}"#;

#[test]
fn a_hopeless_gang_ages_and_parks_at_eight() {
    let seven = hopeless(7, OWN);
    assert_eq!((seven.verdict(0).parked, seven.ages()), (false, vec![8]));
    let eight = hopeless(8, &[OWN, IDLE].join(","));
    assert_eq!((eight.verdict(0).parked, eight.ages()), (true, vec![9]));
    assert_eq!(eight.claims(0), ["o"]);
    assert!(eight.actions().is_empty());
}

#[test]
fn a_parked_gang_does_not_credit_free_machines() {
    let seen = hopeless(8, &[OWN, FREE].join(","));
    assert_eq!(seen.claims(0), ["o"]);
}

#[test]
fn a_parked_gang_does_not_move_for_what_it_may_not_acquire() {
    let better = r#"{"id": "i", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r1"}}"#;
    assert_eq!(hopeless(8, &[OWN, better].join(",")).domain(0), Some("r0"));
    assert_eq!(hopeless(7, &[OWN, better].join(",")).domain(0), Some("r1"));
}

#[test]
fn at_thirty_two_it_looks_again() {
    let seen = hopeless(32, &[OWN, IDLE].join(","));
    assert!(!seen.verdict(0).parked);
    assert_eq!(seen.actions(), ["Bootstrap i"]);
    assert!(seen.ages().is_empty(), "who acquires is forgotten");
    let nothing = hopeless(32, OWN);
    assert_eq!(nothing.ages(), [33]);
}

#[test]
fn only_unsatisfied_gangs_age_and_unknown_keys_are_forgotten() {
    let seen = run(&format!(
        r#"{{"needs": [{{"cluster": "a", "aggregate": {{"cpu": 8}}, "min_unit": {{"cpu": 4}}, "group": "g", "requirements": ["rack Same"]}},
                     {{"cluster": "a", "aggregate": {{"cpu": 8}}, "min_unit": {{"cpu": 4}}, "group": "h", "requirements": ["rack Same"]}}],
        "gang_ages": [{{"cluster": "a", "group": "g", "fingerprint": "{FINGERPRINT}", "age": 3}},
                      {{"cluster": "a", "group": "h", "fingerprint": "{FINGERPRINT}", "age": 3}},
                      {{"cluster": "a", "group": "gone", "fingerprint": "{FINGERPRINT}", "age": 3}}],
        "machines": [{{"id": "i", "count": 2, "resources": {{"cpu": 4}}, "labels": {{"rack": "r0"}}}}]}}"#
    ));
    // g took all; h found no domain at all and ages.
    assert_eq!(seen.ages(), [4]);
    assert_eq!(seen.verdict(1).gang_age, 4);
}

#[test]
fn a_held_need_buys_nothing_but_keeps_its_own() {
    let seen = run(r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 8}}],
        "no_acquire": [{"need": "n", "why": "NoSession"}],
        "machines": [{"id": "o", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "stamp": {"need": "n"}},
                     {"id": "i", "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.claims(0), ["o"]);
    assert!(seen.actions().is_empty());
    assert_eq!(seen.unresolved(), [(0, false)]);
}

#[test]
fn a_held_need_takes_in_the_end_what_nobody_claimed() {
    let seen = run(
        r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 8}, "priority": 5},
                               {"cluster": "a", "aggregate": {"cpu": 4}}],
        "no_acquire": [{"need": "n", "why": "BootstrapRefused"}],
        "machines": [{"id": "f", "count": 2, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}}]}"#,
    );
    assert_eq!(seen.claims(1), ["f-0"]);
    assert_eq!(seen.claims(0), ["f-1"]);
    assert!(seen.actions().is_empty());
}

#[test]
fn the_age_of_a_held_gang_stands_still() {
    let seen = run(&format!(
        r#"{{"needs": [{{"name": "g", "cluster": "a", "aggregate": {{"cpu": 40}}, "min_unit": {{"cpu": 4}}, "group": "g", "requirements": ["rack Same"]}}],
        "no_acquire": [{{"need": "g", "why": "NoSession"}}],
        "gang_ages": [{{"cluster": "a", "group": "g", "fingerprint": "{FINGERPRINT}", "age": 5}}]}}"#
    ));
    assert_eq!((seen.ages(), seen.verdict(0).gang_age), (vec![5], 5));
}

#[test]
fn a_mixed_class_folds_without_its_held_gangs() {
    let world = |held: &str| {
        format!(
            r#"{{"needs": [{{"name": "x", "cluster": "a", "aggregate": {{"cpu": 4}}, "min_unit": {{"cpu": 4}}, "group": "g1", "requirements": ["rack Same"]}},
                          {{"name": "y", "cluster": "a", "aggregate": {{"cpu": 4}}, "min_unit": {{"cpu": 4}}, "group": "g2", "requirements": ["rack Same"]}}],
            "no_acquire": [{held}],
            "machines": [{{"id": "i", "resources": {{"cpu": 8}}, "labels": {{"rack": "r0"}}}}]}}"#
        )
    };
    let mixed = run(&world(r#"{"need": "x", "why": "NoSession"}"#));
    let folded: Vec<u32> = mixed.output.verdicts.iter().map(|verdict| verdict.folded).collect();
    assert_eq!(folded, [1, 0], "the fold's fingerprint sorts first");
    assert_eq!(mixed.actions(), ["Bootstrap i"]);
    let all =
        run(&world(r#"{"need": "x", "why": "NoSession"}, {"need": "y", "why": "NoSession"}"#));
    assert_eq!(all.verdict(0).folded, 2);
    assert!(all.actions().is_empty());
}

#[test]
fn a_machine_held_back_is_no_candidate_but_still_counts() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}}],
        "held_back": {"i": "Quota", "b": "ProviderFailing"},
        "machines": [{"id": "i", "resources": {"cpu": 4}},
                     {"id": "b", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.claims(0), ["b"]);
    assert!(seen.actions().is_empty());
    assert!(seen.verdict(0).matching_supply_exists);
}
