//! What earlier passes mean for later ones.

use bigfleet_model::{Operator, machine::ZONE_LABEL};

use super::*;
use crate::state::State;

#[test]
fn what_is_on_its_way_is_not_asked_for_again() {
    for (phase, count, expected) in [
        (TransferPhase::Releasing, 4, &["a→r 6 Idle m/a"][..]),
        (TransferPhase::Moved, 4, &["a→r 6 Idle m/a"]),
        (TransferPhase::Moved, 10, &[]),
        (TransferPhase::Releasing, 50, &[]),
    ] {
        let mut fleet = fleet()
            .has("a", idle("m", "a", 50))
            .under_way("t", transfer("x", "r", phase, count))
            .lacks("r", cores(4 * 10, 6));
        let outcome = fleet.outcome();
        assert_eq!(outcome.begin.iter().map(text).collect::<Vec<_>>(), expected, "{count}");
        let skipped = outcome.skipped.get(&Skip::OnTheWay).copied().unwrap_or_default();
        assert_eq!(skipped == 1, expected.is_empty());
    }
}

#[test]
fn a_machine_on_its_way_counts_once_and_first_for_whom_it_was_asked() {
    let zone = requirement(ZONE_LABEL, Operator::In, &["a"]);
    let choosy = wire::Shortfall { requirements: vec![zone], priority: 500, ..cores(40, 6) };
    let mut fleet = fleet()
        .has("a", idle("m", "a", 50))
        .under_way("t", transfer("x", "r", TransferPhase::Moved, 12))
        .lacks("r", choosy)
        .lacks("r", cores(40, 6));
    // 10 cover the one without requirements, 2 are left for the other.
    assert_eq!(fleet.pass(), ["a→r 8 Idle m/a"]);
}

#[test]
fn machines_that_nobody_else_has_are_taken_for_what_was_asked() {
    let mut lost = transfer("x", "r", TransferPhase::Releasing, 3);
    lost.request.instance_type = "gone".to_owned();
    let mut fleet =
        fleet().has("a", idle("m", "a", 50)).under_way("t", lost).lacks("r", cores(4, 6));
    // Each holds at least one core.
    assert_eq!(fleet.pass(), ["a→r 1 Idle m/a"]);
}

#[test]
fn a_pair_rests_in_both_directions() {
    let both = |lacking: &str, giving: &str| {
        fleet().has(giving, idle("m", "a", 50)).has(giving, idle("m", "b", 3)).lacks(
            lacking,
            wire::Shortfall {
                requirements: vec![requirement(ZONE_LABEL, Operator::In, &["a"])],
                ..cores(4, 6)
            },
        )
    };
    let mut fleet = both("r", "a");
    assert_eq!(fleet.pass(), ["a→r 1 Idle m/a"]);
    fleet.picture = both("a", "r").picture;
    fleet.wait(79);
    assert_eq!(fleet.outcome().skipped, [(Skip::Cooldown, 1)].into());
    fleet.wait(1);
    assert_eq!(fleet.pass(), ["r→a 1 Idle m/a"]);
}

#[test]
fn other_zones_and_other_shards_do_not_rest() {
    let mut fleet =
        fleet().has("a", idle("m", "a", 50)).has("a", idle("m", "b", 50)).lacks("r", cores(4, 6));
    assert_eq!(fleet.pass(), ["a→r 1 Idle m/a"]);
    fleet = fleet.lacks("s", cores(4, 6));
    assert_eq!(fleet.pass(), ["a→r 1 Idle m/b", "a→s 1 Idle m/a"]);
}

fn state_with(transfer: Option<(&str, TransferPhase)>) -> State {
    let mut state = State::default();
    let mut index = 0;
    let mut apply = |command: Command| {
        index += 1;
        state.apply(index, &command).unwrap();
    };
    for id in ["a", "r"] {
        let (address, registered_at, epoch, instance) = (String::new(), 1, 1, 1);
        let id = id.into();
        apply(Command::AddShard { id, address, registered_at, epoch, instance, shared: true });
    }
    apply(Command::AssignDomain { domain: Domain::new("rack", "1"), shard: "a".into() });
    if let Some((id, phase)) = transfer {
        let begun = super::transfer("a", "r", TransferPhase::Releasing, 1);
        let Transfer { kind, from, to, request, .. } = begun;
        apply(Command::BeginTransfer { id: id.into(), kind, from, to, request });
        if phase == TransferPhase::Moved {
            let (home, machine_ids) = (Domain::new("rack", "1"), vec!["m".into()]);
            apply(Command::ReleaseTransfer { id: id.into(), home, machine_ids });
        }
    }
    state
}

/// Also when machines change hands long after that was decided, or another leader
/// decided it.
#[test]
fn a_pair_rests_from_when_machines_change_hands() {
    let mut fleet = fleet().has("a", idle("m", "a", 50)).lacks("r", cores(4 * 20, 6));
    let rests = |fleet: &mut Fleet| fleet.outcome().begin.is_empty();
    let releasing = state_with(Some(("t", TransferPhase::Releasing)));
    assert!(fleet.rebalancer.observe(&releasing, fleet.now).is_empty(), "it was there before");
    fleet.wait(79);
    assert!(rests(&mut fleet));
    let moved = state_with(Some(("t", TransferPhase::Moved)));
    let moves = fleet.rebalancer.observe(&moved, fleet.now);
    assert_eq!(moves, [(TransferKind::Idle, Move::Moved)]);
    fleet.wait(79);
    assert!(rests(&mut fleet), "since it moved");
    let moves = fleet.rebalancer.observe(&state_with(None), fleet.now);
    assert_eq!(moves, [(TransferKind::Idle, Move::Settled)]);
    fleet.wait(1);
    assert!(!rests(&mut fleet));
    fleet.rebalancer.observe(&releasing, fleet.now);
    let moves = fleet.rebalancer.observe(&state_with(None), fleet.now);
    assert_eq!(moves, [(TransferKind::Idle, Move::GivenUp)]);
}

/// What the donor said may be known before the transfer is seen to be gone.
#[test]
fn a_donor_that_refuses_is_told_from_one_that_is_silent() {
    let mut fleet = fleet();
    let releasing = state_with(Some(("t", TransferPhase::Releasing)));
    fleet.rebalancer.observe(&releasing, fleet.now);
    fleet.rebalancer.refused(["t".into(), "never seen".into()].into());
    assert!(fleet.rebalancer.observe(&releasing, fleet.now).is_empty());
    let moves = fleet.rebalancer.observe(&state_with(None), fleet.now);
    assert_eq!(moves, [(TransferKind::Idle, Move::Refused)]);
}

#[test]
fn a_new_leader_waits_until_it_has_heard_nearly_all() {
    let mut fleet = fleet();
    let due = |fleet: &mut Fleet, reported, recovering| {
        let heard = Heard { registered: 10, reported };
        fleet.rebalancer.due(heard, recovering, fleet.now)
    };
    assert_eq!(due(&mut fleet, 8, false), Due::Skipped(Skip::Waiting));
    assert_eq!(due(&mut fleet, 8, false), Due::No, "told once");
    assert_eq!(due(&mut fleet, 9, false), Due::Yes);
    fleet.wait(29);
    assert_eq!(due(&mut fleet, 0, false), Due::No);
    fleet.wait(1);
    assert_eq!(due(&mut fleet, 0, false), Due::Yes, "three report intervals");
    fleet.pass();
    fleet.wait(49);
    assert_eq!(due(&mut fleet, 10, false), Due::No);
    fleet.wait(1);
    assert_eq!(due(&mut fleet, 10, true), Due::Skipped(Skip::Recovering));
    assert_eq!(due(&mut fleet, 10, true), Due::No);
    fleet.wait(50);
    assert_eq!(due(&mut fleet, 10, false), Due::Yes);
}
