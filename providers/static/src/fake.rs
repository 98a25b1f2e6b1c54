//! Machines that do not exist, for the conformance suite and a first look.

use std::collections::BTreeMap;

use bigfleet_provider_kit::{CapacityType, Offer};

use crate::inventory::{Entry, Inventory};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// So many of them, all alike but for zone and rack.
pub(crate) fn inventory(provider: String, count: usize) -> Inventory {
    Inventory::generated(provider, (0..count).map(entry).collect())
}

fn entry(number: usize) -> Entry {
    let zone = ZONES[number % ZONES.len()];
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let offer = Offer {
        id: format!("metal-{number:06}"),
        host: Some(format!("SN{number:06}")),
        instance_type: "fake-epyc-64".to_owned(),
        zone: zone.to_owned(),
        capacity_type: CapacityType::BareMetal,
        price_per_hour: 0.0,
        interruption_probability: 0.0,
        resources: map(&[("cpu", "64"), ("memory", "256Gi")]),
        allocatable: map(&[("cpu", "63500m"), ("memory", "250Gi")]),
        labels: map(&[("topology.bigfleet/rack", &format!("{zone}-rack-{}", number % 10))]),
    };
    Entry { offer, bmc: None }
}
