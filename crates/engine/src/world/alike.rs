//! Domains with the same supply, as one: most racks of a fleet are full, empty or
//! filled alike, so a gang compares a few kinds of domains, not thousands.

use std::{collections::BTreeSet, hash::BuildHasher};

use bigfleet_model::Totals;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// What of a domain is acquirable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Supply {
    pub(crate) total: Totals,
    /// The Idle part of it.
    pub(crate) idle: Totals,
    pub(crate) count: usize,
}

/// Domains by their supply.
#[derive(Clone, Default)]
pub(crate) struct Alike {
    groups: Vec<Group>,
    index: HashTable<u32>,
    free: Vec<u32>,
}

#[derive(Clone, Default)]
struct Group {
    supply: Supply,
    /// Places of domains, which are in the order of their values.
    places: BTreeSet<u32>,
}

fn hash(supply: &Supply) -> u64 {
    FixedState::default().hash_one(supply)
}

impl Alike {
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.free.clear();
        self.free.extend(0..self.groups.len() as u32);
        self.groups.iter_mut().for_each(|group| group.places.clear());
    }

    pub(crate) fn insert(&mut self, place: u32, supply: &Supply) {
        let hashed = hash(supply);
        let known = self.index.find(hashed, |at| self.groups[*at as usize].supply == *supply);
        let at = match known {
            Some(at) => *at,
            None => {
                let at = self.free.pop().unwrap_or_else(|| {
                    self.groups.push(Group::default());
                    self.groups.len() as u32 - 1
                });
                self.groups[at as usize].supply = supply.clone();
                let groups = &self.groups;
                self.index.insert_unique(hashed, at, |at| hash(&groups[*at as usize].supply));
                at
            }
        };
        self.groups[at as usize].places.insert(place);
    }

    pub(crate) fn remove(&mut self, place: u32, supply: &Supply) {
        let is = |at: &u32| self.groups[*at as usize].supply == *supply;
        let Ok(entry) = self.index.find_entry(hash(supply), is) else { return };
        let at = *entry.get();
        let places = &mut self.groups[at as usize].places;
        places.remove(&place);
        if places.is_empty() {
            entry.remove();
            self.free.push(at);
        }
    }

    /// The two first domains of each kind that are not left out: no other of its
    /// kind comes before them by any rule.
    pub(crate) fn firsts(
        &self,
        left_out: impl Fn(u32) -> bool + Copy,
    ) -> impl Iterator<Item = (u32, &Supply)> {
        let kinds = self.groups.iter().filter(|group| !group.places.is_empty());
        kinds.flat_map(move |group| {
            let places = group.places.iter().copied().filter(move |place| !left_out(*place));
            places.take(2).map(|place| (place, &group.supply))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_found_by_kind_and_in_order() {
        let of = |count| Supply { count, ..Supply::default() };
        let mut alike = Alike::default();
        for (place, count) in [(4, 1), (2, 1), (3, 1), (9, 5), (7, 0)] {
            alike.insert(place, &of(count));
        }
        alike.remove(7, &of(0));
        alike.insert(1, &of(2));
        let mut found: Vec<(u32, usize)> =
            alike.firsts(|place| place == 2).map(|(place, supply)| (place, supply.count)).collect();
        found.sort_unstable();
        assert_eq!(found, [(1, 2), (3, 1), (4, 1), (9, 5)]);
        alike.clear();
        assert_eq!(alike.firsts(|_| false).count(), 0);
    }

    #[test]
    fn a_domain_that_changes_leaves_the_others_of_its_kind_as_they_are() {
        let of = |count| Supply { count, ..Supply::default() };
        let mut alike = Alike::default();
        alike.insert(1, &of(3));
        alike.insert(2, &of(3));
        alike.remove(1, &of(3));
        alike.insert(1, &of(2));
        let mut found: Vec<(u32, usize)> =
            alike.firsts(|_| false).map(|(place, supply)| (place, supply.count)).collect();
        found.sort_unstable();
        assert_eq!(found, [(1, 2), (2, 3)]);
    }
}
