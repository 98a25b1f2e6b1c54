//! What is owned: topology domains and clusters.

use std::collections::BTreeSet;

use bigfleet_model::{ClusterId, text_newtype};

/// Longest label key and value.
const MAX_KEY: usize = 317;
const MAX_VALUE: usize = 63;

text_newtype! {
    /// Names a transfer; never used twice.
    TransferId
}

/// One value of one topology label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain {
    /// The label.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A domain that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {bytes} bytes; send 1 to {most}")]
pub struct DomainError {
    field: &'static str,
    bytes: usize,
    most: usize,
}

impl Domain {
    /// A domain whose label can exist.
    pub fn new(key: String, value: String) -> Result<Self, DomainError> {
        let parts = [("topology_key", &key, MAX_KEY), ("topology_value", &value, MAX_VALUE)];
        for (field, text, most) in parts {
            if text.is_empty() || text.len() > most {
                return Err(DomainError { field, bytes: text.len(), most });
            }
        }
        Ok(Self { key, value })
    }
}

/// A row of the coordinator's: one owner at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Its unbound machines.
    Domain(Domain),
    /// Its bound machines, wherever they are.
    Cluster(ClusterId),
}

/// Several keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Domains of the one ownership key.
    pub domains: BTreeSet<Domain>,
    /// Clusters.
    pub clusters: BTreeSet<ClusterId>,
}

impl Keys {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty() && self.clusters.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.domains.len() + self.clusters.len()
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        match key {
            Key::Domain(domain) => self.domains.contains(domain),
            Key::Cluster(cluster) => self.clusters.contains(cluster),
        }
    }

    /// Adds one; whether it is new.
    pub fn insert(&mut self, key: Key) -> bool {
        match key {
            Key::Domain(domain) => self.domains.insert(domain),
            Key::Cluster(cluster) => self.clusters.insert(cluster),
        }
    }

    /// Takes one out; whether it was there.
    pub fn remove(&mut self, key: &Key) -> bool {
        match key {
            Key::Domain(domain) => self.domains.remove(domain),
            Key::Cluster(cluster) => self.clusters.remove(cluster),
        }
    }

    /// All, domains first.
    pub fn iter(&self) -> impl Iterator<Item = Key> + '_ {
        let clusters = self.clusters.iter().cloned().map(Key::Cluster);
        self.domains.iter().cloned().map(Key::Domain).chain(clusters)
    }

    /// Those that are not among the others.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        self.iter().filter(|key| !others.contains(key)).collect()
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        let mut all = Self::default();
        for key in keys {
            all.insert(key);
        }
        all
    }
}
