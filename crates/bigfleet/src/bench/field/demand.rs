//! What one cluster of the field wants, and how that changes.

use std::sync::Arc;

use bigfleet_model::{
    ClusterId, Group, Need, Operator, PenaltyBucket, Profile, Resources, TopologySpread,
    WhenUnsatisfiable,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};

use super::{
    super::{
        make::{RACK, cluster, requirement, vector},
        random::Random,
    },
    archetype::{Archetype, CATALOGUE, Together},
};

/// Thousandths of a replica in a plain object on average.
const REPLICAS_MILLI: usize = 21_400;
/// Label by which profiles of one archetype differ. No machine carries it, so
/// that each may use all machines of its archetype.
const AVOID: &str = "bench.bigfleet/avoid";

/// What needs of one archetype have in common in all clusters.
pub(super) struct Shared {
    profiles: Vec<Arc<Profile>>,
    unit: Resources,
}

pub(super) fn shared() -> Vec<Shared> {
    let of = |archetype: &Archetype| Shared {
        profiles: (0..archetype.profiles).map(|k| Arc::new(profile(archetype, k))).collect(),
        unit: vector(archetype.unit),
    };
    CATALOGUE.iter().map(of).collect()
}

fn profile(archetype: &Archetype, k: usize) -> Profile {
    let mut requirements = vec![requirement(INSTANCE_TYPE_LABEL, Operator::In, &[archetype.name])];
    let mut spread = Vec::new();
    match archetype.together {
        Together::Rack(..) => requirements.push(requirement(RACK, Operator::Same, &[])),
        Together::Spread(share) if k * 100 < archetype.profiles * share => {
            spread.push(TopologySpread {
                topology_key: ZONE_LABEL.to_owned(),
                max_skew: 1,
                when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
            });
        }
        Together::Free | Together::Spread(_) => {}
    }
    if archetype.profiles > 1 {
        requirements.push(requirement(AVOID, Operator::NotIn, &[&format!("team-{k}")]));
    }
    let (interruption, reclamation) = archetype.penalties;
    Profile::new(
        requirements,
        spread,
        archetype.priority,
        PenaltyBucket::from_dollars(interruption),
        PenaltyBucket::from_dollars(reclamation),
    )
}

/// A need with its size.
pub(super) struct Item {
    pub(super) archetype: usize,
    pub(super) need: Need,
    /// Replicas at the beginning.
    base: u64,
    pub(super) units: u64,
}

impl Item {
    /// Its need as it is now; none while a gang is gone.
    fn current(&self) -> Option<Need> {
        let aggregate = self.need.min_unit.scale(self.units);
        (self.units > 0).then(|| Need { aggregate, ..self.need.clone() })
    }

    fn is_gang(&self) -> bool {
        matches!(CATALOGUE[self.archetype].together, Together::Rack(..))
    }
}

/// One cluster with the objects of the whole catalogue.
pub(super) struct Demand {
    pub(super) id: ClusterId,
    pub(super) items: Vec<Item>,
    /// First item of each archetype.
    first: Vec<usize>,
}

impl Demand {
    pub(super) fn new(number: usize, shared: &[Shared], seed: u64) -> Self {
        let mut demand = Self { id: cluster(number), items: Vec::new(), first: Vec::new() };
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        for (at, (archetype, shared)) in CATALOGUE.iter().zip(shared).enumerate() {
            demand.first.push(demand.items.len());
            if let Together::Rack(least, most) = archetype.together {
                for gang in 0..archetype.objects {
                    let units = random.within(least, most) as u64;
                    let group = Group::from(format!("{}-{gang}", archetype.name));
                    demand.push(at, shared.profiles[0].clone(), &shared.unit, group, units);
                }
            } else {
                for (k, profile) in shared.profiles.iter().enumerate() {
                    let objects = (k + 1) * archetype.objects / archetype.profiles
                        - k * archetype.objects / archetype.profiles;
                    let units = (objects * REPLICAS_MILLI).div_ceil(1_000) as u64;
                    demand.push(at, profile.clone(), &shared.unit, Group::none(), units);
                }
            }
        }
        demand
    }

    fn push(
        &mut self,
        archetype: usize,
        profile: Arc<Profile>,
        unit: &Resources,
        group: Group,
        units: u64,
    ) {
        let arrival = self.items.len() as i64 + 1;
        let (cluster, min_unit) = (self.id.clone(), unit.clone());
        let aggregate = unit.scale(units);
        let need = Need { cluster, profile, group, aggregate, min_unit, arrival };
        self.items.push(Item { archetype, need, base: units, units });
    }

    pub(super) fn needs(&self) -> Vec<Need> {
        self.items.iter().filter_map(Item::current).collect()
    }

    /// A tenth more replicas of all plain objects.
    pub(super) fn grown(&self) -> Vec<Need> {
        let grow = |item: &Item| {
            let mut need = item.current()?;
            if !item.is_gang() {
                need.aggregate = need.min_unit.scale(item.units + item.units.div_ceil(10));
            }
            Some(need)
        };
        self.items.iter().filter_map(grow).collect()
    }

    /// One object, drawn by weight, comes or goes: a plain need moves by one
    /// object's replicas around its base, a gang leaves or returns.
    pub(super) fn churn(&mut self, random: &mut Random) {
        let total = CATALOGUE.iter().map(|row| row.objects).sum();
        let mut rest = random.below(total);
        let drawn = CATALOGUE.iter().position(|row| {
            let here = rest < row.objects;
            rest = rest.saturating_sub(row.objects);
            here
        });
        let at = drawn.unwrap_or(0);
        let end = self.first.get(at + 1).copied().unwrap_or(self.items.len());
        let chosen = self.first[at] + random.below(end - self.first[at]);
        let item = &mut self.items[chosen];
        let object = random.within(11, 31) as u64;
        item.units = if item.units > item.base {
            item.units.saturating_sub(object).max(1)
        } else if item.is_gang() {
            if item.units == 0 { item.base } else { 0 }
        } else if random.below(2) == 0 {
            item.units.saturating_sub(object).max(1)
        } else {
            item.units + object
        };
    }
}
