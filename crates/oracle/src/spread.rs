//! A hard spread: counts per domain, and which domains are open (§6.4).

use std::collections::BTreeMap;

use bigfleet_model::Attributes;

use crate::cycle::Cycle;

/// Machines per domain.
pub(crate) type Counts = BTreeMap<String, i64>;

impl Cycle<'_> {
    /// In which domain of the need's enforced spread the machine lies.
    pub(crate) fn spread_value(&self, need: usize, machine: usize) -> Option<&str> {
        let spread = self.needs[need].spread()?;
        self.machine(machine).class.attribute(&spread.topology_key)
    }

    /// How many of `counted` lie in each domain; `others` only name domains.
    pub(crate) fn spread_counts(&self, need: usize, counted: &[usize], others: &[usize]) -> Counts {
        let mut counts = Counts::new();
        for machine in others {
            if let Some(value) = self.spread_value(need, *machine) {
                counts.entry(value.to_owned()).or_default();
            }
        }
        for machine in counted {
            if let Some(value) = self.spread_value(need, *machine) {
                *counts.entry(value.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    /// `max_skew`, below 1 treated as 1 (§1.4).
    pub(crate) fn max_skew(&self, need: usize) -> i64 {
        self.needs[need].spread().map_or(1, |spread| i64::from(spread.skew()))
    }

    /// The machine lies in a domain whose count ≤ min_count + max_skew − 1 (§6.4).
    /// Without a spread every machine is admissible, with one none that lacks the
    /// key.
    pub(crate) fn admissible(&self, need: usize, machine: usize, counts: &Counts) -> bool {
        if self.needs[need].spread().is_none() {
            return true;
        }
        let Some(value) = self.spread_value(need, machine) else { return false };
        let least = counts.values().copied().min().unwrap_or(0);
        let count = counts.get(value).copied().unwrap_or(0);
        count < least + self.max_skew(need)
    }
}

/// Largest count less the smallest.
pub(crate) fn skew(counts: &Counts) -> i64 {
    let largest = counts.values().copied().max().unwrap_or(0);
    let least = counts.values().copied().min().unwrap_or(0);
    largest - least
}
