//! What can be bought: instance types in four capacity types, from a seed.

use bigfleet_model::CapacityType;

use super::{super::random::Random, lp::Amounts};

/// How a catalogue comes to its prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prices {
    /// As clouds do: a series has a price per core, per GiB and per accelerator,
    /// a discount for each capacity type, and a probability of interruption. Its
    /// families differ in memory per core, their sizes cost in proportion.
    BySeries,
    /// Every machine for itself, so that a size may cost less than its half.
    Alone,
}

/// A class of machines for sale.
pub(super) struct Class {
    pub(super) name: String,
    pub(super) capacity_type: CapacityType,
    pub(super) brings: Amounts,
    pub(super) price: f64,
    pub(super) probability: f64,
}

/// Cores of instance types.
pub(super) const PROCESSORS: [u64; 8] = [2, 4, 8, 16, 32, 48, 64, 96];
/// GiB per core of families.
pub(super) const MEMORY: [u64; 3] = [8, 4, 2];
/// A type has at least so much of the reference type's cores.
const SMALLEST: u64 = 16;
/// Part of the list price, by capacity type.
const DISCOUNTS: [(CapacityType, f64); 4] = [
    (CapacityType::BareMetal, 0.55),
    (CapacityType::Reserved, 0.62),
    (CapacityType::OnDemand, 1.0),
    (CapacityType::Spot, 0.35),
];

/// What is made of one seed.
struct Catalogue {
    classes: Vec<Class>,
    /// Instance types to make.
    count: usize,
    /// Cores of the type that demand is measured by.
    reference: u64,
    accelerated: bool,
}

/// At least 5 and at most `most` instance types, four classes of each; the first
/// family has a reference type with the most memory, so that every pod fits
/// something.
pub(super) fn classes(
    random: &mut Random,
    most: usize,
    (reference, accelerated): (u64, bool),
    prices: Prices,
) -> Vec<Class> {
    // As many small catalogues as large ones.
    let count = 5.0 * (most as f64 / 5.0).powf(random.between(0.0, 1.0));
    let count = (count.round() as usize).max(5);
    let mut catalogue = Catalogue { classes: Vec::new(), count, reference, accelerated };
    while catalogue.types() < count {
        match prices {
            Prices::BySeries => catalogue.series(random),
            Prices::Alone => catalogue.single(random),
        }
    }
    catalogue.classes
}

impl Catalogue {
    fn types(&self) -> usize {
        self.classes.len() / DISCOUNTS.len()
    }

    fn sizes(&self) -> Vec<u64> {
        PROCESSORS.into_iter().filter(|size| size * SMALLEST >= self.reference).collect()
    }

    /// One family for each ratio of memory, as far as types are wanted.
    fn series(&mut self, random: &mut Random) {
        let mut near = |value: f64| value * random.between(0.8, 1.25);
        let (core, gib, accelerator) = (near(0.034), near(0.0045), near(2.5));
        let discounts = DISCOUNTS.map(|(_, discount)| discount * random.between(0.9, 1.1));
        let probability = random.between(0.01, 0.2);
        for ratio in MEMORY {
            let mut sizes = self.sizes();
            while sizes.len() > self.count - self.types() {
                let out = random.below(sizes.len());
                if !self.classes.is_empty() || sizes[out] != self.reference {
                    sizes.remove(out);
                }
            }
            for processors in sizes {
                let brings = self.brings(processors, processors * ratio);
                let list = core * processors as f64
                    + gib * (processors * ratio) as f64
                    + accelerator * brings[2] as f64;
                self.add(brings, probability, discounts.map(|discount| list * discount));
            }
        }
    }

    /// One type.
    fn single(&mut self, random: &mut Random) {
        let (processors, ratio) = if self.classes.is_empty() {
            (self.reference, MEMORY[0])
        } else {
            let sizes = self.sizes();
            (sizes[random.below(sizes.len())], MEMORY[random.below(MEMORY.len())])
        };
        let brings = self.brings(processors, processors * ratio);
        let list = (0.04 * processors as f64
            + 0.005 * (processors * ratio) as f64
            + 2.5 * brings[2] as f64)
            * random.between(0.85, 1.2);
        let probability = random.between(0.01, 0.2);
        let price = |(_, discount)| list * discount * random.between(0.9, 1.1);
        self.add(brings, probability, DISCOUNTS.map(price));
    }

    fn brings(&self, processors: u64, memory: u64) -> Amounts {
        let accelerators = if self.accelerated { processors.div_ceil(12) } else { 0 };
        [1_000 * processors, 1_024 * memory, accelerators]
    }

    fn add(&mut self, brings: Amounts, probability: f64, prices: [f64; DISCOUNTS.len()]) {
        let number = self.types();
        for ((capacity_type, _), price) in DISCOUNTS.into_iter().zip(prices) {
            let spot = capacity_type == CapacityType::Spot;
            self.classes.push(Class {
                name: format!("type-{number}"),
                capacity_type,
                brings,
                price,
                probability: if spot { probability } else { 0.0 },
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_size_of_a_family_costs_twice_as_much() {
        let mut random = Random::new(1);
        let classes = classes(&mut random, 400, (16, false), Prices::BySeries);
        let core = |class: &Class| class.price / class.brings[0] as f64;
        // Types of the first family, in the order of their sizes.
        let family = classes[..4 * PROCESSORS.len()].chunks(DISCOUNTS.len());
        let on_demand: Vec<f64> = family.map(|of_type| core(&of_type[2])).collect();
        for price in &on_demand {
            assert!((price / on_demand[0] - 1.0).abs() < 1e-9, "{on_demand:?}");
        }
    }
}
