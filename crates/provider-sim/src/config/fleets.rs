//! Fleets for those who bring no document. All values are illustrative.

use std::collections::BTreeMap;

use bigfleet_provider_kit::CapacityType;

use super::{CloudConfig, Config, Interruptions, Mishaps};
use crate::{
    latency::Latency,
    quota::Quotas,
    tier::{Birth, Tier},
    topology::{Region, region},
};

/// Name of the one cloud of a uniform fleet, and of one given by flags.
pub const ONLY_CLOUD: &str = "sim";

impl Config {
    /// 120 machines of 8 vCPU and 32 GiB: owned metal, and two clouds.
    #[must_use]
    pub fn default_fleet() -> Self {
        let metal = CloudConfig::new("metal", region("campus", &["campus-a", "campus-b"]));
        let alpha = CloudConfig::new("alpha", region("east", &["east-a", "east-b", "east-c"]));
        let beta = CloudConfig::new("beta", region("west", &["west-a", "west-b", "west-c"]));
        let on_demand = || rented("ondemand", CapacityType::OnDemand, 24, 0.38, 0.05);
        let spot = |price| rented("spot", CapacityType::Spot, 12, price, 0.30);
        Self {
            seed: 0,
            clouds: vec![
                metal.offers([owned("owned", CapacityType::BareMetal, 28)]),
                alpha.offers([
                    owned("reserved", CapacityType::Reserved, 20),
                    on_demand(),
                    spot(0.12),
                ]),
                beta.offers([on_demand(), spot(0.10)]),
            ],
        }
    }

    /// So many slots without a host, every fourth of them spot, in one cloud that takes
    /// no time and where nothing goes wrong: what the conformance suite wants.
    #[must_use]
    pub fn uniform(count: usize) -> Self {
        let mut cloud =
            CloudConfig::new(ONLY_CLOUD, region("region", &["zone-a", "zone-b", "zone-c"]));
        cloud.mishaps.interruptions = Interruptions::never();
        let spot = count / 4;
        Self {
            seed: 0,
            clouds: vec![cloud.offers([
                rented("spec", CapacityType::OnDemand, count - spot, 0.38, 0.05),
                rented("spot", CapacityType::Spot, spot, 0.12, 0.30),
            ])],
        }
    }
}

impl CloudConfig {
    /// An empty cloud in one region, where nothing takes time.
    #[must_use]
    pub fn new(name: &str, region: Region) -> Self {
        Self {
            name: name.to_owned(),
            regions: vec![region],
            tiers: Vec::new(),
            latency: Latency::none(),
            quotas: Quotas::default(),
            stock: Vec::new(),
            price_walk: None,
            mishaps: Mishaps::default(),
        }
    }

    /// With these tiers.
    #[must_use]
    pub fn offers(mut self, tiers: impl Into<Vec<Tier>>) -> Self {
        self.tiers = tiers.into();
        self
    }
}

fn owned(name: &str, capacity: CapacityType, count: usize) -> Tier {
    Tier { state: Birth::Idle, ..rented(name, capacity, count, 0.0, 0.0) }
}

fn rented(name: &str, capacity: CapacityType, count: usize, price: f64, probability: f64) -> Tier {
    let quantities = |cpu: &str, memory: &str| {
        BTreeMap::from([
            ("cpu".to_owned(), cpu.to_owned()),
            ("memory".to_owned(), memory.to_owned()),
        ])
    };
    Tier {
        name: name.to_owned(),
        instance_type: "sim.8x32".to_owned(),
        capacity,
        price,
        probability,
        count,
        resources: quantities("8", "32Gi"),
        allocatable: quantities("7500m", "28Gi"),
        state: Birth::Speculative,
        zones: Vec::new(),
        labels: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_fleet_is_that_of_the_chapter() {
        let fleet = Config::default_fleet();
        fleet.check().unwrap();
        let tiers = fleet.clouds.iter().flat_map(|cloud| &cloud.tiers);
        let mut seen: Vec<_> = tiers
            .map(|tier| {
                assert_eq!((&*tier.resources["cpu"], &*tier.resources["memory"]), ("8", "32Gi"));
                assert_eq!(tier.allocatable["cpu"], "7500m");
                assert_eq!(tier.allocatable["memory"], "28Gi");
                let idle = tier.state == Birth::Idle;
                let cents = (tier.price * 100.0).round() as u32;
                (tier.capacity, tier.count, cents, (tier.probability * 100.0).round() as u32, idle)
            })
            .collect();
        seen.sort_unstable();
        let expected = [
            (CapacityType::BareMetal, 28, 0, 0, true),
            (CapacityType::Reserved, 20, 0, 0, true),
            (CapacityType::OnDemand, 24, 38, 5, false),
            (CapacityType::OnDemand, 24, 38, 5, false),
            (CapacityType::Spot, 12, 10, 30, false),
            (CapacityType::Spot, 12, 12, 30, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(expected.iter().map(|tier| tier.1).sum::<usize>(), 120);
    }

    #[test]
    fn a_uniform_fleet_has_what_was_asked_for() {
        for count in [0, 1, 7, 512] {
            let fleet = Config::uniform(count);
            fleet.check().unwrap();
            let cloud = &fleet.clouds[0];
            assert_eq!(cloud.tiers.iter().map(|tier| tier.count).sum::<usize>(), count);
        }
    }
}
