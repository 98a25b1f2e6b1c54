//! How much at a time.

use bigfleet_model::Operator;

use super::*;

#[test]
fn a_pass_has_a_budget() {
    let mut fleet = Fleet::new(Settings { max_machines: 12, ..Settings::default() })
        .has("a", idle("m", "a", 50))
        .lacks("r", cores(4 * 10, 6))
        .lacks("s", cores(4 * 10, 6))
        .lacks("t", cores(4 * 10, 6));
    let outcome = fleet.outcome();
    let begun: Vec<String> = outcome.begin.iter().map(text).collect();
    assert_eq!(begun, ["a→r 10 Idle m/a", "a→s 2 Idle m/a"]);
    assert_eq!(outcome.skipped, [(Skip::Budget, 2)].into(), "s is not covered, t not begun");
}

#[test]
fn a_transfer_has_a_hundred_machines() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 5_000))
        .has("b", idle("m", "a", 4_000))
        .lacks("r", cores(4 * 5_000, 6));
    // By what donors have, both close more than a tenth of it.
    let outcome = fleet.outcome();
    let begun: Vec<String> = outcome.begin.iter().map(text).collect();
    assert_eq!(begun, ["a→r 100 Idle m/a", "b→r 100 Idle m/a"]);
    assert_eq!(outcome.skipped, [(Skip::Cooldown, 1)].into(), "the rest is there, and waits");
}

#[test]
fn crumbs_are_not_moved_unless_they_finish() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 9))
        .has("b", idle("m", "a", 12))
        .has("c", idle("m", "a", 2))
        .lacks("r", cores(4 * 100, 6));
    // 10 of 100 is a tenth, 8 and 1 are less.
    let outcome = fleet.outcome();
    assert_eq!(outcome.begin.iter().map(text).collect::<Vec<_>>(), ["b→r 10 Idle m/a"]);
    assert_eq!(outcome.skipped, [(Skip::MinBenefit, 1)].into());
    let mut fleet = super::fleet()
        .has("a", idle("m", "a", 112))
        .has("b", idle("m", "a", 3))
        .lacks("r", cores(4 * 101, 6));
    assert_eq!(fleet.pass(), ["a→r 100 Idle m/a", "b→r 1 Idle m/a"], "the last one finishes");
}

#[test]
fn there_are_at_most_a_thousand_transfers() {
    let mut fleet = fleet().has("a", idle("m", "a", 50));
    for number in 0..998 {
        let id = format!("t-{number}");
        fleet = fleet.under_way(&id, transfer("x", "y", TransferPhase::Releasing, 1));
    }
    for shard in ["q", "r", "s", "t"] {
        fleet = fleet.lacks(shard, cores(4, 6));
    }
    let outcome = fleet.outcome();
    assert_eq!(outcome.begin.len(), 2);
    assert_eq!(outcome.skipped, [(Skip::Limit, 2)].into());
}

#[test]
fn there_are_at_most_ten_thousand_machines_in_them() {
    let mut fleet = fleet().has("a", idle("m", "a", 50));
    for number in 0..100 {
        let phase = [TransferPhase::Releasing, TransferPhase::Moved][number % 2];
        let count = if number == 0 { 95 } else { 100 };
        fleet = fleet.under_way(&format!("t-{number}"), transfer("x", "y", phase, count));
    }
    let outcome = fleet.lacks("r", cores(4 * 10, 6)).lacks("s", cores(4, 6)).outcome();
    assert_eq!(outcome.begin.iter().map(text).collect::<Vec<_>>(), ["a→r 5 Idle m/a"]);
    assert_eq!(outcome.skipped, [(Skip::Limit, 2)].into(), "r is not covered, s not begun");
}

#[test]
fn what_the_log_cannot_carry_is_not_begun() {
    let many: Vec<String> = (0..400).map(|number| format!("{number:060}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let requirements = vec![requirement("rack", Operator::NotIn, &many)];
    let mut fleet = fleet()
        .has("a", idle("m", "a", 50))
        .lacks("r", wire::Shortfall { requirements, ..cores(4, 6) });
    assert_eq!(fleet.outcome().skipped, [(Skip::TooLarge, 1)].into());
}
