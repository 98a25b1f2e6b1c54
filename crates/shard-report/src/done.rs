//! Instructions that took effect, so that none does so twice.

use std::collections::{BTreeSet, VecDeque};

/// So many are remembered, the newest.
pub const REMEMBERED: usize = 4_096;

/// Ids of the last instructions that took effect.
#[derive(Clone, Debug)]
pub(crate) struct DoneSet {
    order: VecDeque<String>,
    ids: BTreeSet<String>,
}

impl DoneSet {
    pub(crate) const fn new() -> Self {
        Self { order: VecDeque::new(), ids: BTreeSet::new() }
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Remembers an id that it does not contain.
    pub(crate) fn insert(&mut self, id: &str) {
        if !self.ids.insert(id.to_owned()) {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut done = DoneSet::new();
        for id in 0..=REMEMBERED {
            done.insert(&id.to_string());
            done.insert(&id.to_string());
        }
        assert!(!done.contains("0"));
        assert!(done.contains("1") && done.contains(&REMEMBERED.to_string()));
        assert_eq!((done.order.len(), done.ids.len()), (REMEMBERED, REMEMBERED));
    }
}
