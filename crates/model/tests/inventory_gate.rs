//! The inventory gate and the round trip of machines (wire chapter §8.2, §8.3).

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeMap;

use bigfleet_model::{
    Attributes, CapacityType, ClusterId, Dimension, MachineState,
    gate::inventory::{self, RejectReason},
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};
use bigfleet_wire::v1alpha1 as wire;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn host() -> Option<wire::HostRef> {
    Some(wire::HostRef { provider: "metal".to_owned(), r#ref: "serial-1".to_owned() })
}

fn resources(pairs: &[(&str, &str)]) -> Option<wire::Resources> {
    Some(wire::Resources { resources: map(pairs) })
}

/// A valid machine of every state.
fn machine(state: MachineState) -> wire::Machine {
    let hosted = !matches!(state, MachineState::Speculative | MachineState::Creating);
    let bound = matches!(
        state,
        MachineState::Configuring | MachineState::Configured | MachineState::Draining
    );
    wire::Machine {
        id: "m-1".to_owned(),
        state: state.to_wire(),
        host: if hosted { host() } else { None },
        instance_type: "m6i.large".to_owned(),
        zone: "zone-a".to_owned(),
        capacity_type: CapacityType::Spot.to_wire(),
        price_per_hour: 0.0312,
        interruption_probability: 0.05,
        resources: resources(&[("cpu", "2000m"), ("memory", "8192Mi")]),
        labels: map(&[("rack", "r1")]),
        last_error: if state == MachineState::Failed { "boom".to_owned() } else { String::new() },
        allocatable: resources(&[("cpu", "1930m")]),
        cluster: if bound { "prod".to_owned() } else { String::new() },
        shard_metadata: if bound { map(&[("k", "v")]) } else { BTreeMap::new() },
    }
}

fn refusal(message: wire::Machine) -> (RejectReason, String) {
    let rejected = inventory::machine(message).expect_err("must be refused");
    (rejected.reason, rejected.to_string())
}

fn structural(text: &str) -> (RejectReason, String) {
    (RejectReason::Structural, text.to_owned())
}

#[test]
fn every_state_round_trips() {
    for state in MachineState::ALL {
        let accepted = inventory::machine(machine(*state)).unwrap();
        assert!(!accepted.stray_binding);
        assert_eq!(wire::Machine::from(&accepted.machine), machine(*state));
    }
}

#[test]
fn wire_11_ids_and_states_are_checked_on_raw_numbers() {
    let nameless = wire::Machine { id: String::new(), ..machine(MachineState::Idle) };
    assert_eq!(refusal(nameless), structural("id: empty"));
    for number in [-1, 0, 9, 259] {
        let odd = wire::Machine { state: number, ..machine(MachineState::Idle) };
        assert_eq!(refusal(odd), structural(&format!("state: {number} out of range [1,8]")));
    }
}

#[test]
fn host_and_cluster_fit_the_state() {
    use MachineState::*;
    for (state, must_be_empty) in [(Speculative, "SPECULATIVE"), (Creating, "CREATING")] {
        let hosted = wire::Machine { host: host(), ..machine(state) };
        assert_eq!(
            refusal(hosted),
            structural(&format!("host: must be empty while {must_be_empty}"))
        );
        let bound = wire::Machine { cluster: "prod".to_owned(), ..machine(state) };
        assert_eq!(
            refusal(bound),
            structural(&format!("cluster: must be empty while {must_be_empty}"))
        );
    }
    for state in [Idle, Deleting, Configuring, Configured, Draining] {
        for no_host in [None, Some(wire::HostRef::default())] {
            let homeless = wire::Machine { host: no_host, ..machine(state) };
            let name = state.wire_name();
            assert_eq!(refusal(homeless), structural(&format!("host: required while {name}")));
        }
    }
    for state in [Configured, Draining] {
        let unbound = wire::Machine { cluster: String::new(), ..machine(state) };
        let name = state.wire_name();
        assert_eq!(refusal(unbound), structural(&format!("cluster: required while {name}")));
    }
    let unbound = wire::Machine { cluster: String::new(), ..machine(Configuring) };
    assert!(inventory::machine(unbound).is_ok(), "a configuring machine may lack its cluster");
    let silent = wire::Machine { last_error: String::new(), ..machine(Failed) };
    assert_eq!(refusal(silent), structural("last_error: required while FAILED"));
    for (host, cluster) in [(None, ""), (host(), "prod"), (None, "prod")] {
        let failed = wire::Machine { host, cluster: cluster.to_owned(), ..machine(Failed) };
        assert!(inventory::machine(failed).is_ok(), "a failed machine may have any evidence");
    }
}

#[test]
fn a_stray_binding_is_cleared_and_told() {
    for state in [MachineState::Idle, MachineState::Deleting] {
        let message = wire::Machine {
            cluster: "prod".to_owned(),
            shard_metadata: map(&[("k", "v")]),
            ..machine(state)
        };
        let accepted = inventory::machine(message).unwrap();
        assert!(accepted.stray_binding);
        assert_eq!(wire::Machine::from(&accepted.machine), machine(state));
    }
}

#[test]
fn money_is_finite_and_probability_is_one() {
    for price in [-0.01, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let odd = wire::Machine { price_per_hour: price, ..machine(MachineState::Idle) };
        let text = format!("price_per_hour: {price} is not a finite number >= 0");
        assert_eq!(refusal(odd), (RejectReason::Price, text));
    }
    for probability in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
        let odd =
            wire::Machine { interruption_probability: probability, ..machine(MachineState::Idle) };
        let text = format!("interruption_probability: {probability} out of range [0,1]");
        assert_eq!(refusal(odd), (RejectReason::InterruptionProbability, text));
    }
    let edges = wire::Machine {
        price_per_hour: -0.0,
        interruption_probability: 1.0,
        ..machine(MachineState::Idle)
    };
    let class = inventory::machine(edges).unwrap().machine.class;
    assert!(class.price_per_hour.is_sign_positive(), "-0 would sort before 0");
}

#[test]
fn labels_of_the_counter() {
    let labels =
        [RejectReason::Price, RejectReason::InterruptionProbability, RejectReason::Structural]
            .map(RejectReason::label);
    assert_eq!(labels, ["price", "interruption_probability", "structural"]);
}

#[test]
fn quantities_are_never_silently_zero() {
    let with = |pairs| wire::Machine { resources: resources(pairs), ..machine(MachineState::Idle) };
    assert_eq!(
        refusal(with(&[("cpu", "two")])),
        structural(r#"resources["cpu"]: unparseable quantity "two""#)
    );
    let allocatable =
        wire::Machine { allocatable: resources(&[("cpu", "-1")]), ..machine(MachineState::Idle) };
    assert_eq!(refusal(allocatable), structural(r#"allocatable["cpu"]: negative quantity "-1""#));
    assert_eq!(
        refusal(with(&[("memory", "9Pi")])),
        structural(
            r#"resources["memory"]: unparseable quantity "9Pi": exceeds 64-bit milli-units"#
        )
    );
}

#[test]
fn an_unknown_capacity_type_is_unspecified() {
    let odd = wire::Machine { capacity_type: 99, ..machine(MachineState::Idle) };
    let accepted = inventory::machine(odd).unwrap();
    assert_eq!(accepted.machine.class.capacity_type, CapacityType::Unspecified);
}

#[test]
fn capacity_is_allocatable_else_resources_rounded_down() {
    let capacity = |message| {
        let class = inventory::machine(message).unwrap().machine.class;
        (class.capacity().get(Dimension::CPU), class.capacity().get(Dimension::MEMORY))
    };
    assert_eq!(capacity(machine(MachineState::Idle)), (1930, 0));
    let gib8 = 8 * (1 << 30) * 1000;
    for allocatable in [None, resources(&[])] {
        let message = wire::Machine { allocatable, ..machine(MachineState::Idle) };
        assert_eq!(capacity(message), (2000, gib8));
    }
    let full =
        wire::Machine { allocatable: resources(&[("cpu", "0")]), ..machine(MachineState::Idle) };
    assert_eq!(capacity(full), (0, 0), "nothing allocatable is not the base shape");
    let fine = wire::Machine {
        allocatable: resources(&[("cpu", "1999999999n")]),
        ..machine(MachineState::Idle)
    };
    assert_eq!(capacity(fine), (1999, 0));
}

#[test]
fn nothing_is_invented() {
    let bare = wire::Machine {
        id: "m".to_owned(),
        state: MachineState::Speculative.to_wire(),
        ..Default::default()
    };
    let accepted = inventory::machine(bare.clone()).unwrap();
    assert_eq!(accepted.machine.cluster, None::<ClusterId>);
    assert_eq!(wire::Machine::from(&accepted.machine), bare);
}

#[test]
fn fields_answer_their_labels_and_labels_stand_in_for_empty_fields() {
    let attributes = |instance_type: &str, zone: &str| {
        let message = wire::Machine {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            labels: map(&[(INSTANCE_TYPE_LABEL, "label-type"), (ZONE_LABEL, ""), ("rack", "r1")]),
            ..machine(MachineState::Idle)
        };
        let class = inventory::machine(message).unwrap().machine.class;
        let of = |key| class.attribute(key).map(str::to_owned);
        [of(INSTANCE_TYPE_LABEL), of(ZONE_LABEL), of("rack"), of("none")]
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(attributes("m6i.large", "a"), [some("m6i.large"), some("a"), some("r1"), None]);
    assert_eq!(attributes("", ""), [some("label-type"), some(""), some("r1"), None]);
}
