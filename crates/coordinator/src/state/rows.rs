//! Who may hold a cluster or a domain.

use std::collections::{BTreeMap, BTreeSet};

use super::id::{Domain, Key, Label, ShardId};

/// One cluster or domain. With a mark the marked shard may still hold the key and
/// nobody else does; without, only the owner may. It has at least one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Whose it is, or is to be.
    pub owner: Option<ShardId>,
    /// Who has not let go of it yet.
    pub releasing: Option<Releasing>,
}

/// The mark of a shard that has not let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Releasing {
    /// The shard.
    pub from: ShardId,
    /// Log index of the last change of the owner: word from the shard counts only if
    /// it knew of that change.
    pub since: u64,
}

impl Row {
    /// Who may act on it now.
    #[must_use]
    pub fn held_by(&self) -> Option<&ShardId> {
        self.owner.as_ref().filter(|_| self.releasing.is_none())
    }

    const fn is_empty(&self) -> bool {
        self.owner.is_none() && self.releasing.is_none()
    }
}

/// Both tables of rows, and by shard what names it: reports ask that, hundreds a
/// second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    rows: BTreeMap<Key, Row>,
    owned: BTreeMap<ShardId, BTreeSet<Key>>,
    releasing: BTreeMap<ShardId, BTreeSet<Key>>,
    /// By the index since which: how many marks.
    marks: BTreeMap<u64, usize>,
}

impl Rows {
    pub(super) fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Row)> {
        self.rows.iter()
    }

    /// Rows with this owner, by key.
    pub(super) fn owned_by(&self, shard: &str) -> impl Iterator<Item = &Key> {
        self.owned.get(shard).into_iter().flatten()
    }

    /// Shards that own something, and what.
    pub(super) fn owners(&self) -> &BTreeMap<ShardId, BTreeSet<Key>> {
        &self.owned
    }

    /// Rows that this shard has not let go of, by key.
    pub(super) fn releasing_from(&self, shard: &str) -> impl Iterator<Item = &Key> {
        self.releasing.get(shard).into_iter().flatten()
    }

    /// How many rows somebody has not let go of.
    pub(super) fn releasing_count(&self) -> usize {
        self.marks.values().sum()
    }

    /// All marked rows, by key.
    pub(super) fn marked(&self) -> BTreeSet<&Key> {
        self.releasing.values().flatten().collect()
    }

    /// The index of the oldest mark.
    pub(super) fn oldest_mark(&self) -> Option<u64> {
        self.marks.keys().next().copied()
    }

    /// Whether there is a row of this topology key.
    pub(super) fn has_domain_of(&self, key: &Label) -> bool {
        let first = Key::Domain(Domain { key: key.clone(), value: "".into() });
        let next = self.rows.range(first..).next();
        next.is_some_and(|(found, _)| found.domain().is_some_and(|domain| domain.key == *key))
    }

    /// Writes a row; one without owner and mark goes.
    pub(super) fn set(&mut self, key: &Key, row: Row) {
        let old = self.rows.remove(key).unwrap_or_default();
        forget(&mut self.owned, old.owner.as_ref(), key);
        if let Some(mark) = &old.releasing {
            forget(&mut self.releasing, Some(&mark.from), key);
            if let Some(count) = self.marks.get_mut(&mark.since) {
                *count -= 1;
                if *count == 0 {
                    self.marks.remove(&mark.since);
                }
            }
        }
        if row.is_empty() {
            return;
        }
        if let Some(owner) = &row.owner {
            self.owned.entry(owner.clone()).or_default().insert(key.clone());
        }
        if let Some(mark) = &row.releasing {
            self.releasing.entry(mark.from.clone()).or_default().insert(key.clone());
            *self.marks.entry(mark.since).or_default() += 1;
        }
        self.rows.insert(key.clone(), row);
    }
}

fn forget(index: &mut BTreeMap<ShardId, BTreeSet<Key>>, shard: Option<&ShardId>, key: &Key) {
    let Some(shard) = shard else { return };
    if let Some(keys) = index.get_mut(shard) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(shard);
        }
    }
}
