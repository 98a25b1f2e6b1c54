//! A generated catalogue with a need to cover, all from a seed.

use std::sync::Arc;

use bigfleet_model::{
    Group, MachineState, Need, Operator, PenaltyBucket, Profile, Resources, cost::effective_cost,
};

use super::{
    super::{
        driver::Driver,
        make::{MachineSpec, Maker, RACK, cluster, requirement, vector},
        random::Random,
    },
    catalogue::{self, Class, MEMORY, PROCESSORS, Prices},
    lp::{Amounts, Offer},
};

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Instance types, from 5 up to so many; four capacity types of each.
    pub(super) types: usize,
    pub(super) prices: Prices,
    /// Machines of a middling type that the need is worth.
    pub(super) machines: (usize, usize),
    pub(super) pods: Pods,
    /// In one rack of two.
    pub(super) gang: bool,
}

/// What a need stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pods {
    /// Replicas of one pod that was cut to a family: 2, 4 or 8 GiB per core, as
    /// the sizes of catalog R (engine chapter §16).
    Replicas,
    /// Pods of all sizes with about so many GiB per core, from 1 to 8.
    Mixed,
}

/// One need and everything that can be bought for it.
pub(super) struct World {
    classes: Vec<Class>,
    penalty: PenaltyBucket,
    /// What the need stands for.
    pub(super) pods: Vec<Amounts>,
    gang: bool,
}

const PENALTIES: [f64; 8] = [0.0, 0.5, 1.0, 2.0, 8.0, 64.0, 1024.0, f64::INFINITY];

impl World {
    pub(super) fn new(seed: u64, kind: Kind) -> Self {
        let mut random = Random::new(seed);
        let reference = PROCESSORS[random.within(2, 5)];
        let accelerated = random.below(4) == 0;
        let classes =
            catalogue::classes(&mut random, kind.types, (reference, accelerated), kind.prices);
        let machines = random.within(kind.machines.0, kind.machines.1) as u64;
        let wanted = 1_000 * reference * machines * random.within(70, 100) as u64 / 100;
        let pods = pods(&mut random, kind.pods, wanted, (reference, accelerated));
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
                    driver.upsert(&maker.make(MachineSpec {
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

/// Pods of up to a quarter of the reference type, until they want enough cores.
fn pods(
    random: &mut Random,
    pods: Pods,
    wanted: u64,
    (reference, accelerated): (u64, bool),
) -> Vec<Amounts> {
    let about = random.within(1, 8) as u64;
    let pod = |random: &mut Random| {
        let processors = 250 * random.within(1, reference as usize) as u64;
        let percent = match pods {
            Pods::Replicas => 100 * MEMORY[about as usize % MEMORY.len()],
            Pods::Mixed => about * random.within(80, 120) as u64,
        };
        let memory = (1_024 * processors / 1_000 * percent / 100).min(2_048 * reference);
        [processors, memory, u64::from(accelerated && processors >= 3_000)]
    };
    let first = pod(random);
    let (mut all, mut asked) = (vec![first], first[0]);
    while asked < wanted {
        let next = if pods == Pods::Replicas { first } else { pod(random) };
        all.push(next);
        asked += next[0];
    }
    all
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
            let prices = [Prices::BySeries, Prices::Alone][seed as usize % 2];
            let pods = [Pods::Replicas, Pods::Mixed][seed as usize / 2 % 2];
            let gang = seed % 5 == 0;
            let kind = Kind { types: 40, prices, machines: (1, 6), pods, gang };
            let world = World::new(seed, kind);
            let unit = world.unit();
            let holds = |offer: &Offer| (0..3).all(|d| offer.brings[d] >= unit[d]);
            assert!(world.offers().iter().all(holds), "seed {seed}");
            assert!(!world.offers().is_empty(), "seed {seed}: something holds a unit");
            assert!((5..=40).contains(&world.types()), "seed {seed}");
        }
    }
}
