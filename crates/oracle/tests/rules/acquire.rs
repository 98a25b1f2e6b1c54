//! §6.4, §10: acquisition.

use crate::seen::run;

#[test]
fn cost_per_covered_share_decides() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 100}}],
        "machines": [{"id": "small", "count": 60, "state": "Speculative", "resources": {"cpu": 2}, "price_per_hour": 0.1},
                     {"id": "large", "state": "Speculative", "resources": {"cpu": 96}, "price_per_hour": 3}]}"#);
    // $3.125 for the whole on the large one, $5 on the small ones; then two small
    // ones fit the remainder.
    assert_eq!(seen.actions(), ["Provision large", "Provision small-0", "Provision small-1"]);
}

#[test]
fn idle_goes_before_a_cheaper_speculative_one() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "spec", "state": "Speculative", "resources": {"cpu": 4}, "price_per_hour": 1},
                     {"id": "idle", "resources": {"cpu": 4}, "price_per_hour": 2}]}"#);
    assert_eq!(seen.actions(), ["Bootstrap idle"]);
    assert_eq!(seen.action("idle").runner_up_cost, Some(1.0));
}

#[test]
fn unasked_scarce_dimensions_go_last() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "a-gpu", "resources": {"cpu": 4, "nvidia.com/gpu": 8}},
                     {"id": "b-plain", "resources": {"cpu": 4, "memory": 1, "hugepages-2Mi": 1}}]}"#);
    assert_eq!(seen.actions(), ["Bootstrap b-plain"]);
    let asked = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "min_unit": {"nvidia.com/gpu": 1}}],
        "machines": [{"id": "gpu", "resources": {"cpu": 4, "nvidia.com/gpu": 8}},
                     {"id": "both", "resources": {"cpu": 4, "nvidia.com/gpu": 8, "tpu": 1}}]}"#,
    );
    assert_eq!(asked.actions(), ["Bootstrap gpu"]);
}

#[test]
fn owned_capacity_is_taken_by_fit() {
    let covering = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "a", "resources": {"cpu": 2}}, {"id": "b", "resources": {"cpu": 16}},
                     {"id": "c", "resources": {"cpu": 6}}]}"#);
    assert_eq!(covering.actions(), ["Bootstrap c"]);
    let others = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 40}}],
        "machines": [{"id": "a", "resources": {"cpu": 8}}, {"id": "b", "resources": {"cpu": 32}},
                     {"id": "c", "resources": {"cpu": 16}}]}"#);
    assert_eq!(others.actions(), ["Bootstrap a", "Bootstrap b"]);
}

#[test]
fn interruption_counts_by_penalty() {
    let world = |penalty: &str| {
        format!(
            r#"{{"needs": [{{"cluster": "a", "aggregate": {{"cpu": 4}}, "interruption_penalty": {penalty}}}],
            "machines": [{{"id": "spot", "resources": {{"cpu": 4}}, "price_per_hour": 0.3, "interruption_probability": 0.3}},
                         {{"id": "stable", "resources": {{"cpu": 4}}, "price_per_hour": 1}}]}}"#
        )
    };
    assert_eq!(run(&world("0")).actions(), ["Bootstrap spot"]);
    assert_eq!(run(&world("8")).actions(), ["Bootstrap stable"]);
    let pinned = run(&world("\"pinned\""));
    assert_eq!(pinned.actions(), ["Bootstrap stable"]);
    assert_eq!(pinned.action("stable").runner_up_cost, None, "an infinite one is none");
}

#[test]
fn a_spread_picks_the_first_in_an_admissible_domain() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 12}, "spread": [{"topology_key": "rack"}]}],
        "machines": [{"id": "i", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "s", "state": "Speculative", "resources": {"cpu": 4}, "labels": {"rack": "r1"}, "price_per_hour": 1},
                     {"id": "u", "resources": {"cpu": 4}}]}"#,
    );
    assert_eq!(seen.actions(), ["Bootstrap i-0", "Bootstrap i-1", "Provision s"]);
}

#[test]
fn a_spread_without_an_admissible_domain_stops() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 12}, "spread": [{"topology_key": "rack"}]}],
        "machines": [{"id": "i", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "s", "state": "Speculative", "resources": {"cpu": 2}, "labels": {"rack": "r1"}}]}"#,
    );
    assert_eq!(seen.claims(0), ["i-0", "i-1", "s"]);
    assert!(!seen.verdict(0).satisfied);
}

#[test]
fn a_soft_spread_is_none() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}, "spread": [{"topology_key": "rack", "when_unsatisfiable": "ScheduleAnyway"}]}],
        "machines": [{"id": "i", "count": 2, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "s", "state": "Speculative", "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#,
    );
    assert_eq!(seen.actions(), ["Bootstrap i-0", "Bootstrap i-1"]);
}

#[test]
fn trim_drops_what_later_picks_made_needless() {
    // By share: first the machine strong in memory, then the one strong in both.
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8, "memory": 8}}],
        "machines": [{"id": "half", "resources": {"cpu": 4, "memory": 4}, "price_per_hour": 1},
                     {"id": "whole", "resources": {"cpu": 8, "memory": 8}, "price_per_hour": 3}]}"#);
    assert_eq!(seen.actions(), ["Bootstrap whole"]);
}

#[test]
fn a_gang_takes_what_it_gets_in_its_domain() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 16}, "min_unit": {"cpu": 4}, "group": "g", "requirements": ["rack Same"]}],
        "machines": [{"id": "x", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "y", "count": 2, "resources": {"cpu": 4}, "labels": {"rack": "r1"}}]}"#,
    );
    assert_eq!(seen.claims(0), ["x-0", "x-1", "x-2"]);
    assert!(!seen.verdict(0).satisfied);
}

#[test]
fn trim_of_a_spread_repeats_until_nothing_goes() {
    // b goes only once a is gone: with a and c in r0 its own rack may not be empty.
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 10}, "spread": [{"topology_key": "rack"}]}],
        "machines": [{"id": "a", "resources": {"cpu": 4}, "labels": {"rack": "r0"}, "price_per_hour": 1},
                     {"id": "b", "resources": {"cpu": 4}, "labels": {"rack": "r1"}, "price_per_hour": 1},
                     {"id": "c", "resources": {"cpu": 16}, "labels": {"rack": "r0"}, "price_per_hour": 9}]}"#,
    );
    assert_eq!(seen.actions(), ["Bootstrap c"]);
}
