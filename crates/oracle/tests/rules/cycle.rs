//! §3, §14, §17: one cycle as a whole.

use bigfleet_engine::json::{print_output, read_world};
use bigfleet_oracle::decide;

use crate::seen::run;

#[test]
fn the_example_of_the_json_form() {
    let seen = run(
        r#"{"needs": [{"name": "web", "cluster": "a", "aggregate": {"cpu": "8"}, "min_unit": {"cpu": "500m"}}],
        "machines": [{"id": "small", "count": 3, "resources": {"cpu": "4", "memory": "16Gi"}, "price_per_hour": 0.2},
                     {"id": "big", "state": "Speculative", "resources": {"cpu": "16"}, "price_per_hour": 0.7}]}"#,
    );
    assert_eq!(seen.actions(), ["Bootstrap small-0", "Bootstrap small-1"]);
    // The share was a half, then all: big would have cost 0.7 × 0.5, then 0.7.
    assert_eq!(seen.action("small-0").runner_up_cost, Some(0.35));
    assert_eq!(seen.action("small-1").runner_up_cost, Some(0.7));
}

#[test]
fn an_empty_world_decides_nothing() {
    assert!(run("{}").actions().is_empty());
}

#[test]
fn the_decision_pending_is_not_decided_again() {
    let world = r#"{"needs": [{"name": "web", "cluster": "a", "aggregate": {"cpu": "8"}}],
        "machines": [{"id": "i", "resources": {"cpu": "4"}},
                     {"id": "s", "state": "Speculative", "resources": {"cpu": "4"}, "price_per_hour": 1}],
        "pending": PENDING}"#;
    let first = world.replace("PENDING", "[]");
    let first = decide(&read_world(&first).unwrap());
    let printed: serde_json::Value = serde_json::from_str(&print_output(&first, false)).unwrap();
    assert_eq!(printed["actions"].as_array().unwrap().len(), 2);
    let second = run(&world.replace("PENDING", &printed["actions"].to_string()));
    assert!(second.actions().is_empty());
    assert_eq!(second.claims(0), ["i", "s"]);
}

#[test]
fn a_pending_entry_that_already_happened_changes_nothing() {
    let seen = run(r#"{"needs": [{"name": "web", "cluster": "a", "aggregate": {"cpu": "4"}}],
        "machines": [{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": "4"}}],
        "pending": [{"kind": "Bootstrap", "machine": "m", "cluster": "b", "stamp": {"need": "web"}},
                    {"kind": "Delete", "machine": "none"}]}"#);
    assert_eq!(seen.claims(0), ["m"]);
    assert!(seen.actions().is_empty());
}

#[test]
fn a_zero_aggregate_is_satisfied_and_claims_nothing() {
    let seen = run(r#"{"needs": [{"cluster": "a", "min_unit": {"cpu": 1}}],
        "machines": [{"id": "m", "resources": {"cpu": 4}}]}"#);
    assert!(seen.verdict(0).satisfied);
    assert!(seen.output.claims.is_empty());
}
