//! The clouds of one shard: what there is, and what a scenario does to them.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use bigfleet_net::{grpc::GrpcServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_provider_kit::{CapacityType, Config as KitConfig, Kit, MemStore, config::Timeouts};
use bigfleet_provider_sim::{
    Config, Controls, Fleet,
    config::{CloudConfig, Interruptions},
    latency::{Distribution, Latency},
    tier::{Birth, Tier},
    topology::{Region, Zone, region},
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    Error,
    front::{Closed, Front},
};

/// The type of every machine but those with GPUs.
pub(crate) const GENERAL: &str = "sim.8x32";
/// The type of those with GPUs.
pub(crate) const GPU: &str = "sim.gpu8";
/// GPU machines of one rack: as many as a gang wants.
pub(crate) const RACK: usize = 16;
/// Racks of them.
pub(crate) const RACKS: usize = 2;

/// How long a failed machine is left as it is.
const FAILED_HOLD: Duration = Duration::from_secs(2);

/// What one shard's provider has.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Name of the provider.
    pub(crate) name: &'static str,
    owner: (&'static str, [&'static str; 2]),
    first: (&'static str, [&'static str; 3]),
    second: (&'static str, [&'static str; 3]),
    counts: Counts,
    gpus: bool,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    owned: usize,
    reserved: usize,
    on_demand: usize,
    spot: usize,
}

/// Both sites together have the 120 machines of the chapter, and two racks of GPUs.
pub(crate) const SITES: [Site; 2] = [
    Site {
        name: "east",
        owner: ("metal", ["campus-a", "campus-b"]),
        first: ("alpha", ["east-a", "east-b", "east-c"]),
        second: ("beta", ["west-a", "west-b", "west-c"]),
        counts: Counts { owned: 16, reserved: 12, on_demand: 16, spot: 8 },
        gpus: false,
    },
    Site {
        name: "north",
        owner: ("steel", ["harbor-a", "harbor-b"]),
        first: ("gamma", ["north-a", "north-b", "north-c"]),
        second: ("delta", ["south-a", "south-b", "south-c"]),
        counts: Counts { owned: 12, reserved: 8, on_demand: 8, spot: 4 },
        gpus: true,
    },
];

/// Where the machines with GPUs stand.
const GPU_ZONE: &str = "harbor-g";

impl Site {
    /// Machines of the general type that are paid for anyway.
    pub(crate) const fn committed(&self) -> usize {
        self.counts.owned + self.counts.reserved
    }

    /// Those of them that stand in the dearer cloud.
    pub(crate) const fn reserved(&self) -> usize {
        self.counts.reserved
    }

    /// All machines of the general type.
    pub(crate) const fn general(&self) -> usize {
        self.committed() + 2 * (self.counts.on_demand + self.counts.spot)
    }

    /// Spot slots of both clouds.
    pub(crate) const fn spot(&self) -> usize {
        2 * self.counts.spot
    }

    /// The cheaper cloud, whose spot is bought first.
    pub(crate) const fn cheap_cloud(&self) -> &'static str {
        self.second.0
    }

    /// The dearer one.
    pub(crate) const fn dear_cloud(&self) -> &'static str {
        self.first.0
    }

    /// Zones of a cloud.
    pub(crate) fn zones(&self, cloud: &str) -> Vec<&'static str> {
        let (name, zones) = self.first;
        if cloud == name { zones.to_vec() } else { self.second.1.to_vec() }
    }

    fn config(&self, seed: u64) -> Config {
        let Counts { owned, reserved, on_demand, spot } = self.counts;
        let mut own = region("own", &self.owner.1);
        let mut tiers = vec![Tier {
            zones: self.owner.1.map(str::to_owned).to_vec(),
            ..committed("owned", CapacityType::BareMetal, owned)
        }];
        if self.gpus {
            own.zones.push(Zone { name: GPU_ZONE.to_owned(), racks: RACKS });
            tiers.push(gpus());
        }
        let rented = |spot_price| {
            [
                tier("ondemand", CapacityType::OnDemand, on_demand, 0.38, 0.05),
                tier("spot", CapacityType::Spot, spot, spot_price, 0.30),
            ]
        };
        let reserved = committed("reserved", CapacityType::Reserved, reserved);
        let clouds = [
            (self.owner.0, own, tiers),
            (
                self.first.0,
                region(self.first.0, &self.first.1),
                std::iter::once(reserved).chain(rented(0.12)).collect(),
            ),
            (self.second.0, region(self.second.0, &self.second.1), rented(0.10).to_vec()),
        ];
        Config { seed, clouds: clouds.map(cloud).to_vec() }
    }
}

fn cloud((name, region, tiers): (&str, Region, Vec<Tier>)) -> CloudConfig {
    let span =
        |from, to| Distribution::Uniform(Duration::from_millis(from), Duration::from_millis(to));
    let mut cloud = CloudConfig::new(name, region).offers(tiers);
    cloud.latency = Latency {
        create: span(1_000, 2_000),
        configure: span(800, 1_500),
        drain: span(200, 600),
        delete: span(400, 900),
    };
    // Only scenarios interrupt.
    cloud.mishaps.interruptions = Interruptions::never();
    cloud
}

fn committed(name: &str, capacity: CapacityType, count: usize) -> Tier {
    Tier { state: Birth::Idle, ..tier(name, capacity, count, 0.0, 0.0) }
}

fn tier(name: &str, capacity: CapacityType, count: usize, price: f64, probability: f64) -> Tier {
    Tier {
        name: name.to_owned(),
        instance_type: GENERAL.to_owned(),
        capacity,
        price,
        probability,
        count,
        resources: quantities(&[("cpu", "8"), ("memory", "32Gi")]),
        allocatable: quantities(&[("cpu", "7500m"), ("memory", "28Gi")]),
        state: Birth::Speculative,
        zones: Vec::new(),
        labels: BTreeMap::new(),
    }
}

fn gpus() -> Tier {
    let gpu = ("nvidia.com/gpu", "8");
    Tier {
        instance_type: GPU.to_owned(),
        resources: quantities(&[("cpu", "8"), ("memory", "32Gi"), gpu]),
        allocatable: quantities(&[("cpu", "7500m"), ("memory", "28Gi"), gpu]),
        zones: vec![GPU_ZONE.to_owned()],
        ..committed("gpu", CapacityType::BareMetal, RACKS * RACK)
    }
}

fn quantities(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
}

/// A provider at work in this process.
pub(crate) struct Supply {
    /// What a scenario does to its clouds.
    pub(crate) controls: Controls,
    /// Machines whose purchase is refused at the door.
    pub(crate) closed: Closed,
    /// Where shards reach it.
    pub(crate) addr: String,
    stop: Shutdown,
    task: JoinHandle<()>,
}

impl Supply {
    /// Opens the clouds of a site and serves them.
    pub(crate) async fn start(site: &Site, seed: u64, security: Security) -> Result<Self, Error> {
        let fleet = Fleet::open(&site.config(seed), Path::new(""))?;
        let controls = fleet.controls();
        let config = KitConfig {
            provider: site.name.to_owned(),
            sweep_interval: Duration::from_secs(1),
            failed_hold: FAILED_HOLD,
            // Short enough for a brown-out to be felt; a repair has all the time it needs.
            timeouts: Timeouts {
                create: Duration::from_secs(8),
                configure: Duration::from_secs(8),
                ..Timeouts::default()
            },
            ..KitConfig::default()
        };
        let readiness = Readiness::new("starting");
        let store = Arc::new(MemStore::new());
        let kit = Kit::start(fleet.cloud, store, config, readiness.clone()).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?.to_string();
        let closed = Closed::default();
        let front = Front::new(kit.service(), closed.clone());
        let grpc = GrpcServer::new(security, readiness).add_service(front.into_server());
        let (stop, name) = (Shutdown::new(), site.name);
        let until = stop.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = grpc.serve(listener, until).await {
                tracing::error!(%error, name, "the provider ended");
            }
            kit.stop().await;
        });
        Ok(Self { controls, closed, addr, stop, task })
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        self.stop.request();
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sites_together_are_the_fleet_of_the_chapter() {
        let mut counts: BTreeMap<(CapacityType, u32, bool), usize> = BTreeMap::new();
        for site in &SITES {
            let config = site.config(7);
            config.check().unwrap();
            assert_eq!(config.seed, 7);
            for tier in config.clouds.iter().flat_map(|cloud| &cloud.tiers) {
                let cents = (tier.price * 100.0).round() as u32;
                let gpu = tier.instance_type == GPU;
                *counts.entry((tier.capacity, cents, gpu)).or_default() += tier.count;
                assert_eq!(tier.allocatable["cpu"], "7500m");
            }
            let general: usize = config
                .clouds
                .iter()
                .flat_map(|cloud| &cloud.tiers)
                .filter(|tier| tier.instance_type == GENERAL)
                .map(|tier| tier.count)
                .sum();
            assert_eq!(general, site.general());
        }
        assert_eq!(counts[&(CapacityType::BareMetal, 0, false)], 28);
        assert_eq!(counts[&(CapacityType::Reserved, 0, false)], 20);
        assert_eq!(counts[&(CapacityType::OnDemand, 38, false)], 48);
        assert_eq!(counts[&(CapacityType::Spot, 12, false)], 12);
        assert_eq!(counts[&(CapacityType::Spot, 10, false)], 12);
        assert_eq!(counts[&(CapacityType::BareMetal, 0, true)], 2 * RACK);
    }
}
