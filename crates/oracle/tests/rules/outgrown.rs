//! §6.5, §8: machines that a need outgrew.

use crate::seen::{Seen, run};

/// Of cluster `a`, four cores each, with the stamp of need `n`.
fn own(id: &str, count: u32) -> String {
    format!(
        r#"{{"id": "{id}", "count": {count}, "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}, "price_per_hour": 1, "stamp": {{"need": "n"}}}}"#
    )
}

/// Need `n` of cluster `a`, one request of which wants `unit` cores, beside what else
/// is there.
fn with_unit(aggregate: u32, unit: u32, more_needs: &str, machines: &str) -> Seen {
    run(&format!(
        r#"{{"needs": [{{"name": "n", "cluster": "a", "priority": 100, "aggregate": {{"cpu": {aggregate}}}, "min_unit": {{"cpu": {unit}}}}}{more_needs}],
            "machines": [{machines}]}}"#
    ))
}

fn outgrown(seen: &Seen) -> Vec<&str> {
    seen.output.outgrown.keys().map(|machine| machine.as_str()).collect()
}

#[test]
fn a_request_that_fits_no_machine_takes_none_from_the_others() {
    let reason = |seen: &Seen| seen.verdict(0).reason.map(|reason| format!("{reason:?}"));
    let seen = with_unit(502, 500, "", &own("m", 1));
    assert_eq!(outgrown(&seen), ["m-0"]);
    assert!(seen.actions().is_empty() && seen.claims(0).is_empty());
    assert_eq!(reason(&seen).as_deref(), Some("NoMatchingSupply"));
    assert_eq!(seen.verdict(0).deficit.by_name().to_vec(), [("cpu", 502_000)]);
    // Nor where nobody knows any more whose it was.
    let unstamped =
        r#"{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}}"#;
    let seen = with_unit(502, 500, "", unstamped);
    assert!(seen.actions().is_empty() && outgrown(&seen).is_empty());
    assert_eq!(reason(&seen).as_deref(), Some("NoMatchingSupply"));
}

#[test]
fn no_more_stays_than_is_wanted() {
    let seen = with_unit(12, 10, "", &own("m", 5));
    assert_eq!(outgrown(&seen), ["m-0", "m-1", "m-2"]);
    assert_eq!(seen.actions(), ["Reclaim m-4", "Reclaim m-3"]);
    let unstamped = r#"{"id": "m", "count": 5, "state": "Configured", "cluster": "a", "resources": {"cpu": 4}}"#;
    let seen = with_unit(12, 10, "", unstamped);
    assert_eq!(seen.actions(), ["Reclaim m-4", "Reclaim m-3"]);
}

#[test]
fn what_a_need_outgrew_stays_until_what_replaces_it_is_configured() {
    let large = |state: &str, stamp: &str| {
        let bound = if state == "Configured" { r#""cluster": "a","# } else { "" };
        format!(
            r#"{}, {{"id": "large", "state": "{state}", {bound} "resources": {{"cpu": 16}}, "price_per_hour": 3 {stamp}}}"#,
            own("m", 2)
        )
    };
    let bought = with_unit(10, 8, "", &large("Speculative", ""));
    assert_eq!(bought.actions(), ["Provision large"]);
    assert_eq!(outgrown(&bought), ["m-0", "m-1"]);
    let stamp = r#", "stamp": {"need": "n"}"#;
    let under_way = with_unit(10, 8, "", &large("Creating", stamp));
    assert!(under_way.actions().is_empty());
    assert_eq!(outgrown(&under_way), ["m-0", "m-1"]);
    let there = with_unit(10, 8, "", &large("Configured", stamp));
    assert_eq!(there.actions(), ["Reclaim m-1", "Reclaim m-0"]);
}

#[test]
fn it_stays_while_what_would_replace_it_cannot_be_had() {
    let machines = format!(
        r#"{}, {{"id": "large", "state": "Speculative", "resources": {{"cpu": 16}}}}"#,
        own("m", 2)
    );
    let seen = run(&format!(
        r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 10}}, "min_unit": {{"cpu": 8}}}}],
            "held_back": {{"large": "Quota"}}, "machines": [{machines}]}}"#
    ));
    assert!(seen.actions().is_empty());
    assert_eq!(outgrown(&seen), ["m-0", "m-1"]);
}

#[test]
fn neither_equals_nor_lower_needs_are_counted_on_it() {
    for priority in [100, 50] {
        let other = format!(
            r#", {{"name": "other", "cluster": "a", "priority": {priority}, "requirements": ["zone DoesNotExist"], "aggregate": {{"cpu": 8}}}}"#
        );
        let machines =
            format!(r#"{}, {{"id": "idle", "count": 2, "resources": {{"cpu": 4}}}}"#, own("m", 2));
        let seen = with_unit(502, 500, &other, &machines);
        assert_eq!(outgrown(&seen), ["m-0", "m-1"], "priority {priority}");
        assert_eq!(seen.actions(), ["Bootstrap idle-0", "Bootstrap idle-1"]);
    }
}

#[test]
fn higher_needs_take_it_as_ever() {
    let higher =
        r#", {"name": "other", "cluster": "a", "priority": 1000, "aggregate": {"cpu": 4}}"#;
    let seen = with_unit(502, 500, higher, &own("m", 2));
    assert_eq!((seen.claims(0), outgrown(&seen)), (vec!["m-0"], vec!["m-1"]));
    // Of another cluster, after those that are worth less.
    let higher = r#", {"name": "other", "cluster": "b", "priority": 1000, "aggregate": {"cpu": 4}},
        {"name": "low", "cluster": "a", "priority": 10, "aggregate": {"cpu": 4}}"#;
    let low = r#", {"id": "low", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "stamp": {"need": "low"}}"#;
    let seen = with_unit(502, 500, higher, &(own("m", 2) + low));
    assert_eq!(outgrown(&seen), ["m-0", "m-1"]);
    assert_eq!(seen.actions(), ["Preempt low"]);
    let higher =
        r#", {"name": "other", "cluster": "b", "priority": 1000, "aggregate": {"cpu": 4}}"#;
    let seen = with_unit(502, 500, higher, &own("m", 2));
    assert_eq!(seen.actions(), ["Preempt m-0"]);
}

#[test]
fn of_machines_that_are_not_its_own_only_those_of_its_kind_stay() {
    // What waits for an accelerator does not hold up the shrinking of all others.
    let world = |stamp: &str| {
        run(&format!(
            r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 8, "gpu": 1}}, "min_unit": {{"cpu": 8, "gpu": 1}}}}],
                "machines": [{{"id": "m", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}} {stamp}}}]}}"#
        ))
    };
    assert_eq!(world("").actions(), ["Reclaim m"]);
    assert!(world(r#", "stamp": {"need": "n"}"#).actions().is_empty());
}

#[test]
fn a_gang_without_a_domain_keeps_what_it_runs_on() {
    let seen = run(
        r#"{"needs": [{"name": "g", "cluster": "a", "group": "g", "requirements": ["rack Same"], "aggregate": {"cpu": 508}, "min_unit": {"cpu": 500}}],
            "machines": [{"id": "m", "count": 2, "state": "Configured", "cluster": "a", "labels": {"rack": "r"}, "resources": {"cpu": 4}, "stamp": {"need": "g"}},
                         {"id": "x", "state": "Configured", "cluster": "a", "labels": {"rack": "r"}, "resources": {"cpu": 4}}]}"#,
    );
    assert_eq!(outgrown(&seen), ["m-0", "m-1"]);
    assert_eq!(seen.actions(), ["Reclaim x"]);
}
