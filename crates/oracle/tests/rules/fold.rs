//! §4.2: folding sub-machine gangs.

use crate::seen::run;

#[test]
fn gangs_of_one_class_fold_into_one_plain_need() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 2, "memory": "1500m"}, "min_unit": {"cpu": 1}, "group": "g1", "requirements": ["rack Same"], "arrival": 5},
            {"cluster": "a", "aggregate": {"cpu": 2, "memory": "1500m"}, "min_unit": {"cpu": 1}, "group": "g2", "requirements": ["rack Same"], "arrival": 3}],
        "machines": [{"id": "m", "resources": {"cpu": 4, "memory": 4}, "labels": {"rack": "r0"}},
                     {"id": "unlabelled", "resources": {"cpu": 4, "memory": 4}}]}"#);
    assert_eq!(seen.output.verdicts.len(), 1);
    let fold = seen.verdict(0);
    assert_eq!((fold.folded, &*fold.group), (2, "fold:cpu=2000,memory=1500"));
    assert_eq!(&*fold.fingerprint, "p=0|ipb=1|rpb=1|reqs=rack:3:;|spr=");
    assert_eq!(seen.actions(), ["Bootstrap m"]);
    assert!(fold.satisfied && fold.domain.is_none());
}

#[test]
fn listed_values_fold_into_in() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 2}, "min_unit": {"cpu": 2}, "requirements": ["rack Same r0,r1"]}],
        "machines": [{"id": "m", "resources": {"cpu": 4}, "labels": {"rack": "r2"}}]}"#,
    );
    assert_eq!(&*seen.verdict(0).fingerprint, "p=0|ipb=1|rpb=1|reqs=rack:1:r0,r1;|spr=");
    assert!(!seen.verdict(0).satisfied);
}

#[test]
fn machines_give_whole_units_only() {
    // Ten 7-core gangs are not served by seven 10-core machines.
    let needs: Vec<String> = (0..10)
        .map(|n| format!(r#"{{"cluster": "a", "aggregate": {{"cpu": 7}}, "min_unit": {{"cpu": 7}}, "group": "g{n}", "requirements": ["rack Same"]}}"#))
        .collect();
    let seen = run(&format!(
        r#"{{"needs": [{}], "machines": [{{"id": "m", "count": 7, "state": "Configured", "cluster": "a", "resources": {{"cpu": 10}}, "labels": {{"rack": "r0"}}}}]}}"#,
        needs.join(",")
    ));
    assert_eq!(seen.verdict(0).claimed, 7);
    assert_eq!(seen.verdict(0).deficit.by_name()[..], [("cpu", 21_000)]);
}

#[test]
fn a_spanning_gang_without_a_place_leaves_the_fold() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g1", "requirements": ["rack Same"], "arrival": 1},
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g2", "requirements": ["rack Same"], "arrival": 2}],
        "machines": [{"id": "big", "resources": {"cpu": 8}, "labels": {"rack": "r0"}},
                     {"id": "small", "count": 2, "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#);
    let folded: Vec<u32> = seen.output.verdicts.iter().map(|verdict| verdict.folded).collect();
    assert_eq!(folded, [1, 0]);
    assert_eq!(seen.claims(0), ["big"]);
    assert_eq!(seen.claims(1), ["small-0", "small-1"]);
}

#[test]
fn single_unit_gangs_never_leave() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 4}, "min_unit": {"cpu": 4}, "group": "g1", "requirements": ["rack Same"]},
            {"cluster": "a", "aggregate": {"cpu": 4}, "min_unit": {"cpu": 4}, "group": "g2", "requirements": ["rack Same"]}],
        "machines": [{"id": "m", "resources": {"cpu": 4}, "labels": {"rack": "r0"}}]}"#);
    assert_eq!((seen.verdict(0).folded, seen.verdict(0).satisfied), (2, false));
}

#[test]
fn a_gang_served_by_parts_does_not_fold() {
    let seen = run(
        r#"{"needs": [{"name": "g", "cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g1", "requirements": ["rack Same"]}],
        "machines": [{"id": "big", "resources": {"cpu": 8}, "labels": {"rack": "r0"}},
                     {"id": "own", "count": 2, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "labels": {"rack": "r1"}, "stamp": {"need": "g"}}]}"#,
    );
    assert_eq!(seen.verdict(0).folded, 0);
    assert_eq!(seen.claims(0), ["own-0", "own-1"]);
    assert!(seen.actions().is_empty());
}

#[test]
fn who_owns_a_whole_machine_stays_longer_than_who_owns_nothing() {
    let seen = run(r#"{"needs": [
            {"name": "none", "cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g1", "requirements": ["rack Same"], "arrival": 1},
            {"name": "whole", "cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g2", "requirements": ["rack Same"], "arrival": 2}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": 8}, "labels": {"rack": "r0"}, "stamp": {"need": "whole"}}]}"#);
    // Sorted: the gang of arrival 1, then the fold of the one that arrived at 2.
    assert_eq!((seen.verdict(0).folded, &*seen.verdict(0).group), (0, "g1"));
    assert_eq!((seen.verdict(1).folded, seen.verdict(1).satisfied), (1, true));
    assert_eq!(seen.claims(1), ["m"]);
}

#[test]
fn a_fold_owns_what_its_members_or_itself_were_stamped_with() {
    let world = |stamp: &str| {
        format!(
            r#"{{"needs": [{{"name": "g", "cluster": "a", "aggregate": {{"cpu": 4}}, "min_unit": {{"cpu": 4}}, "group": "g1", "requirements": ["rack Same"]}}],
            "machines": [{{"id": "cheap", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}, "labels": {{"rack": "r0"}}}},
                         {{"id": "own", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}, "labels": {{"rack": "r0"}}, "price_per_hour": 1, "stamp": {stamp}}}]}}"#
        )
    };
    assert_eq!(run(&world(r#"{"need": "g"}"#)).claims(0), ["own"]);
    let folded =
        r#"{"fingerprint": "p=0|ipb=1|rpb=1|reqs=rack:3:;|spr=", "group": "fold:cpu=4000"}"#;
    assert_eq!(run(&world(folded)).claims(0), ["own"]);
}

#[test]
fn a_machine_that_a_higher_tier_holds_is_no_place() {
    let seen = run(r#"{"needs": [
            {"cluster": "a", "aggregate": {"cpu": 8}, "priority": 9},
            {"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g", "requirements": ["rack Same"]}],
        "machines": [{"id": "big", "resources": {"cpu": 8}, "labels": {"rack": "r0"}},
                     {"id": "small", "count": 2, "resources": {"cpu": 4}, "labels": {"rack": "r0"}, "price_per_hour": 2}]}"#);
    assert_eq!(seen.claims(0), ["big"]);
    assert_eq!(seen.claims(1), ["small-0", "small-1"]);
    assert_eq!(seen.verdict(1).folded, 0);
}
