//! Which machines a donor lets go of.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bigfleet_model::{MachineId, MachineState, PenaltyBucket, Stamp};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use super::{machines::class, *};

fn selector(count: i32) -> wire::TransferSelector {
    wire::TransferSelector { count, ..wire::TransferSelector::default() }
}

fn idle(selector: wire::TransferSelector) -> Selector {
    let payload = wire::TransferOwnership {
        selector: Some(selector),
        transfer_id: "t".to_owned(),
        ..wire::TransferOwnership::default()
    };
    Selector::of(Payload::TransferOwnership(payload)).unwrap().1
}

fn candidate(id: &str, zone: &str, state: MachineState, stamp: Option<Stamp>) -> Candidate {
    Candidate {
        id: id.into(),
        home: domain(zone),
        state,
        class: class(Some(zone)),
        stamp: stamp.map(Arc::new),
    }
}

fn chosen(out: Option<Out>) -> Vec<String> {
    out.into_iter().flat_map(|out| out.machines).map(|id| id.to_string()).collect()
}

#[test]
fn of_one_domain_as_many_as_asked_for_at_most() {
    use MachineState::{Configured, Idle, Speculative};
    let all = || {
        [
            candidate("a1", "a", Idle, None),
            candidate("b1", "b", Idle, None),
            candidate("b2", "b", Idle, None),
            candidate("b3", "b", Speculative, None),
            candidate("b4", "b", Configured, None),
        ]
    };
    let two = pick(&idle(selector(9)), all()).unwrap();
    assert_eq!((two.home.clone(), two.drain), (domain("b"), None));
    assert_eq!(chosen(Some(two)), ["b1", "b2"]);
    assert_eq!(chosen(pick(&idle(selector(1)), all())), ["a1"], "equals by name");
    assert_eq!(pick(&idle(selector(0)), all()), None);
    let slot = wire::ReassignSpeculative {
        selector: Some(selector(5)),
        ..wire::ReassignSpeculative::default()
    };
    let (_, slot) = Selector::of(Payload::ReassignSpeculative(slot)).unwrap();
    assert_eq!(chosen(pick(&slot, all())), ["b3"]);
    let many = (0..200).map(|n| candidate(&format!("m{n:03}"), "a", Idle, None));
    assert_eq!(pick(&idle(selector(150)), many).unwrap().machines.len(), 100);
}

#[test]
fn a_name_that_cannot_be_replicated_stays() {
    let idle_one = |id: &str| candidate(id, "a", MachineState::Idle, None);
    let (long, longest) = ("m".repeat(254), "n".repeat(253));
    let went = pick(&idle(selector(9)), [idle_one(&long), idle_one(&longest)]);
    assert_eq!(chosen(went), [longest]);
    assert_eq!(pick(&idle(selector(9)), [idle_one(&long)]), None);
}

#[test]
fn every_part_of_a_selector_counts() {
    let here = || [candidate("m", "a", MachineState::Idle, None)];
    let matches = |change: &dyn Fn(&mut wire::TransferSelector)| {
        let mut selector = selector(1);
        change(&mut selector);
        pick(&idle(selector), here()).is_some()
    };
    let requirement = |value: &str| wire::NodeSelectorRequirement {
        key: "zone".to_owned(),
        operator: wire::node_selector_requirement::Operator::In.into(),
        values: vec![value.to_owned()],
    };
    assert!(matches(&|_| {}));
    assert!(matches(&|one| one.instance_type = "t".to_owned()));
    assert!(!matches(&|one| one.instance_type = "other".to_owned()));
    assert!(!matches(&|one| one.zone = "z".to_owned()));
    assert!(matches(&|one| one.capacity_type = wire::CapacityType::OnDemand.into()));
    assert!(!matches(&|one| one.capacity_type = wire::CapacityType::Spot.into()));
    assert!(matches(&|one| one.requirements = vec![requirement("a")]));
    assert!(!matches(&|one| one.requirements = vec![requirement("b")]));
    let unit: BTreeMap<String, String> = [("cpu".to_owned(), "1".to_owned())].into();
    assert!(!matches(&|one| one.min_unit = Some(wire::Resources { resources: unit.clone() })));
}

#[test]
fn a_drain_takes_cheap_work_for_dear_and_never_the_reverse() {
    let victim = |id: &str, priority, interruption: f64, reclamation: f64| {
        let stamp =
            Stamp { priority: Some(priority), interruption, reclamation, ..Stamp::default() };
        candidate(id, "a", MachineState::Configured, Some(stamp))
    };
    let drain = wire::CrossShardDrain {
        selector: Some(selector(9)),
        preemptor_priority: 100,
        preemptor_penalty_bucket: PenaltyBucket::from_dollars(4.0).to_wire(),
        ..wire::CrossShardDrain::default()
    };
    let (_, selector) = Selector::of(Payload::CrossShardDrain(drain)).unwrap();
    let all = [
        victim("as-high", 100, 1.0, 0.0),
        victim("as-dear", 10, 4.0, 0.0),
        victim("low", 10, 1.0, 0.0),
        victim("lower", 5, 1.0, 0.0),
        candidate("unknown", "a", MachineState::Configured, None),
    ];
    let out = pick(&selector, all.clone()).unwrap();
    assert_eq!(
        out.drain,
        Some(Drain { bucket: PenaltyBucket::from_dollars(4.0), ..drain_for(100) })
    );
    assert_eq!(chosen(Some(out)), ["low", "lower"]);
    let one = Selector { count: 1, ..selector };
    assert_eq!(chosen(pick(&one, all)), ["lower"], "by the ordinary score");
}

#[test]
fn a_drain_is_over_when_all_are_idle_or_late_and_never_unannounced() {
    let machines: BTreeSet<MachineId> = ["a", "b"].map(MachineId::from).into();
    let one: BTreeSet<MachineId> = ["a"].map(MachineId::from).into();
    let drain = Some(drain_for(1));
    let out = Out { home: domain("z"), machines: machines.clone(), drain };
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert!(drained(&out, &machines, minutes(0), true));
    assert!(!drained(&out, &one, minutes(14), true));
    assert!(drained(&out, &one, minutes(15), true));
    // A drain of the process before may arrive yet.
    assert!(!drained(&out, &machines, minutes(15), false));
}

#[test]
fn a_malformed_selector_is_refused() {
    let bad = wire::TransferSelector { capacity_type: 99, ..selector(1) };
    let payload = |selector| {
        Payload::TransferOwnership(wire::TransferOwnership {
            selector,
            ..wire::TransferOwnership::default()
        })
    };
    for selector in [None, Some(bad)] {
        assert!(matches!(Selector::of(payload(selector)), Err(Malformed::Selector(_))));
    }
    let domain = Payload::AssignDomain(wire::AssignDomain::default());
    assert_eq!(Selector::of(domain).unwrap_err(), Malformed::NotATransfer);
}
