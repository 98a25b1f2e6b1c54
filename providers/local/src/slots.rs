//! What this computer pretends to have.

use std::collections::BTreeMap;

use bigfleet_provider_kit::{CapacityType, Offer};

/// Type, cores and GiB for pods.
const TYPES: [(&str, u32, u32); 3] =
    [("local.small", 2, 4), ("local.medium", 4, 16), ("local.large", 8, 32)];
const ZONES: [&str; 3] = ["local-a", "local-b", "local-c"];
/// What a node keeps for itself, beyond what pods may use.
const RESERVE: (u32, u32) = (500, 1);
/// Every so many slots one is SPOT.
const SPOT_EVERY: usize = 4;

/// So many slots, whose ids begin so.
pub(crate) fn slots(prefix: &str, count: usize) -> Vec<Offer> {
    (0..count).map(|number| slot(prefix, number)).collect()
}

fn slot(prefix: &str, number: usize) -> Offer {
    let (instance_type, cores, gibibytes) = TYPES[number % TYPES.len()];
    // Each type in each zone.
    let zone = ZONES[number / TYPES.len() % ZONES.len()];
    let spot = number % SPOT_EVERY == SPOT_EVERY - 1;
    let quantities = |milli_cores: u32, gibibytes: u32| {
        BTreeMap::from([
            ("cpu".to_owned(), format!("{milli_cores}m")),
            ("memory".to_owned(), format!("{gibibytes}Gi")),
        ])
    };
    let price = 0.05 * f64::from(cores);
    Offer {
        id: format!("{prefix}-{number:06}"),
        host: None,
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        capacity_type: if spot { CapacityType::Spot } else { CapacityType::OnDemand },
        price_per_hour: if spot { price / 3.0 } else { price },
        interruption_probability: if spot { 0.1 } else { 0.01 },
        resources: quantities(1000 * cores + RESERVE.0, gibibytes + RESERVE.1),
        allocatable: quantities(1000 * cores, gibibytes),
        labels: BTreeMap::from([(
            "topology.bigfleet/rack".to_owned(),
            format!("{zone}-rack-{}", number % 10),
        )]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bigfleet_provider_kit::ShapeCheck;

    use super::*;

    #[test]
    fn every_slot_is_of_the_shape_and_all_kinds_are_there() {
        let slots = slots("local", 72);
        let check = ShapeCheck::new("local");
        for slot in &slots {
            check.machine(slot).unwrap();
        }
        let ids: BTreeSet<_> = slots.iter().map(|slot| &slot.id).collect();
        assert_eq!(ids.len(), slots.len());
        let kinds: BTreeSet<_> = slots
            .iter()
            .map(|slot| (&slot.instance_type, &slot.zone, slot.capacity_type.to_wire()))
            .collect();
        assert_eq!(kinds.len(), TYPES.len() * ZONES.len() * 2);
    }
}
