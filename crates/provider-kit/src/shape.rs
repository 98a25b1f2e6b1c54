//! What every record looks like, whoever made the offer (provider chapter §4).

use bigfleet_model::{
    CapacityType, Machine, MachineState, Quantity,
    gate::{Refusal, inventory},
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};
use bigfleet_wire::v1alpha1 as wire;

use crate::cloud::Offer;

/// Facts with a field of their own, which must not hide in labels.
const FORBIDDEN: [&str; 9] = [
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

/// An offer that no record can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offer {id:?}: {field}: {problem}")]
pub struct Misshapen {
    /// Which slot.
    pub id: String,
    /// Which field; the metric label.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub problem: String,
}

/// Turns offers into machines.
#[derive(Clone, Debug)]
pub struct ShapeCheck {
    provider: String,
}

impl ShapeCheck {
    /// For the provider of this name.
    #[must_use]
    pub fn new(provider: impl Into<String>) -> Self {
        Self { provider: provider.into() }
    }

    /// The machine of this offer: SPECULATIVE without a host, IDLE with one.
    pub fn machine(&self, offer: &Offer) -> Result<Machine, Misshapen> {
        let refuse = |field: &'static str, problem: String| {
            Err(Misshapen { id: offer.id.clone(), field, problem })
        };
        if offer.id.is_empty() {
            return refuse("id", "empty; every slot needs one".into());
        }
        if offer.instance_type.is_empty() {
            return refuse("instance_type", "empty; name the type".into());
        }
        if offer.capacity_type == CapacityType::Unspecified {
            return refuse("capacity_type", "unspecified; say how it is paid for".into());
        }
        if offer.host.as_ref().is_some_and(String::is_empty) {
            return refuse("host", "empty reference; leave it out where there is no host".into());
        }
        if offer.zone.is_empty() && offer.host.is_some() {
            return refuse("zone", "empty although there is a host".into());
        }
        if let Err((field, problem)) = labels(offer).and_then(|()| cost(offer)) {
            return refuse(field, problem);
        }
        if let Err(problem) = quantities(offer) {
            return refuse("resources", problem);
        }
        let (state, host) = match &offer.host {
            None => (MachineState::Speculative, None),
            Some(reference) => (
                MachineState::Idle,
                Some(wire::HostRef { provider: self.provider.clone(), r#ref: reference.clone() }),
            ),
        };
        let map = |resources: &std::collections::BTreeMap<_, _>| {
            (!resources.is_empty()).then(|| wire::Resources { resources: resources.clone() })
        };
        let message = wire::Machine {
            id: offer.id.clone(),
            state: state.to_wire(),
            host,
            instance_type: offer.instance_type.clone(),
            zone: offer.zone.clone(),
            capacity_type: offer.capacity_type.to_wire(),
            price_per_hour: offer.price_per_hour,
            interruption_probability: offer.interruption_probability,
            resources: map(&offer.resources),
            allocatable: map(&offer.allocatable),
            labels: offer.labels.clone(),
            ..wire::Machine::default()
        };
        // What shards refuse must not leave this process either.
        inventory::machine(message).map(|accepted| accepted.machine).map_err(|rejected| {
            let field = rejected.reason.label();
            let problem = Refusal::to_string(&rejected.refusal);
            Misshapen { id: offer.id.clone(), field, problem }
        })
    }
}

fn labels(offer: &Offer) -> Result<(), (&'static str, String)> {
    if let Some(key) = FORBIDDEN.iter().find(|key| offer.labels.contains_key(**key)) {
        return Err(("labels", format!("key {key:?} has a field of its own; drop the label")));
    }
    for (key, value) in [(INSTANCE_TYPE_LABEL, &offer.instance_type), (ZONE_LABEL, &offer.zone)] {
        if offer.labels.get(key).is_some_and(|label| label != value) {
            return Err(("labels", format!("{key} must repeat {value:?} or be left out")));
        }
    }
    Ok(())
}

fn cost(offer: &Offer) -> Result<(), (&'static str, String)> {
    let (price, probability) = (offer.price_per_hour, offer.interruption_probability);
    if !(price.is_finite() && price >= 0.0) {
        return Err(("price_per_hour", format!("{price} is not a finite number >= 0")));
    }
    if !(0.0..=1.0).contains(&probability) {
        return Err(("interruption_probability", format!("{probability} out of range [0,1]")));
    }
    let rented = matches!(offer.capacity_type, CapacityType::OnDemand | CapacityType::Spot);
    if rented && price == 0.0 {
        let problem = "0 for rented capacity; an unpriced offer wins every comparison";
        return Err(("price_per_hour", problem.to_owned()));
    }
    if offer.capacity_type == CapacityType::Spot && probability == 0.0 {
        let problem = "0 for SPOT; declare the risk";
        return Err(("interruption_probability", problem.to_owned()));
    }
    Ok(())
}

fn quantities(offer: &Offer) -> Result<(), String> {
    for (map, name) in [(&offer.resources, "resources"), (&offer.allocatable, "allocatable")] {
        for (key, text) in map {
            let quantity: Quantity =
                text.parse().map_err(|error| format!("{name}[{key:?}] {text:?}: {error}"))?;
            if quantity.to_f64() <= 0.0 {
                return Err(format!("{name}[{key:?}] {text:?} is not above 0"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sound() -> Offer {
        Offer {
            id: "m-1".into(),
            host: None,
            instance_type: "m6i.large".into(),
            zone: "zone-a".into(),
            capacity_type: CapacityType::OnDemand,
            price_per_hour: 1.0,
            interruption_probability: 0.05,
            resources: BTreeMap::from([("cpu".into(), "2".into())]),
            allocatable: BTreeMap::new(),
            labels: BTreeMap::from([(ZONE_LABEL.into(), "zone-a".into())]),
        }
    }

    #[test]
    fn a_host_makes_it_idle() {
        let check = ShapeCheck::new("p");
        assert_eq!(check.machine(&sound()).unwrap().state, MachineState::Speculative);
        let machine = check.machine(&Offer { host: Some("h".into()), ..sound() }).unwrap();
        assert_eq!(machine.state, MachineState::Idle);
        assert_eq!(machine.host.unwrap().provider, "p");
    }

    #[test]
    fn provider_inv_04_each_rule_of_the_shape_refuses_with_its_field() {
        type Break = fn(&mut Offer);
        let cases: [(&str, Break); 16] = [
            ("id", |offer| offer.id.clear()),
            ("instance_type", |offer| offer.instance_type.clear()),
            ("capacity_type", |offer| offer.capacity_type = CapacityType::Unspecified),
            ("host", |offer| offer.host = Some(String::new())),
            ("zone", |offer| {
                offer.host = Some("h".into());
                offer.zone.clear();
                offer.labels.clear();
            }),
            ("labels", |offer| drop(offer.labels.insert("zone".into(), "zone-a".into()))),
            ("labels", |offer| drop(offer.labels.insert(INSTANCE_TYPE_LABEL.into(), "x".into()))),
            ("price_per_hour", |offer| offer.price_per_hour = f64::NAN),
            ("price_per_hour", |offer| offer.price_per_hour = -1.0),
            ("price_per_hour", |offer| offer.price_per_hour = 0.0),
            ("interruption_probability", |offer| offer.interruption_probability = 1.5),
            ("interruption_probability", |offer| offer.interruption_probability = f64::NAN),
            ("interruption_probability", |offer| {
                offer.capacity_type = CapacityType::Spot;
                offer.interruption_probability = 0.0;
            }),
            ("resources", |offer| drop(offer.resources.insert("cpu".into(), "abc".into()))),
            ("resources", |offer| drop(offer.resources.insert("cpu".into(), "0".into()))),
            ("resources", |offer| drop(offer.allocatable.insert("cpu".into(), "-1".into()))),
        ];
        for (field, spoil) in cases {
            let mut offer = sound();
            spoil(&mut offer);
            let misshapen = ShapeCheck::new("p").machine(&offer).unwrap_err();
            assert_eq!(misshapen.field, field, "{misshapen}");
        }
    }

    #[test]
    fn owned_capacity_may_be_free() {
        let offer =
            Offer { capacity_type: CapacityType::BareMetal, price_per_hour: 0.0, ..sound() };
        ShapeCheck::new("p").machine(&offer).unwrap();
    }
}
