//! Generated catalogues with a need to cover, all from a seed.

use std::sync::Arc;

use bigfleet_model::{
    CapacityType, Group, MachineState, Need, Operator, PenaltyBucket, Profile, Resources,
    cost::effective_cost,
};

use super::{
    super::{
        driver::Driver,
        make::{MachineSpec, Maker, RACK, cluster, requirement, vector},
        random::Random,
    },
    lp::{Amounts, Offer},
};

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Instance types, from 5 up to so many; four capacity types of each.
    pub(super) types: usize,
    /// Machines of a middling type that the need is worth.
    pub(super) machines: (usize, usize),
    /// In one rack of two.
    pub(super) gang: bool,
}

/// A class of machines for sale.
struct Class {
    name: String,
    capacity_type: CapacityType,
    brings: Amounts,
    price: f64,
    probability: f64,
}

/// One need and everything that can be bought for it.
pub(super) struct World {
    classes: Vec<Class>,
    penalty: PenaltyBucket,
    /// What the need stands for.
    pub(super) pods: Vec<Amounts>,
    gang: bool,
}

/// Processors and accelerators of instance types; memory per processor follows.
const PROCESSORS: [u64; 8] = [2, 4, 8, 16, 32, 48, 64, 96];
/// A type has at least so much of the reference type's processors.
const SMALLEST: u64 = 16;
const PENALTIES: [f64; 8] = [0.0, 0.5, 1.0, 2.0, 8.0, 64.0, 1024.0, f64::INFINITY];

fn types(random: &mut Random, most: usize, reference: u64, accelerated: bool) -> Vec<Class> {
    // As many small catalogues as large ones.
    let count = 5.0 * (most as f64 / 5.0).powf(random.between(0.0, 1.0));
    let sizes: Vec<u64> =
        PROCESSORS.into_iter().filter(|size| size * SMALLEST >= reference).collect();
    let mut classes = Vec::new();
    for number in 0..(count.round() as usize).max(5) {
        // The first is the reference, so that every pod fits something.
        let processors = if number == 0 { reference } else { sizes[random.below(sizes.len())] };
        let memory = processors * [2, 4, 8][random.below(3)];
        let accelerators = if accelerated { processors.div_ceil(12) } else { 0 };
        let list = (0.04 * processors as f64 + 0.005 * memory as f64 + 2.5 * accelerators as f64)
            * random.between(0.85, 1.2);
        let terms = [
            (CapacityType::BareMetal, 0.55, 0.0),
            (CapacityType::Reserved, 0.62, 0.0),
            (CapacityType::OnDemand, 1.0, 0.0),
            (CapacityType::Spot, 0.35, random.between(0.01, 0.2)),
        ];
        for (capacity_type, discount, probability) in terms {
            classes.push(Class {
                name: format!("type-{number}"),
                capacity_type,
                brings: [1_000 * processors, 1_024 * memory, accelerators],
                price: list * discount * random.between(0.9, 1.1),
                probability,
            });
        }
    }
    classes
}

impl World {
    pub(super) fn new(seed: u64, kind: Kind) -> Self {
        let mut random = Random::new(seed);
        let reference = PROCESSORS[random.within(2, 5)];
        let accelerated = random.below(4) == 0;
        let mut classes = types(&mut random, kind.types, reference, accelerated);
        // The reference type has room for what its pods ask.
        for class in &mut classes[..4] {
            class.brings[1] = 1_024 * 8 * reference;
        }
        let machines = random.within(kind.machines.0, kind.machines.1) as u64;
        let wanted = 1_000 * reference * machines * random.within(70, 100) as u64 / 100;
        let largest = (reference / 4).max(1) as usize;
        let (ratio, mut asked) = (random.within(1, 8) as u64, 0);
        let mut pods = Vec::new();
        while asked < wanted {
            let processors = 250 * random.within(1, 4 * largest) as u64;
            let jitter = random.within(80, 120) as u64;
            let memory = (1_024 * ratio * processors / 1_000 * jitter / 100).min(2_048 * reference);
            pods.push([processors, memory, u64::from(accelerated && processors >= 3_000)]);
            asked += processors;
        }
        let penalty = PenaltyBucket::from_dollars(PENALTIES[random.below(PENALTIES.len())]);
        Self { classes, penalty, pods, gang: kind.gang }
    }

    /// What a machine must hold alone.
    pub(super) fn unit(&self) -> Amounts {
        std::array::from_fn(|d| self.pods.iter().map(|pod| pod[d]).max().unwrap_or(0))
    }

    pub(super) fn demand(&self) -> Amounts {
        std::array::from_fn(|d| self.pods.iter().map(|pod| pod[d]).sum())
    }

    /// Number of instance types.
    pub(super) fn types(&self) -> usize {
        self.classes.len() / 4
    }

    /// Classes that may serve, at effective cost.
    pub(super) fn offers(&self) -> Vec<Offer> {
        let unit = self.unit();
        let usable = |class: &&Class| (0..3).all(|d| class.brings[d] >= unit[d]);
        let offer = |class: &Class| Offer {
            brings: class.brings,
            cost: effective_cost(class.price, class.probability, self.penalty.dollars()),
        };
        self.classes
            .iter()
            .filter(usable)
            .map(offer)
            .filter(|offer| offer.cost.is_finite())
            .collect()
    }

    /// Puts enough machines of every class on sale that each could serve alone.
    pub(super) fn sell(&self, driver: &mut Driver) {
        let (mut maker, demand) = (Maker::default(), self.demand());
        for (c, class) in self.classes.iter().enumerate() {
            let alone = (0..3).filter(|&d| class.brings[d] > 0);
            let alone = alone.map(|d| demand[d].div_ceil(class.brings[d])).max().unwrap_or(0);
            let text = texts(class.brings);
            let size: Vec<_> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
            for rack in 0..if self.gang { 2 } else { 1 } {
                for i in 0..alone {
                    driver.upsert(maker.make(MachineSpec {
                        id: format!("spec-{c}-{rack}-{i}"),
                        state: MachineState::Speculative,
                        instance_type: &class.name,
                        capacity_type: class.capacity_type,
                        price: class.price,
                        probability: class.probability,
                        size: &size,
                        rack: self.gang.then(|| format!("rack-{rack}")),
                        ..MachineSpec::default()
                    }));
                }
            }
        }
    }

    /// The need, scaled to `percent`.
    pub(super) fn need(&self, percent: u64) -> Need {
        let same = requirement(RACK, Operator::Same, &[]);
        let requirements = if self.gang { vec![same] } else { vec![] };
        let profile = Profile::new(requirements, vec![], 1000, self.penalty, PenaltyBucket::ZERO);
        let demand = self.demand().map(|amount| (amount * percent).div_ceil(100));
        Need {
            cluster: cluster(0),
            profile: Arc::new(profile),
            group: if self.gang { Group::from("gang") } else { Group::none() },
            aggregate: amounts(demand).scale(1),
            min_unit: amounts(self.unit()),
            arrival: 1,
        }
    }
}

fn texts([processors, memory, accelerators]: Amounts) -> Vec<(&'static str, String)> {
    let mut texts = vec![("cpu", format!("{processors}m")), ("memory", format!("{memory}Mi"))];
    if accelerators > 0 {
        texts.push(("nvidia.com/gpu", accelerators.to_string()));
    }
    texts
}

fn amounts(amounts: Amounts) -> Resources {
    let text = texts(amounts);
    let size: Vec<_> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
    vector(&size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_can_be_served() {
        for seed in 0..200 {
            let kind = Kind { types: 40, machines: (1, 6), gang: seed % 2 == 0 };
            let world = World::new(seed, kind);
            let unit = world.unit();
            let holds = |offer: &Offer| (0..3).all(|d| offer.brings[d] >= unit[d]);
            assert!(world.offers().iter().all(holds), "seed {seed}");
            assert!(!world.offers().is_empty(), "seed {seed}: something holds a unit");
            assert!((5..=40).contains(&world.types()), "seed {seed}");
        }
    }
}
