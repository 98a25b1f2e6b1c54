//! Texts and their numbers.

use bigfleet_model::{ClusterId, Fingerprint, Group};
use hashbrown::HashMap;

use super::Key;

/// Clusters in name order, and identities of needs.
#[derive(Default)]
pub(crate) struct Names<'a> {
    clusters: Vec<&'a ClusterId>,
    keys: HashMap<(&'a str, &'a str), Key, foldhash::fast::FixedState>,
}

impl<'a> Names<'a> {
    /// Of these clusters, in any order.
    pub(super) fn of(clusters: impl Iterator<Item = &'a ClusterId>) -> Self {
        let mut clusters: Vec<_> = clusters.collect();
        clusters.sort_unstable();
        clusters.dedup();
        Self { clusters, ..Self::default() }
    }

    pub(crate) fn cluster(&self, number: usize) -> &'a ClusterId {
        self.clusters[number]
    }

    pub(crate) fn clusters(&self) -> usize {
        self.clusters.len()
    }

    pub(super) fn number(&self, cluster: &ClusterId) -> Option<usize> {
        self.clusters.binary_search(&cluster).ok()
    }

    /// The number of an identity, new or known.
    pub(super) fn key(&mut self, fingerprint: &'a Fingerprint, group: &'a Group) -> Key {
        let next = Key(self.keys.len() as u32);
        *self.keys.entry((fingerprint, group)).or_insert(next)
    }

    /// The number of an identity that somebody has, if so.
    pub(crate) fn known_key(&self, fingerprint: &str, group: &str) -> Option<Key> {
        self.keys.get(&(fingerprint, group)).copied()
    }
}
