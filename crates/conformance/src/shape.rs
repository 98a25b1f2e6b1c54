//! What every record must be (provider chapter §4), as checks of one machine.

use bigfleet_model::Quantity;
use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState as State};

use crate::{ensure, outcome::Outcome, wire::state_name};

/// Facts that have a field of their own and must not hide in labels.
const FORBIDDEN_LABELS: [&str; 9] = [
    "instance-type",
    "instance_type",
    "instanceType",
    "zone",
    "availability-zone",
    "availability_zone",
    "capacity-type",
    "capacity_type",
    "capacityType",
];

/// Labels that may repeat a field, and only repeat it.
fn repeated(machine: &Machine) -> [(&'static str, &str); 2] {
    [
        ("node.kubernetes.io/instance-type", &machine.instance_type),
        ("topology.kubernetes.io/zone", &machine.zone),
    ]
}

/// Id, state and type are set; labels hide nothing.
pub fn identity(machine: &Machine) -> Outcome {
    let id = &machine.id;
    ensure!(!id.is_empty(), "a machine has no id");
    typed(machine)?;
    for key in FORBIDDEN_LABELS {
        ensure!(!machine.labels.contains_key(key), "{id:?} hides a fact in label {key:?}");
    }
    for (key, field) in repeated(machine) {
        if let Some(label) = machine.labels.get(key) {
            ensure!(label == field, "{id:?}: label {key} is {label:?}, the field is {field:?}");
        }
    }
    Ok(())
}

/// The type is set and the state is one of the contract.
pub fn typed(machine: &Machine) -> Outcome {
    let id = &machine.id;
    let known = State::try_from(machine.state).is_ok_and(|state| state != State::Unspecified);
    ensure!(known, "{id:?} is in {}", state_name(machine.state));
    ensure!(!machine.instance_type.is_empty(), "{id:?} has no instance_type");
    Ok(())
}

/// Price and probability are numbers in their bounds.
pub fn cost(machine: &Machine) -> Outcome {
    let (id, price) = (&machine.id, machine.price_per_hour);
    let probability = machine.interruption_probability;
    ensure!(price.is_finite() && price >= 0.0, "{id:?} costs {price}");
    ensure!((0.0..=1.0).contains(&probability), "{id:?} has probability {probability}");
    Ok(())
}

/// SPOT is never without risk.
pub fn spot(machine: &Machine) -> Outcome {
    let spot = machine.capacity_type() == CapacityType::Spot;
    ensure!(
        !spot || machine.interruption_probability > 0.0,
        "{:?} is SPOT with probability 0",
        machine.id
    );
    Ok(())
}

/// Host, cluster and error fit the state (wire chapter §3).
pub fn fits_state(machine: &Machine) -> Outcome {
    let (id, state) = (&machine.id, machine.state());
    let shown = state_name(machine.state);
    let host = machine.host.as_ref();
    match state {
        State::Speculative | State::Creating => {
            ensure!(host.is_none(), "{id:?} in {shown} shows a host");
        }
        State::Failed => {}
        _ => ensure!(
            host.is_some_and(|host| !host.provider.is_empty() && !host.r#ref.is_empty()),
            "{id:?} in {shown} shows no whole host"
        ),
    }
    match state {
        State::Configuring | State::Configured | State::Draining => {
            ensure!(!machine.cluster.is_empty(), "{id:?} in {shown} shows no cluster");
        }
        State::Failed => {}
        _ => ensure!(
            machine.cluster.is_empty() && machine.shard_metadata.is_empty(),
            "{id:?} in {shown} shows cluster {:?} and {} keys",
            machine.cluster,
            machine.shard_metadata.len()
        ),
    }
    ensure!(
        (state == State::Failed) != machine.last_error.is_empty(),
        "{id:?} in {shown} has last_error {:?}",
        machine.last_error
    );
    Ok(())
}

/// Quantities parse and are above 0; where both maps are set, a machine can run
/// at least something of each shared resource.
pub fn resources(machine: &Machine) -> Outcome {
    let id = &machine.id;
    let map = |resources: &Option<bigfleet_wire::v1alpha1::Resources>| {
        resources.as_ref().map(|set| set.resources.clone()).unwrap_or_default()
    };
    for (name, text) in map(&machine.resources).iter().chain(&map(&machine.allocatable)) {
        let positive = text.parse::<Quantity>().is_ok_and(|quantity| quantity.nanos() > 0);
        ensure!(positive, "{id:?}: {name} is {text:?}, not a quantity above 0");
    }
    Ok(())
}

/// A machine with a host has a capacity type and a zone.
pub fn placed(machine: &Machine) -> Outcome {
    let id = &machine.id;
    let known = CapacityType::try_from(machine.capacity_type)
        .is_ok_and(|capacity| capacity != CapacityType::Unspecified);
    ensure!(machine.host.is_none() || known, "{id:?} has a host and no capacity_type");
    ensure!(machine.host.is_none() || !machine.zone.is_empty(), "{id:?} has a host and no zone");
    Ok(())
}
