use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use tokio::sync::mpsc;

use super::key::{KeyRef, ObjectKey};

/// The projections of a store by key.
pub type Items<P> = HashMap<ObjectKey, Arc<P>, FixedState>;

/// One step of a store, as its feed tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<P> {
    /// An object came or its projection changed.
    Put {
        /// Where it is.
        key: ObjectKey,
        /// What it was, if it was there.
        before: Option<Arc<P>>,
        /// What it is.
        after: Arc<P>,
    },
    /// An object went, or its projection did.
    Gone {
        /// Where it was.
        key: ObjectKey,
        /// What it was.
        before: Arc<P>,
    },
    /// A complete list took the place of what was known: all its differences, `Put` and `Gone`,
    /// as one step. Those who keep sums apply all of them before they show a sum to anybody.
    Swapped(Vec<Change<P>>),
}

/// What is known, and those who follow it.
#[derive(Debug)]
pub(super) struct Table<P> {
    pub(super) items: Items<P>,
    feeds: Vec<mpsc::UnboundedSender<Change<P>>>,
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self { items: Items::default(), feeds: Vec::new() }
    }
}

impl<P: PartialEq> Table<P> {
    /// A feed that starts from nothing: what is known already comes as its first step.
    pub(super) fn feed(&mut self, synced: bool) -> mpsc::UnboundedReceiver<Change<P>> {
        let (sender, feed) = mpsc::unbounded_channel();
        if synced {
            // Nobody can have closed the channel yet.
            let _ = sender.send(Change::Swapped(differences(&Items::default(), &self.items)));
        }
        self.feeds.push(sender);
        feed
    }

    /// Where an object is in the table, with the words already used for it.
    pub(super) fn entry(&self, key: KeyRef<'_>) -> Option<(&ObjectKey, &Arc<P>)> {
        self.items.get_key_value(&key)
    }

    pub(super) fn put(&mut self, key: ObjectKey, after: P) {
        if self.items.get(&key).is_some_and(|before| **before == after) {
            return;
        }
        let after = Arc::new(after);
        let before = self.items.insert(key.clone(), after.clone());
        self.tell(|| Change::Put { key, before, after });
    }

    pub(super) fn remove(&mut self, key: KeyRef<'_>) {
        if let Some((key, before)) = self.items.remove_entry(&key) {
            self.tell(|| Change::Gone { key, before });
        }
    }

    /// Puts a complete list in the place of everything; what was there is the caller's to drop.
    pub(super) fn swap(&mut self, items: Items<P>) -> Items<P> {
        let before = std::mem::replace(&mut self.items, items);
        if !self.feeds.is_empty() {
            let change = Change::Swapped(differences(&before, &self.items));
            self.tell(|| change);
        }
        before
    }

    fn tell(&mut self, change: impl FnOnce() -> Change<P>) {
        self.feeds.retain(|feed| !feed.is_closed());
        let Some((last, others)) = self.feeds.split_last() else { return };
        let change = change();
        for feed in others {
            let _ = feed.send(change.shared());
        }
        let _ = last.send(change);
    }
}

impl<P> Change<P> {
    /// A clone that asks nothing of `P`.
    fn shared(&self) -> Self {
        match self {
            Self::Put { key, before, after } => {
                Self::Put { key: key.clone(), before: before.clone(), after: after.clone() }
            }
            Self::Gone { key, before } => Self::Gone { key: key.clone(), before: before.clone() },
            Self::Swapped(changes) => Self::Swapped(changes.iter().map(Self::shared).collect()),
        }
    }
}

fn differences<P: PartialEq>(before: &Items<P>, after: &Items<P>) -> Vec<Change<P>> {
    let put = after.iter().filter_map(|(key, value)| {
        let earlier = before.get(key);
        let same = earlier.is_some_and(|earlier| Arc::ptr_eq(earlier, value) || earlier == value);
        (!same).then(|| Change::Put {
            key: key.clone(),
            before: earlier.cloned(),
            after: value.clone(),
        })
    });
    let gone = before
        .iter()
        .filter(|(key, _)| !after.contains_key(*key))
        .map(|(key, value)| Change::Gone { key: key.clone(), before: value.clone() });
    put.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("apps", name)
    }

    fn items(list: &[(&str, u32)]) -> Items<u32> {
        list.iter().map(|(name, value)| (key(name), Arc::new(*value))).collect()
    }

    fn replay(known: &mut Items<u32>, change: &Change<u32>) {
        match change {
            Change::Put { key, before, after } => {
                assert_eq!(known.insert(key.clone(), after.clone()), *before, "{key}");
            }
            Change::Gone { key, before } => {
                assert_eq!(known.remove(key).as_ref(), Some(before), "{key}");
            }
            Change::Swapped(changes) => changes.iter().for_each(|change| replay(known, change)),
        }
    }

    #[test]
    fn a_feed_rebuilds_the_table_step_by_step() {
        let mut table = Table::default();
        let mut early = table.feed(false);
        table.swap(items(&[("a", 1), ("b", 2)]));
        table.put(key("c"), 3);
        let mut late = table.feed(true);
        table.put(key("a"), 10);
        table.remove(KeyRef { namespace: Some("apps"), name: "b" });
        table.remove(KeyRef { namespace: Some("apps"), name: "never there" });
        table.swap(items(&[("a", 11), ("c", 3), ("d", 4)]));
        for feed in [&mut early, &mut late] {
            let mut known = Items::default();
            while let Ok(change) = feed.try_recv() {
                replay(&mut known, &change);
            }
            assert_eq!(known, table.items);
        }
    }

    #[test]
    fn an_unchanged_projection_is_no_change() {
        let mut table = Table::default();
        table.swap(items(&[("a", 1)]));
        let mut feed = table.feed(false);
        table.put(key("a"), 1);
        table.swap(items(&[("a", 1)]));
        assert_eq!(feed.try_recv().unwrap(), Change::Swapped(Vec::new()));
        assert!(feed.try_recv().is_err());
    }

    #[test]
    fn a_dropped_feed_is_forgotten() {
        let mut table = Table::default();
        drop(table.feed(false));
        table.put(key("a"), 1);
        assert!(table.feeds.is_empty());
    }
}
