//! Counts of a need's machines over the domains of its hard spread (§6.4).

use smallvec::SmallVec;

use crate::{
    handle::{ClassIx, DomainIx, MachineIx, PreparedIx},
    world::World,
};

/// Machines per domain. Domains are the values present among the need's claims
/// and the candidates it could take.
#[derive(Clone)]
pub(crate) struct Spread {
    counts: SmallVec<[(DomainIx, u32); 8]>,
    max_skew: u32,
}

impl Spread {
    /// Over these machines alone.
    pub(crate) fn among(
        world: &World,
        need: PreparedIx,
        machines: impl Iterator<Item = MachineIx>,
    ) -> Self {
        let row = &world.needs[need];
        let max_skew = world.profiles[row.profile].max_skew;
        let mut spread = Self { counts: SmallVec::new(), max_skew };
        for machine in machines {
            spread.add(world.domain(row, world.machines.rows[machine].class));
        }
        spread
    }

    /// Whether a domain has more than the allowed skew fewer machines than the
    /// fullest.
    pub(crate) fn lacks(&self, domain: Option<DomainIx>) -> bool {
        let count = |domain| {
            self.counts.iter().find(|(known, _)| *known == domain).map_or(0, |(_, count)| *count)
        };
        let fullest = self.counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
        domain.is_some_and(|domain| count(domain).saturating_add(self.max_skew) < fullest)
    }

    /// Over what the need claims and what it could acquire.
    pub(crate) fn over(world: &World, need: PreparedIx) -> Self {
        let row = &world.needs[need];
        let mut spread = Self::among(world, need, row.claims());
        for &class in &world.pools[row.pool].classes {
            let acquirable = world.classes[class].unbound.acquirable;
            if acquirable.iter().any(|run| world.runs[*run].has_unclaimed()) {
                spread.widen(world, need, class);
            }
        }
        spread
    }

    /// Makes a domain known that has no machine of the need yet.
    pub(crate) fn widen(&mut self, world: &World, need: PreparedIx, class: ClassIx) {
        if let Some(domain) = world.domain(&world.needs[need], class) {
            self.count(domain);
        }
    }

    fn count(&mut self, domain: DomainIx) -> &mut u32 {
        let at = match self.counts.iter().position(|(known, _)| *known == domain) {
            Some(at) => at,
            None => {
                self.counts.push((domain, 0));
                self.counts.len() - 1
            }
        };
        &mut self.counts[at].1
    }

    /// Whether a domain is counted; a missing one needs no counting.
    pub(crate) fn knows(&self, domain: Option<DomainIx>) -> bool {
        domain.is_none_or(|domain| self.counts.iter().any(|(known, _)| *known == domain))
    }

    /// Whether one more machine in this domain keeps the skew. A machine without
    /// the key is no candidate.
    pub(crate) fn admits(&self, domain: Option<DomainIx>) -> bool {
        self.admits_above(domain, self.min())
    }

    /// The same, against a least count that stays as it is.
    pub(crate) fn admits_above(&self, domain: Option<DomainIx>, min: u32) -> bool {
        self.counts
            .iter()
            .find(|(known, _)| Some(*known) == domain)
            .is_some_and(|(_, count)| *count < min.saturating_add(self.max_skew))
    }

    pub(crate) fn min(&self) -> u32 {
        self.counts.iter().map(|(_, count)| *count).min().unwrap_or(0)
    }

    pub(crate) fn skew(&self) -> u32 {
        self.counts.iter().map(|(_, count)| *count).max().unwrap_or(0) - self.min()
    }

    pub(crate) fn max_skew(&self) -> u32 {
        self.max_skew
    }

    pub(crate) fn add(&mut self, domain: Option<DomainIx>) {
        if let Some(domain) = domain {
            *self.count(domain) += 1;
        }
    }

    pub(crate) fn remove(&mut self, domain: Option<DomainIx>) {
        if let Some(domain) = domain {
            let count = self.count(domain);
            *count = count.saturating_sub(1);
        }
    }
}
