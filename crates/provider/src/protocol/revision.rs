//! What changed, in which order (provider chapter §6).

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Bound,
};

use bigfleet_model::MachineId;

use super::page::Page;
use crate::mutant::{Mutant, active};

/// Counts visible changes of a store; the first is 1.
pub type Revision = u64;

/// A place in the history of one store, as readers carry it about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Random per created store, so that a new store's numbers mean nothing in
    /// an old one's cursor.
    pub store_life: u64,
    /// Everything up to it has been seen.
    pub revision: Revision,
}

/// Not a cursor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("since_revision: not a revision of this provider")]
pub struct Garbled;

impl Cursor {
    /// Reads exactly what [`Cursor`] prints.
    pub fn parse(bytes: &[u8]) -> Result<Self, Garbled> {
        let text = std::str::from_utf8(bytes).map_err(|_| Garbled)?;
        let (life, revision) =
            text.strip_prefix("1.").and_then(|rest| rest.split_once('.')).ok_or(Garbled)?;
        let cursor = Self {
            store_life: u64::from_str_radix(life, 16).map_err(|_| Garbled)?,
            revision: revision.parse().map_err(|_| Garbled)?,
        };
        // Signs, leading zeros, capitals: other texts for the same numbers.
        if cursor.to_string() == text { Ok(cursor) } else { Err(Garbled) }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{:016x}.{}", self.store_life, self.revision)
    }
}

/// Every machine once, by its last change.
#[derive(Clone, Debug, Default)]
pub struct RevIndex {
    store_life: u64,
    head: Revision,
    by_revision: BTreeMap<Revision, MachineId>,
    by_machine: HashMap<MachineId, Revision>,
}

impl RevIndex {
    /// Of a store of this life, where `head` is the last revision given away.
    pub fn new(store_life: u64, head: Revision) -> Self {
        Self { store_life, head, ..Self::default() }
    }

    /// Which store.
    pub const fn store_life(&self) -> u64 {
        self.store_life
    }

    /// The last change.
    pub const fn head(&self) -> Revision {
        self.head
    }

    /// A machine has changed visibly: it moves to the end.
    pub fn bump(&mut self, machine: &MachineId) -> Revision {
        self.head += 1;
        self.load(machine.clone(), self.head);
        self.head
    }

    /// Takes a stored place.
    pub fn load(&mut self, machine: MachineId, revision: Revision) {
        self.head = self.head.max(revision);
        if let Some(old) = self.by_machine.insert(machine.clone(), revision) {
            self.by_revision.remove(&old);
        }
        self.by_revision.insert(revision, machine);
    }

    /// The record is gone. Readers notice at their next full List.
    pub fn remove(&mut self, machine: &str) {
        if let Some(revision) = self.by_machine.remove(machine) {
            self.by_revision.remove(&revision);
        }
    }

    /// When a machine changed last.
    pub fn of(&self, machine: &str) -> Option<Revision> {
        self.by_machine.get(machine).copied()
    }

    /// Where a reader continues: after the revision of its cursor, or at the
    /// beginning (0) if that cursor is empty, garbled, of another store or ahead
    /// of what has happened.
    pub fn resolve(&self, cursor: &[u8]) -> Revision {
        let ahead = |cursor: &Cursor| cursor.revision > self.head;
        match Cursor::parse(cursor) {
            Ok(cursor) if cursor.store_life != self.store_life => 0,
            Ok(cursor) if ahead(&cursor) && !active(Mutant::CursorAheadTrusted) => 0,
            Ok(cursor) => cursor.revision,
            Err(Garbled) if active(Mutant::JunkCursorEmpty) && !cursor.is_empty() => self.head,
            Err(Garbled) => 0,
        }
    }

    /// The machines changed after a revision, in the order of their last change.
    pub fn since(&self, after: Revision) -> impl Iterator<Item = (Revision, &MachineId)> {
        let from = match after {
            0 => 0,
            _ if active(Mutant::DeltaAddsOne) => after - 1,
            _ => after,
        };
        let skip = usize::from(after > 0 && active(Mutant::DeltaMissesOne));
        let range = (Bound::Excluded(from), Bound::Unbounded);
        self.by_revision.range(range).skip(skip).map(|(revision, machine)| (*revision, machine))
    }

    /// The machines that a List answers: changed after `cursor`, wanted, and at
    /// most `max_results` (0: all). O(k log N) for k changes.
    pub fn page(
        &self,
        cursor: &[u8],
        max_results: usize,
        wanted: impl FnMut(&MachineId) -> bool,
    ) -> Page {
        Page::read(self, self.resolve(cursor), max_results, wanted)
    }

    /// How a place is told to a reader.
    pub fn cursor(&self, revision: Revision) -> Cursor {
        let revision = if active(Mutant::RevisionFrozen) { 1 } else { revision };
        Cursor { store_life: self.store_life, revision }
    }
}
