//! Which machine an instance is (provider chapter §10): slots, and who owns them.

use std::collections::{BTreeMap, HashMap};

use bigfleet_provider_kit::Offer;

use crate::{
    api::Instance,
    config::{Capacity, Offering},
    prices::PriceBook,
};

/// Every instance of ours has it.
pub const MANAGED: &str = "bigfleet:managed";
/// The machine that it was launched for.
pub const MACHINE_ID: &str = "bigfleet:machine-id";
/// How it was bought.
pub const CAPACITY: &str = "bigfleet:capacity";
/// Which provider launched it: siblings share accounts.
pub const PROVIDER: &str = "bigfleet:provider";
/// The cluster that it was bootstrapped for.
pub const CLUSTER: &str = "bigfleet:cluster";

/// The configured slots.
#[derive(Debug)]
pub struct Slots {
    offerings: Vec<Offering>,
    /// In the order of the file.
    ids: Vec<(String, usize)>,
    by_id: HashMap<String, usize>,
}

impl Slots {
    /// `<provider>/<capacity>/<type>/<zone>/<nnn>`.
    #[must_use]
    pub fn new(provider: &str, offerings: Vec<Offering>) -> Self {
        let mut ids = Vec::new();
        for (index, offering) in offerings.iter().enumerate() {
            let Offering { instance_type, zone, capacity, count, .. } = offering;
            let capacity = capacity.name();
            ids.extend((0..*count).map(|number| {
                (format!("{provider}/{capacity}/{instance_type}/{zone}/{number:03}"), index)
            }));
        }
        let by_id = ids.iter().cloned().collect();
        Self { offerings, ids, by_id }
    }

    /// What a slot is a slot of.
    #[must_use]
    pub fn offering(&self, id: &str) -> Option<&Offering> {
        self.by_id.get(id).and_then(|index| self.offerings.get(*index))
    }

    /// Every slot with its live instance, and an extra record for each live instance
    /// that has no slot. Of several instances of a slot the newest owns it: operations
    /// on a machine follow each other, so the others are left over from earlier ones.
    #[must_use]
    pub fn offers(&self, instances: &[Instance], prices: &PriceBook) -> Vec<Offer> {
        let mut owners: HashMap<&str, &Instance> = HashMap::new();
        let mut extras: BTreeMap<String, &Instance> = BTreeMap::new();
        for instance in instances.iter().filter(|instance| instance.state.is_live()) {
            let Some(id) = instance.tag(MACHINE_ID).filter(|id| !id.is_empty()) else {
                tracing::warn!(instance = instance.id, "ours by its tags, but names no machine");
                continue;
            };
            let previous = owners.get(id).copied();
            let age = |instance: &Instance| (instance.launched.clone(), instance.id.clone());
            let older = match previous {
                None => None,
                Some(previous) if age(previous) < age(instance) => Some(previous),
                Some(_) => Some(instance),
            };
            if older.is_none_or(|older| older.id != instance.id) {
                owners.insert(id, instance);
            }
            if let Some(older) = older {
                extras.insert(format!("{id}+{}", older.id), older);
            }
        }
        let mut offers = Vec::with_capacity(self.ids.len() + extras.len());
        for (id, index) in &self.ids {
            if let Some(offering) = self.offerings.get(*index) {
                let host = owners.remove(id.as_str()).map(reference);
                offers.push(offer(id.clone(), host, offering, prices));
            }
        }
        extras.extend(owners.into_iter().map(|(id, instance)| (id.to_owned(), instance)));
        for (id, instance) in extras {
            let offering = self.like(instance);
            offers.push(offer(id, Some(reference(instance)), &offering, prices));
        }
        offers
    }

    /// What is known of an instance without a slot.
    fn like(&self, instance: &Instance) -> Offering {
        let known =
            self.offerings.iter().find(|other| other.instance_type == instance.instance_type);
        Offering {
            instance_type: instance.instance_type.clone(),
            zone: instance.zone.clone(),
            capacity: capacity(instance),
            count: 1,
            resources: known.map(|known| known.resources.clone()).unwrap_or_default(),
            allocatable: known.map(|known| known.allocatable.clone()).unwrap_or_default(),
            // Labels may tell of a place: only those of its own zone are its own.
            labels: known
                .filter(|known| known.zone == instance.zone)
                .map(|known| known.labels.clone())
                .unwrap_or_default(),
        }
    }
}

fn offer(id: String, host: Option<String>, offering: &Offering, prices: &PriceBook) -> Offer {
    let Offering { instance_type, zone, capacity, .. } = offering;
    Offer {
        id,
        host,
        instance_type: instance_type.clone(),
        zone: zone.clone(),
        capacity_type: capacity.capacity_type(),
        // Without a price the kit refuses the offer: it would win every comparison.
        price_per_hour: prices.price(*capacity, instance_type, zone).unwrap_or(0.0),
        interruption_probability: prices.probability(*capacity, instance_type),
        resources: offering.resources.clone(),
        allocatable: offering.allocatable.clone(),
        labels: offering.labels.clone(),
    }
}

/// How an instance was bought: as recorded, or else as the API says.
#[must_use]
pub fn capacity(instance: &Instance) -> Capacity {
    let told = if instance.spot { Capacity::Spot } else { Capacity::OnDemand };
    instance.tag(CAPACITY).and_then(Capacity::parse).unwrap_or(told)
}

/// What a node's `spec.providerID` is.
#[must_use]
pub fn reference(instance: &Instance) -> String {
    format!("aws:///{}/{}", instance.zone, instance.id)
}

/// The instance of a reference.
#[must_use]
pub fn instance_id(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::InstanceState, config::Pinned};

    fn offering(capacity: Capacity, count: u32) -> Offering {
        Offering {
            instance_type: "m6i.large".into(),
            zone: "a".into(),
            capacity,
            count,
            resources: BTreeMap::from([("cpu".into(), "2".into())]),
            allocatable: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    fn instance(id: &str, machine: &str, state: InstanceState) -> Instance {
        Instance {
            id: id.into(),
            state,
            instance_type: "m6i.large".into(),
            zone: "a".into(),
            spot: false,
            client_token: String::new(),
            launched: format!("2026-01-01T00:00:0{}Z", id.len()),
            reason: String::new(),
            tags: BTreeMap::from([(MACHINE_ID.into(), machine.into())]),
        }
    }

    fn offers(instances: &[Instance]) -> BTreeMap<String, Offer> {
        let slots =
            Slots::new("p", vec![offering(Capacity::OnDemand, 2), offering(Capacity::Spot, 1)]);
        let pinned = Pinned { on_demand: Some(0.1), spot: Some(0.04) };
        let prices = PriceBook::new(BTreeMap::from([("m6i.large".into(), pinned)]));
        let offers = slots.offers(instances, &prices);
        offers.into_iter().map(|offer| (offer.id.clone(), offer)).collect()
    }

    #[test]
    fn slots_are_named_after_what_they_are() {
        let offers = offers(&[]);
        let ids: Vec<_> = offers.keys().map(String::as_str).collect();
        assert_eq!(
            ids,
            [
                "p/on-demand/m6i.large/a/000",
                "p/on-demand/m6i.large/a/001",
                "p/spot/m6i.large/a/000"
            ]
        );
        assert_eq!(offers["p/spot/m6i.large/a/000"].price_per_hour, 0.04);
        assert_eq!(offers["p/spot/m6i.large/a/000"].interruption_probability, 0.125);
    }

    #[test]
    fn a_stopped_instance_owns_its_slot_and_a_terminating_one_does_not() {
        let slot = |number: u32| format!("p/on-demand/m6i.large/a/{number:03}");
        let offers = offers(&[
            instance("i-1", &slot(0), InstanceState::Stopped),
            instance("i-2", &slot(1), InstanceState::Terminated),
        ]);
        assert_eq!(offers[&slot(0)].host.as_deref(), Some("aws:///a/i-1"));
        assert_eq!(offers[&slot(1)].host, None);
        assert_eq!(offers.len(), 3);
    }

    #[test]
    fn an_instance_without_a_slot_is_an_extra_record_as_it_was_bought() {
        let mut stray = instance("i-1", "p/spot/m6i.large/a/007", InstanceState::Running);
        stray.tags.insert(CAPACITY.into(), "spot".into());
        let offers = offers(&[stray]);
        let extra = &offers["p/spot/m6i.large/a/007"];
        assert_eq!(extra.host.as_deref(), Some("aws:///a/i-1"));
        assert_eq!(extra.capacity_type, Capacity::Spot.capacity_type());
        assert_eq!(extra.resources["cpu"], "2");
    }

    #[test]
    fn the_newest_of_two_owns_the_slot_and_the_other_is_not_forgotten() {
        let slot = "p/on-demand/m6i.large/a/000";
        let (old, new) = (
            instance("i-1", slot, InstanceState::Running),
            instance("i-22", slot, InstanceState::Running),
        );
        for order in [[old.clone(), new.clone()], [new, old]] {
            let offers = offers(&order);
            assert_eq!(offers[slot].host.as_deref(), Some("aws:///a/i-22"));
            assert_eq!(offers[&format!("{slot}+i-1")].host.as_deref(), Some("aws:///a/i-1"));
        }
    }

    #[test]
    fn references_hold_the_instance() {
        let running = instance("i-1", "m", InstanceState::Running);
        assert_eq!(instance_id(&reference(&running)), "i-1");
    }
}
