//! §8: reclaim and release.

use crate::seen::run;

#[test]
fn an_awaited_machine_stays_until_its_replacement_is_there() {
    // The own machine is on its way; the free one serves meanwhile.
    let world = |state: &str| {
        format!(
            r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 4}}}}],
            "machines": [{{"id": "own", "state": "{state}", "cluster": "a", "resources": {{"cpu": 4}}, "stamp": {{"need": "n"}}}},
                         {{"id": "x", "state": "Configured", "cluster": "a", "resources": {{"cpu": 4}}}}]}}"#
        )
    };
    let under_way = run(&world("Configuring"));
    assert_eq!(under_way.claims(0), ["own"]);
    assert!(under_way.actions().is_empty());
    assert_eq!(run(&world("Configured")).actions(), ["Reclaim x"]);
}

#[test]
fn reclaims_go_by_cluster_the_dearest_first() {
    let seen = run(r#"{"machines": [
            {"id": "b1", "state": "Configured", "cluster": "b", "resources": {"cpu": 4}, "price_per_hour": 9},
            {"id": "a1", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 1},
            {"id": "a2", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 2},
            {"id": "a3", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}, "price_per_hour": 1, "stamp": {"reclamation_dollars": 5}},
            {"id": "a4", "state": "Configuring", "cluster": "a", "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.actions(), ["Reclaim a2", "Reclaim a1", "Reclaim a3", "Reclaim b1"]);
    assert_eq!(seen.grace("a1"), 600);
}

#[test]
fn a_cluster_that_has_not_reported_keeps_everything() {
    let seen = run(
        r#"{"ready": [], "machines": [{"id": "m", "state": "Configured", "cluster": "a", "resources": {"cpu": 4}}]}"#,
    );
    assert!(seen.actions().is_empty());
}

#[test]
fn idle_machines_leave_after_their_hold() {
    let seen = run(r#"{"now": 1000, "machines": [
            {"id": "od-old", "capacity_type": "OnDemand", "idle_since": 400},
            {"id": "od-new", "capacity_type": "OnDemand", "idle_since": 401},
            {"id": "spot-old", "capacity_type": "Spot", "idle_since": 940},
            {"id": "spot-new", "capacity_type": "Spot", "idle_since": 941},
            {"id": "unknown", "capacity_type": "Spot"},
            {"id": "owned", "capacity_type": "BareMetal", "idle_since": 0},
            {"id": "reserved", "capacity_type": "Reserved", "idle_since": 0},
            {"id": "unspecified", "idle_since": 0}]}"#);
    assert_eq!(seen.actions(), ["Delete od-old", "Delete spot-old"]);
    let never = run(r#"{"now": 1000, "options": {"hold_spot_seconds": 0},
        "machines": [{"id": "m", "capacity_type": "Spot", "idle_since": 0}]}"#);
    assert!(never.actions().is_empty());
}

#[test]
fn a_claimed_idle_machine_is_not_released() {
    let seen = run(r#"{"now": 1000, "needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "m", "capacity_type": "Spot", "idle_since": 0, "resources": {"cpu": 4}}]}"#);
    assert_eq!(seen.actions(), ["Bootstrap m"]);
}
