//! The catalogue that demonstrations and benchmarks start from.

use std::collections::BTreeMap;

use bigfleet_model::{CapacityType, gate::inventory::Rejected};

use super::{Bound, Fake, Offer};

/// Name, and resources as (name, number, suffix).
type Type = (&'static str, &'static [(&'static str, u64, &'static str)]);

const TYPES: [Type; 5] = [
    ("a3-highgpu-8g", &[("nvidia.com/gpu", 8, "")]),
    ("m6i.large", &[("cpu", 2, ""), ("memory", 8, "Gi")]),
    ("c6i.4xlarge", &[("cpu", 16, ""), ("memory", 32, "Gi")]),
    ("n2-standard-32", &[("cpu", 32, ""), ("memory", 128, "Gi")]),
    ("r6i.xlarge", &[("cpu", 4, ""), ("memory", 32, "Gi")]),
];

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

const RACK_LABEL: &str = "topology.bigfleet/rack";

/// What every machine of the catalogue that is configured is stamped with.
const PRIORITY: i32 = 1_000_000;
const INTERRUPTION: f64 = 8192.0;
const RECLAMATION: f64 = 65536.0;

/// How many machines of the catalogue, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// `idle-<n>`: owned metal.
    pub idle: usize,
    /// `spec-<n>`: on demand, $1.00.
    pub speculative: usize,
    /// `spot-<n>`: $0.30.
    pub spot: usize,
    /// `conf-s<shard>-c<cluster>-i<n>` of each cluster of this shard.
    pub configured_per_cluster: usize,
    /// Clusters of the whole fleet.
    pub clusters: usize,
    /// A cluster belongs to shard `cluster mod stride`.
    pub stride: usize,
    /// Whose clusters.
    pub shard: usize,
    /// Machines of a gang shape that share a rack; 0 and 1 mean each its own.
    pub gang_size: usize,
    /// Allocatable is so many times the resources.
    pub density: u64,
}

impl Default for Seed {
    fn default() -> Self {
        Self {
            idle: 0,
            speculative: 0,
            spot: 0,
            configured_per_cluster: 0,
            clusters: 0,
            stride: 1,
            shard: 0,
            gang_size: 1,
            density: 1,
        }
    }
}

impl Fake {
    /// Adds machines of the catalogue, up to the first that no gate lets in: one of
    /// density 0 has nothing to offer.
    pub fn seed(&self, seed: &Seed) -> Result<(), Rejected> {
        for index in 0..seed.idle {
            let offer = offer(seed, index, index, CapacityType::BareMetal, 0.0, 0.0);
            self.add_idle(&format!("idle-{index}"), &offer)?;
        }
        for index in 0..seed.speculative {
            let offer = offer(seed, index, index, CapacityType::OnDemand, 1.0, 0.05);
            self.add_speculative(&format!("spec-{index}"), &offer)?;
        }
        for index in 0..seed.spot {
            let offer = offer(seed, index, index, CapacityType::Spot, 0.3, 0.1);
            self.add_speculative(&format!("spot-{index}"), &offer)?;
        }
        let stride = seed.stride.max(1);
        for cluster in (0..seed.clusters).filter(|cluster| cluster % stride == seed.shard) {
            let bound = Bound {
                cluster: format!("kwok-cluster-{cluster}"),
                priority: PRIORITY,
                interruption: INTERRUPTION,
                reclamation: RECLAMATION,
            };
            for index in 0..seed.configured_per_cluster {
                let offer = offer(seed, 0, index, CapacityType::BareMetal, 0.0, 0.0);
                let id = format!("conf-s{}-c{cluster}-i{index}", seed.shard);
                self.add_configured(&id, &offer, &bound)?;
            }
        }
        Ok(())
    }
}

/// Machine `index` with the type at `turn`.
fn offer(
    seed: &Seed,
    turn: usize,
    index: usize,
    capacity_type: CapacityType,
    price_per_hour: f64,
    interruption_probability: f64,
) -> Offer {
    let (instance_type, numbers) = TYPES[turn % TYPES.len()];
    let gang = numbers.iter().any(|(name, ..)| *name == "nvidia.com/gpu");
    // Whole gangs in one rack.
    let slot = if gang { index / seed.gang_size.max(1) } else { index };
    let zone = ZONES[slot % ZONES.len()];
    let times = |factor: u64| -> BTreeMap<String, String> {
        let text = |number: u64, suffix: &str| format!("{}{suffix}", number * factor);
        numbers
            .iter()
            .map(|(name, number, suffix)| ((*name).into(), text(*number, suffix)))
            .collect()
    };
    Offer {
        instance_type: instance_type.into(),
        zone: zone.into(),
        labels: [(RACK_LABEL.into(), format!("{zone}-rack-{}", slot % 10))].into(),
        resources: times(1),
        allocatable: times(seed.density),
        capacity_type,
        price_per_hour,
        interruption_probability,
    }
}
