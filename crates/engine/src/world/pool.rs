//! What a need can use: matched once against every class, and counted by domain.

use std::borrow::Cow;

use bigfleet_model::{Requirement, Totals};

use super::{
    ClassRow, RunKind, TopologyRow,
    alike::{Alike, Supply},
};
use crate::handle::{ClassIx, Column, DomainIx, Handle, RunIx, TopologyIx};

/// A domain in which the pool has no class.
const NO_PLACE: u32 = u32::MAX;

/// What makes two needs look at the same supply.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) requirements: Vec<Requirement>,
    /// Each machine must hold it alone.
    pub(crate) unit: Totals,
    /// Machines count in whole units (§4.2).
    pub(crate) folded: bool,
    pub(crate) topology: Option<TopologyIx>,
}

#[derive(Clone)]
pub(crate) struct PoolRow {
    pub(crate) key: PoolKey,
    /// Usable classes, in number order.
    pub(crate) classes: Vec<ClassIx>,
    /// One bit per class.
    pub(crate) usable: Vec<u64>,
    /// The same of classes that match and are too small for the unit (§6.5).
    too_small: Vec<u64>,
    /// Per dimension the most that a usable class offers.
    pub(crate) largest: Totals,
    /// Classes that were looked at.
    seen: usize,
    /// Acquirable runs that rank alike; empty until somebody acquires.
    pub(crate) ranks: Vec<RankRow>,
    /// Classes that `ranks` and `domains` cover.
    pub(crate) ranked: usize,
    /// View, and number of returns, in which nothing acquirable was left.
    pub(crate) exhausted: Option<(u32, u32)>,
    /// Domains of the usable classes, by value; of gangs and spread needs.
    pub(crate) domains: Vec<DomainRow>,
    /// Place of each domain among them, by number.
    places: Vec<u32>,
    /// The domains by what they have, where there are many.
    pub(crate) alike: Alike,
    /// View in which `domains` counts what is acquirable.
    pub(crate) counted_in: u32,
}

/// Acquirable runs that differ in nothing that the ranking of §6.4 looks at
/// before the id.
#[derive(Clone)]
pub(crate) struct RankRow {
    pub(crate) kind: RunKind,
    /// Any class of them.
    pub(crate) sample: ClassIx,
    pub(crate) contribution: Totals,
    /// Place among the pool's domains.
    pub(crate) domain: Option<u32>,
    pub(crate) runs: Vec<RunIx>,
    /// Label of the next machine of each run; `u64::MAX` if there is none. May
    /// lag behind, for others take from the same runs.
    pub(crate) heads: Vec<u64>,
    /// View in which `heads` was filled.
    pub(crate) view: u32,
}

/// Supply of one domain.
#[derive(Clone)]
pub(crate) struct DomainRow {
    pub(crate) domain: DomainIx,
    /// Places in `ranks`.
    pub(crate) ranks: Vec<u32>,
    pub(crate) supply: Supply,
}

impl PoolRow {
    pub(crate) fn new(key: PoolKey) -> Self {
        Self {
            key,
            classes: Vec::new(),
            usable: Vec::new(),
            too_small: Vec::new(),
            largest: Totals::zero(),
            seen: 0,
            ranks: Vec::new(),
            ranked: 0,
            exhausted: None,
            domains: Vec::new(),
            places: Vec::new(),
            alike: Alike::default(),
            counted_in: 0,
        }
    }

    /// Looks at classes that are new. Whether one of them offers more than all others.
    pub(crate) fn learn(&mut self, classes: &Column<ClassIx, ClassRow>) -> bool {
        let mut more = false;
        self.usable.resize(classes.len().div_ceil(64), 0);
        self.too_small.resize(classes.len().div_ceil(64), 0);
        for at in self.seen..classes.len() {
            let class = ClassIx::at(at);
            let row = &classes[class];
            let matches =
                self.key.requirements.iter().all(|requirement| requirement.matches(&*row.class));
            if matches && row.capacity.covers(&self.key.unit) {
                self.usable[at / 64] |= 1 << (at % 64);
                self.classes.push(class);
                if !self.largest.covers(&row.capacity) {
                    self.largest = self.largest.max(&row.capacity);
                    more = true;
                }
            } else if matches && !self.key.folded {
                self.too_small[at / 64] |= 1 << (at % 64);
            }
        }
        self.seen = classes.len();
        more
    }

    pub(crate) fn has(&self, class: ClassIx) -> bool {
        let at = class.index();
        self.usable[at / 64] & (1 << (at % 64)) != 0
    }

    /// Whether needs may have outgrown machines of a class: they match, and are too small.
    /// Machines of a fold hold whole gangs, so nobody runs on one that is too small.
    pub(crate) fn outgrew(&self, class: ClassIx) -> bool {
        let at = class.index();
        self.too_small[at / 64] & (1 << (at % 64)) != 0
    }

    /// What one machine of a class adds: all it has, or as many whole units as a
    /// fold's machine holds (§4.2).
    pub(crate) fn contribution<'c>(&self, capacity: &'c Totals) -> Cow<'c, Totals> {
        if !self.key.folded {
            return Cow::Borrowed(capacity);
        }
        let units = u64::try_from(self.units(capacity)).unwrap_or(u64::MAX);
        Cow::Owned(self.key.unit.scale(units))
    }

    /// Whole units that a capacity holds.
    pub(crate) fn units(&self, capacity: &Totals) -> i128 {
        let whole = |(dimension, unit): (_, i128)| capacity.get(dimension) / unit;
        self.key.unit.iter().map(whole).min().unwrap_or(0)
    }

    /// Place of a domain among the pool's.
    pub(crate) fn place(&self, domain: DomainIx) -> Option<u32> {
        self.places.get(domain.index()).copied().filter(|place| *place != NO_PLACE)
    }

    /// Whether there are so many domains that it pays to keep them by kind.
    pub(crate) const fn has_many_domains(&self) -> bool {
        const FEW: usize = 64;
        self.domains.len() > FEW
    }

    /// Groups the acquirable runs of all usable classes by rank and domain.
    pub(crate) fn rank(
        &mut self,
        classes: &Column<ClassIx, ClassRow>,
        topology: Option<&TopologyRow>,
    ) {
        if self.ranked == self.classes.len() {
            return;
        }
        self.ranked = self.classes.len();
        self.counted_in = 0;
        self.ranks.clear();
        self.domains.clear();
        if let Some(topology) = topology {
            let mut domains: Vec<DomainIx> =
                self.classes.iter().filter_map(|class| topology.of_class(*class)).collect();
            domains.sort_unstable_by(|a, b| topology.order(*a, *b));
            domains.dedup();
            self.domains.extend(domains.into_iter().map(|domain| DomainRow {
                domain,
                ranks: Vec::new(),
                supply: Supply::default(),
            }));
            let places = self.domains.iter().map(|row| row.domain.index() + 1);
            self.places = vec![NO_PLACE; places.max().unwrap_or(0)];
            for (place, row) in self.domains.iter().enumerate() {
                self.places[row.domain.index()] = place as u32;
            }
        }
        for at in 0..self.classes.len() {
            let class = self.classes[at];
            let domain = match topology {
                // A machine without the key is no candidate.
                Some(topology) => match topology.of_class(class) {
                    Some(domain) => self.place(domain),
                    None => continue,
                },
                None => None,
            };
            for (kind, run) in
                RunKind::ACQUIRABLE.into_iter().zip(classes[class].unbound.acquirable)
            {
                self.add_to_rank(classes, kind, class, domain, run);
            }
        }
    }

    fn add_to_rank(
        &mut self,
        classes: &Column<ClassIx, ClassRow>,
        kind: RunKind,
        class: ClassIx,
        domain: Option<u32>,
        run: RunIx,
    ) {
        let row = &classes[class];
        let alike = |rank: &RankRow| {
            let sample = &classes[rank.sample];
            rank.kind == kind
                && rank.domain == domain
                && sample.price.to_bits() == row.price.to_bits()
                && sample.probability.to_bits() == row.probability.to_bits()
                && sample.capacity == row.capacity
        };
        // In a domain there are few; without domains there are few, too, for
        // zones and racks do not matter.
        let known = match domain {
            Some(domain) => {
                let places = &self.domains[domain as usize].ranks;
                places.iter().copied().find(|at| alike(&self.ranks[*at as usize]))
            }
            None => self.ranks.iter().position(alike).map(|at| at as u32),
        };
        match known {
            Some(at) => self.ranks[at as usize].runs.push(run),
            None => {
                if let Some(domain) = domain {
                    self.domains[domain as usize].ranks.push(self.ranks.len() as u32);
                }
                self.ranks.push(RankRow {
                    kind,
                    sample: class,
                    contribution: self.contribution(&row.capacity).into_owned(),
                    domain,
                    runs: vec![run],
                    heads: Vec::new(),
                    view: 0,
                });
            }
        }
    }
}
