//! Counts of a need's machines over the domains of its hard spread (§6.4).

use std::collections::BTreeMap;

use super::prepared::Prepared;
use crate::world::{DomainId, World};

/// Machines per domain. Domains are the values present among the need's claims
/// and the candidates it could take.
pub(crate) struct Spread {
    of_class: Vec<Option<DomainId>>,
    counts: BTreeMap<DomainId, u32>,
    max_skew: u32,
}

impl Spread {
    /// Over what the need claims, what it could acquire, and `more` runs.
    pub(crate) fn over(world: &World<'_>, need: &Prepared, more: &[usize]) -> Self {
        let profile = world.profiles.row(need.profile);
        let of_class = profile.spread.clone();
        let mut counts = BTreeMap::new();
        for claim in need.claims() {
            if let Some(domain) = of_class[world.runs[claim.run].class] {
                *counts.entry(domain).or_insert(0) += 1;
            }
        }
        let acquirable = profile.classes.iter().flat_map(|class| &world.acquirable_of[*class]);
        for &number in acquirable.chain(more) {
            let run = &world.runs[number];
            if run.free() > 0
                && need.usable(world, run.class)
                && let Some(domain) = of_class[run.class]
            {
                counts.entry(domain).or_insert(0);
            }
        }
        Self { of_class, counts, max_skew: profile.max_skew }
    }

    /// Makes a domain known that has no machine of the need yet.
    pub(crate) fn widen(&mut self, class: usize) {
        if let Some(domain) = self.of_class[class] {
            self.counts.entry(domain).or_insert(0);
        }
    }

    /// Whether one more machine of this class keeps the skew. A machine without
    /// the key is no candidate.
    pub(crate) fn admits(&self, class: usize) -> bool {
        self.admits_above(class, self.min())
    }

    /// The same, against a least count that stays as it is.
    pub(crate) fn admits_above(&self, class: usize, min: u32) -> bool {
        self.of_class[class]
            .and_then(|domain| self.counts.get(&domain))
            .is_some_and(|count| *count < min.saturating_add(self.max_skew))
    }

    pub(crate) fn min(&self) -> u32 {
        self.counts.values().min().copied().unwrap_or(0)
    }

    pub(crate) fn skew(&self) -> u32 {
        self.counts.values().max().copied().unwrap_or(0) - self.min()
    }

    pub(crate) fn max_skew(&self) -> u32 {
        self.max_skew
    }

    pub(crate) fn add(&mut self, class: usize) {
        if let Some(domain) = self.of_class[class] {
            *self.counts.entry(domain).or_insert(0) += 1;
        }
    }

    pub(crate) fn remove(&mut self, class: usize) {
        if let Some(count) = self.of_class[class].and_then(|domain| self.counts.get_mut(&domain)) {
            *count = count.saturating_sub(1);
        }
    }
}
