//! §9: reasons and details.

use bigfleet_engine::{Detail, Outcome, Reason};

use crate::seen::{Seen, run};

fn why(seen: &Seen) -> (Option<Reason>, Option<Detail>) {
    (seen.verdict(0).reason, seen.verdict(0).detail)
}

#[test]
fn satisfied_needs_have_no_reason() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "m", "state": "Speculative", "resources": {"cpu": 4}}]}"#);
    assert_eq!(why(&seen), (None, None));
    assert_eq!(seen.verdict(0).outcome, Outcome::EmittedSpec);
}

#[test]
fn no_matching_supply() {
    let seen =
        run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}, "min_unit": {"cpu": 8}}],
        "machines": [{"id": "m", "resources": {"cpu": 4}}]}"#);
    assert_eq!(why(&seen), (Some(Reason::NoMatchingSupply), None));
}

#[test]
fn a_failed_machine_is_matching_supply() {
    let seen = run(r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 4}}],
        "machines": [{"id": "m", "state": "Failed", "resources": {"cpu": 4}}]}"#);
    assert_eq!(why(&seen), (Some(Reason::PriorityStarved), None));
}

#[test]
fn a_gang_no_domain_can_host() {
    let seen = run(
        r#"{"needs": [{"cluster": "a", "aggregate": {"cpu": 8}, "min_unit": {"cpu": 4}, "group": "g", "requirements": ["rack Same"]}],
        "machines": [{"id": "m", "resources": {"cpu": 4}, "labels": {"rack": "r0"}}]}"#,
    );
    assert_eq!(why(&seen), (Some(Reason::TopologyUnsatisfiable), None));
}

#[test]
fn a_hard_spread_that_stopped_acquisition() {
    let seen = run(
        r#"{"needs": [{"name": "n", "cluster": "a", "aggregate": {"cpu": 12}, "spread": [{"topology_key": "rack"}]}],
        "machines": [{"id": "i", "count": 3, "resources": {"cpu": 4}, "labels": {"rack": "r0"}},
                     {"id": "b", "state": "Configured", "cluster": "a", "resources": {"cpu": 1}, "labels": {"rack": "r1"}, "stamp": {"need": "n"}}]}"#,
    );
    let expected = (Some(Reason::TopologyUnsatisfiable), Some(Detail::SpreadUnsatisfiable));
    assert_eq!(why(&seen), expected);
}

#[test]
fn preemption_exhausted_and_under_way() {
    let world = |cpu: u32| {
        format!(
            r#"{{"needs": [{{"cluster": "a", "aggregate": {{"cpu": {cpu}}}, "priority": 9}}, {{"cluster": "b", "aggregate": {{"cpu": 4}}}}],
            "machines": [{{"id": "m", "state": "Configured", "cluster": "b", "resources": {{"cpu": 4}}}}]}}"#
        )
    };
    assert_eq!(why(&run(&world(8))), (Some(Reason::PreemptionExhausted), None));
    let closed = (Some(Reason::PriorityStarved), Some(Detail::PreemptionUnderWay));
    assert_eq!(why(&run(&world(4))), closed);
}

#[test]
fn held_and_held_back() {
    let world = |more: &str| {
        format!(
            r#"{{"needs": [{{"name": "n", "cluster": "a", "aggregate": {{"cpu": 8}}}}],
            "machines": [{{"id": "i", "resources": {{"cpu": 4}}}}, {{"id": "j", "resources": {{"cpu": 4}}}}], {more}}}"#
        )
    };
    let starved = Some(Reason::PriorityStarved);
    for (more, detail) in [
        (r#""no_acquire": [{"need": "n", "why": "NoSession"}]"#, Detail::NoSession),
        (r#""no_acquire": [{"need": "n", "why": "BootstrapRefused"}]"#, Detail::BootstrapRefused),
        (r#""held_back": {"i": "ProviderFailing", "j": "Quota"}"#, Detail::ProviderFailing),
        (r#""held_back": {"j": "Quota"}"#, Detail::QuotaExhausted),
    ] {
        assert_eq!(why(&run(&world(more))), (starved, Some(detail)), "{more}");
    }
}
