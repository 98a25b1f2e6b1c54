//! Gauges that are published as a whole.

use std::{
    collections::HashSet,
    fmt::Debug,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
};

use prometheus_client::metrics::{family::Family, gauge::Gauge};

/// A gauge of whole things, or of fractions.
pub(super) type Fraction = Gauge<f64, AtomicU64>;

/// A family of gauges of which every label set that is not in the newest
/// publication is 0: a reader must not take the last value of a combination
/// that ran empty for a present one.
#[derive(Debug)]
pub(super) struct Levels<L, G> {
    pub(super) family: Family<L, G>,
    known: Arc<Mutex<HashSet<L>>>,
}

impl<L: Clone + Hash + Eq, G: Default> Default for Levels<L, G> {
    fn default() -> Self {
        Self { family: Family::default(), known: Arc::default() }
    }
}

/// A gauge that can be set to a value of its own type.
pub(super) trait Level: Clone + Default {
    type Value: Copy + Default;
    fn level(&self, value: Self::Value);
}

impl Level for Gauge {
    type Value = i64;
    fn level(&self, value: i64) {
        self.set(value);
    }
}

impl Level for Fraction {
    type Value = f64;
    fn level(&self, value: f64) {
        self.set(value);
    }
}

impl<L: Clone + Debug + Hash + Eq, G: Level> Levels<L, G> {
    /// These values, and 0 for all others that were ever there.
    pub(super) fn publish(&self, levels: impl IntoIterator<Item = (L, G::Value)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut present = HashSet::new();
        for (labels, value) in levels {
            self.family.get_or_create(&labels).level(value);
            present.insert(labels);
        }
        for drained in known.difference(&present) {
            self.family.get_or_create(drained).level(G::Value::default());
        }
        known.extend(present);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drained_goes_to_zero() {
        let levels: Levels<Vec<(String, String)>, Gauge> = Levels::default();
        let label = |name: &str| vec![("state".to_owned(), name.to_owned())];
        let get = |name| levels.family.get(&label(name)).map(|gauge| gauge.get());
        levels.publish([(label("idle"), 3), (label("creating"), 1)]);
        levels.publish([(label("idle"), 4)]);
        assert_eq!((get("idle"), get("creating"), get("failed")), (Some(4), Some(0), None));
        levels.publish([]);
        assert_eq!(get("idle"), Some(0));
    }
}
