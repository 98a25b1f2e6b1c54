//! One machine that a cloud may have.

use bigfleet_provider_kit::Offer;

use crate::{
    config::CloudConfig,
    tier::{Birth, Tier},
    topology::{RACK_LABEL, REGION_LABEL},
};

/// Its place; what it is made of is its tier's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// `<cloud>-<tier>-<number>`.
    pub(crate) id: String,
    /// Number of its tier.
    pub(crate) tier: usize,
    pub(crate) region: String,
    pub(crate) zone: String,
    pub(crate) rack: String,
}

impl Slot {
    /// As `describe` tells it.
    pub(crate) fn offer(&self, tier: &Tier, price: f64, host: Option<String>) -> Offer {
        let mut labels = tier.labels.clone();
        labels.insert(REGION_LABEL.to_owned(), self.region.clone());
        labels.insert(RACK_LABEL.to_owned(), self.rack.clone());
        Offer {
            id: self.id.clone(),
            host,
            instance_type: tier.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: tier.capacity,
            price_per_hour: price,
            interruption_probability: tier.probability,
            resources: tier.resources.clone(),
            allocatable: tier.allocatable.clone(),
            labels,
        }
    }
}

/// All slots of a cloud: zone by zone in turn, in each zone rack by rack.
pub(crate) fn slots(cloud: &CloudConfig) -> Vec<Slot> {
    let zones = || {
        let of = |region| move |zone| (region, zone);
        cloud.regions.iter().flat_map(move |region| region.zones.iter().map(of(&region.name)))
    };
    let mut slots = Vec::new();
    for (tier_number, tier) in cloud.tiers.iter().enumerate() {
        let mine: Vec<_> = zones()
            .filter(|(_, zone)| tier.zones.is_empty() || tier.zones.contains(&zone.name))
            .collect();
        // Without a zone there is nowhere to be; the check says so.
        let places = mine.len().max(1);
        for number in 0..tier.count {
            let Some((region, zone)) = mine.get(number % places) else { continue };
            slots.push(Slot {
                id: format!("{}-{}-{number:03}", cloud.name, tier.name),
                tier: tier_number,
                region: (*region).clone(),
                zone: zone.name.clone(),
                rack: zone.rack(number / places),
            });
        }
    }
    slots
}

/// Ids of those that have a host from the beginning.
pub(crate) fn born<'a>(cloud: &'a CloudConfig, slots: &'a [Slot]) -> impl Iterator<Item = &'a str> {
    let idle = |slot: &&Slot| cloud.tiers[slot.tier].state == Birth::Idle;
    slots.iter().filter(idle).map(|slot| slot.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn slots_are_spread_over_zones_and_racks() {
        let fleet = Config::default_fleet();
        let slots = slots(&fleet.clouds[2]);
        assert_eq!(slots.len(), 36);
        assert_eq!(slots[0].id, "beta-ondemand-000");
        assert_eq!(slots[35].id, "beta-spot-011");
        let zones: Vec<_> = slots[..4].iter().map(|slot| slot.zone.as_str()).collect();
        assert_eq!(zones, ["west-a", "west-b", "west-c", "west-a"]);
        assert_eq!((&*slots[0].rack, &*slots[3].rack), ("west-a-rack-0", "west-a-rack-1"));
        assert_eq!(born(&fleet.clouds[0], &super::slots(&fleet.clouds[0])).count(), 28);
    }
}
