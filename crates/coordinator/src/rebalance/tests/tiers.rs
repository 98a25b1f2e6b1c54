//! Who is served, and how dearly.

use bigfleet_model::{Operator, machine::ZONE_LABEL};

use super::*;

fn slots(speculative: i32) -> wire::PoolRow {
    wire::PoolRow { speculative, ..idle("m", "a", 0) }
}

fn busy(configured: i32, min_priority: i32, min_bucket: i32) -> wire::PoolRow {
    wire::PoolRow {
        configured,
        min_priority,
        min_interruption_bucket: min_bucket,
        ..idle("m", "a", 0)
    }
}

#[test]
fn only_what_has_lacked_long_enough_is_served() {
    for (age, expected) in [(5, &[][..]), (6, &["a→r 1 Idle m/a"])] {
        let mut fleet = fleet().has("a", idle("m", "a", 20)).lacks("r", cores(4, age));
        assert_eq!(fleet.pass(), expected, "{age} cycles");
    }
}

#[test]
fn coordinator_inv_i6_what_must_stay_together_stays() {
    let same = |values: &[&str]| requirement(ZONE_LABEL, Operator::Same, values);
    for requirements in [vec![same(&[])], vec![same(&["a"])], vec![same(&[]), same(&["a"])]] {
        let mut fleet = fleet()
            .has("a", wire::PoolRow { speculative: 50, ..busy(500, 0, 1) })
            .has("b", idle("m", "a", 50))
            .lacks("r", wire::Shortfall { requirements, ..cores(4, 100) });
        let outcome = fleet.outcome();
        assert!(outcome.begin.is_empty());
        assert_eq!(outcome.skipped, [(Skip::Same, 1)].into());
    }
}

#[test]
fn the_more_important_is_served_first_then_the_older_then_by_name() {
    let of = |priority, age_cycles| wire::Shortfall { priority, ..cores(8, age_cycles) };
    let mut fleet = fleet()
        .has("a", idle("m", "a", 10))
        .lacks("u", of(100, 7))
        .lacks("t", of(100, 6))
        .lacks("s", of(100, 6))
        .lacks("r", of(200, 6))
        .lacks("q", of(50, 99));
    let expected =
        ["a→r 2 Idle m/a", "a→u 2 Idle m/a", "a→s 2 Idle m/a", "a→t 2 Idle m/a", "a→q 1 Idle m/a"];
    assert_eq!(fleet.pass(), expected);
}

#[test]
fn slots_come_after_machines() {
    let mut fleet =
        fleet().has("a", idle("m", "a", 3)).has("b", slots(10)).lacks("r", cores(4 * 6, 6));
    assert_eq!(fleet.pass(), ["a→r 2 Idle m/a", "b→r 4 Speculative m/a"]);
    for (max_tier, expected) in
        [(1, &["a→r 2 Idle m/a"][..]), (2, &["a→r 2 Idle m/a", "b→r 4 Speculative m/a"])]
    {
        let mut fleet = Fleet::new(Settings { max_tier, ..Settings::default() })
            .has("a", idle("m", "a", 3))
            .has("b", slots(10))
            .lacks("r", cores(4 * 6, 6));
        assert_eq!(fleet.pass(), expected, "up to tier {max_tier}");
    }
}

#[test]
fn work_yields_only_if_nothing_else_is_offered() {
    for (others, age, max_tier, expected) in [
        (None, 13, 3, &["a→r 5 Drain m/a"][..]),
        (None, 12, 3, &[]),
        (None, 13, 2, &[]),
        (Some(idle("m", "a", 2)), 13, 3, &["b→r 1 Idle m/a"]),
        (Some(slots(2)), 13, 3, &["b→r 1 Speculative m/a"]),
    ] {
        let mut fleet = Fleet::new(Settings { max_tier, ..Settings::default() })
            .has("a", busy(500, 50, 5))
            .lacks("r", cores(4 * 6, age));
        if let Some(pool) = others.clone() {
            fleet = fleet.has("b", pool);
        }
        assert_eq!(fleet.pass(), expected, "{others:?}, {age} cycles, tier {max_tier}");
    }
}

#[test]
fn what_rests_is_waited_for() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 3))
        .has("b", busy(500, 50, 5))
        .lacks("r", cores(4 * 20, 13));
    assert_eq!(fleet.pass(), ["a→r 2 Idle m/a"]);
    fleet.wait(50);
    assert_eq!(fleet.outcome().skipped, [(Skip::Cooldown, 1)].into(), "and nobody's work ends");
}

#[test]
fn cheap_work_yields_to_dear_and_never_the_reverse() {
    for (min_priority, min_bucket, yields) in
        [(99, 9, true), (100, 9, false), (99, 10, false), (200, 1, false), (-5, 0, true)]
    {
        let mut fleet =
            fleet().has("a", busy(500, min_priority, min_bucket)).lacks("r", cores(4, 13));
        let outcome = fleet.outcome();
        assert_eq!(outcome.begin.len(), usize::from(yields), "{min_priority} {min_bucket}");
        if let Some(Command::BeginTransfer { request, .. }) = outcome.begin.first() {
            assert_eq!((request.preemptor_priority, request.preemptor_penalty_bucket), (100, 10));
        } else {
            assert_eq!(outcome.skipped, [(Skip::NoDonor, 1)].into());
        }
    }
}

#[test]
fn a_drain_takes_little_of_each_donor() {
    let mut fleet = fleet()
        .has("a", busy(50, 10, 5))
        .has("b", busy(350, 20, 5))
        .has("c", busy(90_000, 30, 5))
        .lacks("r", cores(4 * 1_000, 13))
        .lacks("s", cores(4 * 1_000, 13));
    // The least important first; one in a hundred, at most ten; each donor once a pass.
    assert_eq!(fleet.pass(), ["a→r 1 Drain m/a", "b→r 4 Drain m/a", "c→r 10 Drain m/a"]);
}
