//! Who owns which machine, and what must have ended before that changes.

use std::{sync::Arc, time::Duration};

use bigfleet_model::{CapacityType, Class, ClusterId, Declared, MachineState};

use super::*;

pub(crate) fn class(zone: Option<&str>) -> Arc<Class> {
    let labels = zone.map(|zone| ("zone".to_owned(), zone.to_owned()));
    Arc::new(Class {
        instance_type: "t".to_owned(),
        zone: String::new(),
        capacity_type: CapacityType::OnDemand,
        price_per_hour: 1.0,
        interruption_probability: 0.0,
        labels: labels.into_iter().collect(),
        resources: Declared::default(),
        allocatable: Declared::default(),
    })
}

const UNBOUND: [MachineState; 5] = [
    MachineState::Speculative,
    MachineState::Creating,
    MachineState::Idle,
    MachineState::Deleting,
    MachineState::Failed,
];
const BOUND: [MachineState; 3] =
    [MachineState::Configuring, MachineState::Configured, MachineState::Draining];

#[test]
fn a_bound_machine_is_its_clusters_and_an_unbound_one_its_domains() {
    let assignment = Assignment {
        machines_in: machines(&["t/in"]),
        machines_out: machines(&["u/out"]),
        open_transfers: ids(&["w"]),
        ..assignment(1, &["a", "@ours"])
    };
    let holdings = after(vec![
        Event::Assigned(assignment),
        Event::Picked { transfer: "w".into(), out: out(&["going"]) },
    ]);
    let ownership = Ownership::of(&holdings);
    let owns = |id: &str, state, cluster: Option<&str>, zone| {
        ownership.owns(id, state, cluster.map(ClusterId::from).as_ref(), &class(zone))
    };
    for state in UNBOUND {
        for (id, zone, ours) in [
            ("m", Some("a"), true),
            ("m", Some("b"), false),
            ("m", None, false),
            ("in", Some("b"), true),
            ("in", None, true),
            ("out", Some("a"), false),
            ("going", Some("a"), false),
        ] {
            assert_eq!(owns(id, state, None, zone), ours, "{state:?} {id} {zone:?}");
        }
    }
    for state in BOUND {
        for id in ["m", "in", "out", "going"] {
            for zone in [Some("a"), Some("b"), None] {
                assert!(owns(id, state, Some("ours"), zone), "{state:?} {id} {zone:?}");
                assert!(!owns(id, state, Some("theirs"), zone), "{state:?} {id} {zone:?}");
            }
        }
    }
    assert!(ownership.is_nobodys(&class(None)) && !ownership.is_nobodys(&class(Some("b"))));
    assert!(!Ownership::default().is_nobodys(&class(None)), "no label is known yet");
}

#[test]
fn what_is_released_or_settled_is_not_ours() {
    let first = Assignment { machines_in: machines(&["t/m"]), ..assignment(1, &["a", "@c"]) };
    let lost = Assignment { machines_in: machines(&["t/m"]), ..assignment(2, &[]) };
    let holdings = after(vec![Event::Assigned(first), Event::Assigned(lost)]);
    let ownership = Ownership::of(&holdings);
    assert!(ownership.owns("m", MachineState::Idle, None, &class(Some("home"))));
    assert!(!ownership.owns("x", MachineState::Idle, None, &class(Some("a"))));
    assert!(!ownership.holds(&"c".into()));
    assert!(ownership.is_nobodys(&class(None)), "the label is remembered while releasing");
    let (settled, _) = step(&holdings, Event::Done([("t".into(), "m".into())].into()));
    assert!(!Ownership::of(&settled).owns("m", MachineState::Idle, None, &class(Some("home"))));
}

#[test]
fn between_two_assignments_only_what_both_give_is_ours() {
    let one = Ownership::of(&after(vec![Event::Assigned(assignment(1, &["a", "b", "@c", "@d"]))]));
    let two = Ownership::of(&after(vec![Event::Assigned(Assignment {
        machines_out: machines(&["t/out"]),
        ..assignment(2, &["b", "x", "@d"])
    })]));
    let both = one.and(&two);
    let idle = |id, zone| both.owns(id, MachineState::Idle, None, &class(Some(zone)));
    assert!(idle("m", "b") && !idle("m", "a") && !idle("m", "x") && !idle("out", "b"));
    assert!(both.holds(&"d".into()) && !both.holds(&"c".into()));
}

#[test]
fn only_what_nothing_is_under_way_on_is_quiet() {
    let releasing = keys(&["a", "b", "@c", "@d"]);
    let busy = [
        // A machine of `a` on its way to `c`.
        Busy { domain: Some(domain("a")), cluster: Some("c".into()) },
        // A machine of `d` that is drained: its domain has no part in it.
        Busy { domain: None, cluster: Some("elsewhere".into()) },
    ];
    assert_eq!(quiet(&releasing, busy, true), keys(&["b", "@d"]));
    assert_eq!(quiet(&releasing, [], true), releasing);
    assert_eq!(quiet(&releasing, [], false), Keys::default(), "the dead may still call");
}

#[test]
fn a_received_machine_is_done_when_bound_gone_unused_or_unwanted() {
    use MachineState::*;
    let short = Duration::from_secs(1);
    let at = |state, since, quiet, unwanted| done(&Received { state, since, quiet, unwanted });
    for state in [Configuring, Configured, Draining] {
        assert!(at(Some(state), short, false, false), "{state:?}");
    }
    assert!(at(None, short, true, false) && !at(None, short, false, false));
    assert!(at(Some(Failed), short, true, false));
    for state in [Idle, Speculative] {
        assert!(!at(Some(state), short, true, false), "{state:?}");
        assert!(at(Some(state), short, true, true) && !at(Some(state), short, false, true));
        assert!(at(Some(state), UNUSED, true, false) && !at(Some(state), UNUSED, false, false));
    }
    for state in [Creating, Deleting] {
        assert!(!at(Some(state), UNUSED, true, true), "{state:?}");
    }
}

#[test]
fn a_slice_bounds_what_is_drawn_and_no_row_bounds_nothing() {
    let slice = |provider: &str, region: &str, slice| Slice {
        provider: provider.to_owned(),
        region: region.to_owned(),
        slice,
    };
    let draw = |provider, region| Draw { provider, region };
    let mut free = Room::of(&[]);
    assert!(free.is_unlimited() && free.take(draw(None, Some("r"))));

    let mut room = Room::of(&[slice("p", "r", 2), slice("p", "s", 0)]);
    room.drawn(draw(Some("p"), Some("r")));
    assert!(!room.take(draw(Some("p"), Some("s"))));
    assert!(room.take(draw(None, Some("r"))) && !room.take(draw(None, Some("r"))));
    assert!(room.take(draw(Some("p"), Some("elsewhere"))), "no row");
    assert!(!room.take(draw(None, None)), "it may be of a share that is used up");
    let mut over = Room::of(&[slice("p", "r", 1)]);
    over.drawn(draw(Some("p"), Some("r")));
    over.drawn(draw(Some("p"), Some("r")));
    assert!(!over.take(draw(None, Some("r"))), "a lowered slice stops creation");

    let mut two = Room::of(&[slice("p", "r", 0), slice("other", "r", 1)]);
    assert!(two.take(draw(Some("other"), Some("r"))), "another account's");
    assert!(!two.take(draw(Some("p"), Some("r"))));
}

/// A share binds although the registry calls the provider otherwise than it calls itself,
/// and without a region it binds in all of them.
#[test]
fn what_cannot_be_attributed_counts_against_every_slice() {
    for (account, region) in [("aws", "r"), ("aws", ""), ("provider", "")] {
        let slice = Slice { provider: account.to_owned(), region: region.to_owned(), slice: 1 };
        let mut room = Room::of(&[slice]);
        let created = Draw { provider: Some("provider"), region: Some("r") };
        room.drawn(created);
        let slot = Draw { provider: None, ..created };
        assert!(!room.take(slot), "{account} {region:?}");
    }
}
