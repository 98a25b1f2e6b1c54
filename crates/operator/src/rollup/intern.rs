//! One copy of equal things. Most requests of a cluster look like others of it, and
//! what is shared is neither stored nor compared twice.

use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::fast::RandomState;
use hashbrown::HashSet;

/// Looked through for what nobody else holds when it has grown to twice what was
/// left the last time, and not below this.
const SWEEP_FROM: usize = 1_024;

/// Hands out one `Arc` per value for as long as anybody holds it, so that equal
/// values are equal pointers.
#[derive(Debug)]
pub struct Interner<T: ?Sized> {
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T: ?Sized> {
    values: HashSet<Arc<T>, RandomState>,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        let known = Known { values: HashSet::default(), sweep_at: SWEEP_FROM };
        Self { known: Mutex::new(known) }
    }
}

impl<T: Hash + Eq + ?Sized> Interner<T> {
    /// The one value that is equal to this.
    pub fn intern<Q>(&self, value: &Q, make: impl FnOnce() -> Arc<T>) -> Arc<T>
    where
        Q: Hash + Eq + ?Sized,
        Arc<T>: Borrow<Q>,
    {
        // Every change is complete, so a poisoned lock guards good data.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.values.get(value) {
            return value.clone();
        }
        if known.values.len() >= known.sweep_at {
            known.values.retain(|value| Arc::strong_count(value) > 1);
            known.sweep_at = (known.values.len() * 2).max(SWEEP_FROM);
        }
        let value = make();
        known.values.insert(value.clone());
        value
    }

    /// Values known, whether held or not.
    pub fn len(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).values.len()
    }

    /// None known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Interner<str> {
    /// The one text that is equal to this.
    pub fn text(&self, text: &str) -> Arc<str> {
        self.intern(text, || text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_while_held_and_forgotten_after() {
        let texts: Interner<str> = Interner::default();
        let kept = texts.text("kept");
        for number in 0..100_000 {
            drop(texts.text(&number.to_string()));
            assert!(Arc::ptr_eq(&kept, &texts.text("kept")));
        }
        assert!(texts.len() <= SWEEP_FROM, "{}", texts.len());
    }
}
