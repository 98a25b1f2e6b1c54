//! Who gives.

use bigfleet_model::{
    Operator,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};

use super::*;

#[test]
fn whoever_has_most_gives_first_and_never_its_last() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 10))
        .has("b", idle("m", "a", 30))
        .has("c", idle("m", "a", 30))
        .has("d", idle("m", "a", 1))
        .lacks("r", cores(4 * 60, 6));
    // 60 machines; a donor of 30 keeps 3, one of 10 keeps 1.
    assert_eq!(fleet.pass(), ["b→r 27 Idle m/a", "c→r 27 Idle m/a", "a→r 6 Idle m/a"]);
}

#[test]
fn cells_come_in_order() {
    let mut fleet = fleet()
        .has("a", idle("z", "a", 50))
        .has("a", idle("m", "b", 20))
        .has("b", idle("m", "a", 20))
        .lacks("r", cores(4 * 30, 6));
    assert_eq!(fleet.pass(), ["b→r 18 Idle m/a", "a→r 12 Idle m/b"]);
}

#[test]
fn within_a_cell_capacity_types_stand_in_one_row() {
    let spot = wire::PoolRow { capacity_type: 4, ..idle("m", "a", 40) };
    let mut fleet = fleet()
        .has("a", idle("m", "a", 20))
        .has("b", spot)
        .has("c", idle("m", "a", 30))
        .lacks("r", cores(4 * 80, 6));
    assert_eq!(fleet.pass(), ["b→r 36 Idle m/a", "c→r 27 Idle m/a", "a→r 17 Idle m/a"]);
    let asked = fleet.outcome().begin;
    assert!(asked.is_empty(), "all of them rest now");
}

#[test]
fn requirements_on_type_and_zone_are_checked_here_and_others_there() {
    let zone = |values: &[&str]| requirement(ZONE_LABEL, Operator::In, values);
    for (requirements, expected) in [
        (vec![zone(&["b"])], &["a→r 1 Idle m/b"][..]),
        (vec![zone(&["c"])], &[]),
        (vec![requirement(ZONE_LABEL, Operator::NotIn, &["a"])], &["a→r 1 Idle m/b"]),
        (vec![requirement(INSTANCE_TYPE_LABEL, Operator::In, &["x"])], &[]),
        (vec![requirement(INSTANCE_TYPE_LABEL, Operator::DoesNotExist, &[])], &[]),
        (vec![requirement("rack", Operator::In, &["7"]), zone(&["b"])], &["a→r 1 Idle m/b"]),
        (vec![requirement("rack", Operator::Unspecified, &[])], &[]),
    ] {
        let mut fleet = fleet()
            .has("a", idle("m", "a", 20))
            .has("a", idle("m", "b", 20))
            .lacks("r", wire::Shortfall { requirements: requirements.clone(), ..cores(4, 6) });
        let outcome = fleet.outcome();
        let begun: Vec<String> = outcome.begin.iter().map(text).collect();
        assert_eq!(begun, expected, "{requirements:?}");
        if let Some(Command::BeginTransfer { request, .. }) = outcome.begin.first() {
            assert_eq!(request.requirements.len(), requirements.len(), "the donor checks all");
            assert_eq!(request.min_unit["cpu"], "1");
        } else {
            assert_eq!(outcome.skipped, [(Skip::NoDonor, 1)].into());
        }
    }
}

#[test]
fn a_machine_must_hold_a_unit_and_something_of_all_that_is_lacking() {
    for (deficit, min_unit, fits) in [
        (&[("cpu", "8")][..], &[("cpu", "4")][..], true),
        (&[("cpu", "8")], &[("cpu", "4001m")], false),
        (&[("cpu", "8")], &[("cpu", "1"), ("memory", "17Gi")], false),
        (&[("cpu", "8"), ("nvidia.com/gpu", "1")], &[("cpu", "1")], false),
        (&[("memory", "32Gi")], &[], true),
    ] {
        let shortfall = wire::Shortfall {
            deficit: resources(deficit),
            min_unit: resources(min_unit),
            ..cores(0, 6)
        };
        let mut fleet = fleet().has("a", idle("m", "a", 20)).lacks("r", shortfall);
        let expected = if fits { vec!["a→r 2 Idle m/a"] } else { vec![] };
        assert_eq!(fleet.pass(), expected, "{deficit:?} in units of {min_unit:?}");
    }
}

#[test]
fn the_scarcest_resource_decides_how_many() {
    let shortfall =
        wire::Shortfall { deficit: resources(&[("cpu", "4"), ("memory", "40Gi")]), ..cores(0, 6) };
    let mut fleet = fleet().has("a", idle("m", "a", 20)).lacks("r", shortfall);
    assert_eq!(fleet.pass(), ["a→r 3 Idle m/a"]);
}

#[test]
fn who_lacks_it_keeps_it() {
    // However young, and although it must stay together.
    let same = requirement(ZONE_LABEL, Operator::Same, &[]);
    let own = wire::Shortfall { requirements: vec![same], ..cores(4, 1) };
    let mut fleet = fleet()
        .has("a", idle("m", "a", 20))
        .lacks("a", own)
        .has("b", idle("m", "a", 10))
        .lacks("r", cores(8, 6));
    assert_eq!(fleet.pass(), ["b→r 2 Idle m/a"]);
}

#[test]
fn another_provider_is_another_world() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 20))
        .at_provider("a", "elsewhere:9000")
        .lacks("r", cores(8, 6));
    assert_eq!(fleet.outcome().skipped, [(Skip::NoDonor, 1)].into());
}

#[test]
fn what_was_promised_is_not_promised_again() {
    let mut fleet = fleet()
        .has("a", idle("m", "a", 20))
        .under_way("t", transfer("a", "q", TransferPhase::Releasing, 10))
        .lacks("r", cores(4 * 15, 6));
    assert_eq!(fleet.pass(), ["a→r 8 Idle m/a"], "18 less the 10 that it has not let go of");
}
