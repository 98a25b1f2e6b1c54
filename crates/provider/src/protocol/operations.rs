//! Which operation a repeated call belongs to (provider chapter §1).

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use bigfleet_model::MachineId;
use smallvec::SmallVec;

use super::kind::Kind;
use crate::mutant::{Mutant, active};

/// Names one operation, for ever: it doubles as the cloud's client token.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(Arc<str>);

impl OperationId {
    /// Longest id, in bytes.
    pub const MAX: usize = 64;

    /// Not empty, at most [`OperationId::MAX`] printable ASCII characters.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = (1..=Self::MAX).contains(&text.len())
            && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        legal.then(|| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// One accepted call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What its caller was told.
    pub id: OperationId,
    /// When it was accepted, since the epoch of the keeper's clock.
    pub started: Duration,
    /// What a Drain was given; zero for other kinds.
    pub grace: Duration,
}

/// The last operation of each (machine, kind).
#[derive(Clone, Debug, Default)]
pub struct OpBook {
    operations: HashMap<MachineId, SmallVec<[(Kind, Operation); 1]>>,
}

impl OpBook {
    /// The operation that a repeated call belongs to.
    pub fn get(&self, machine: &str, kind: Kind) -> Option<&Operation> {
        let operations = self.operations.get(machine)?;
        operations.iter().find(|(known, _)| *known == kind).map(|(_, operation)| operation)
    }

    /// Whether a result of this operation still counts.
    pub fn is_current(&self, machine: &str, kind: Kind, id: &OperationId) -> bool {
        self.get(machine, kind).is_some_and(|operation| operation.id == *id)
    }

    /// Records an accepted call; the last one of its kind is forgotten. Also
    /// how a stored record is taken.
    pub fn start(&mut self, machine: MachineId, kind: Kind, operation: Operation) {
        let operations = self.operations.entry(machine).or_default();
        match operations.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, old)) if active(Mutant::OneIdForEver) => {
                *old = Operation { id: old.id.clone(), ..operation };
            }
            Some((_, old)) => *old = operation,
            None => operations.push((kind, operation)),
        }
    }

    /// Forgets all operations of a machine: it was repaired, or is gone.
    pub fn forget(&mut self, machine: &str) {
        self.operations.remove(machine);
    }

    /// All records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&MachineId, Kind, &Operation)> {
        self.operations.iter().flat_map(|(machine, operations)| {
            operations.iter().map(move |(kind, operation)| (machine, *kind, operation))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(id: &str) -> Operation {
        let id = OperationId::parse(id).unwrap();
        Operation { id, started: Duration::ZERO, grace: Duration::ZERO }
    }

    #[test]
    fn ids_are_short_printable_ascii() {
        for good in ["op-1", " ", "~", &"x".repeat(64)] {
            assert_eq!(OperationId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "a\n", "é", "\u{7f}", &"x".repeat(65)] {
            assert_eq!(OperationId::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_key_is_machine_and_kind_and_a_new_cycle_replaces() {
        let mut book = OpBook::default();
        book.start("a".into(), Kind::Create, operation("op-1"));
        book.start("a".into(), Kind::Drain, operation("op-2"));
        book.start("b".into(), Kind::Create, operation("op-3"));
        assert_eq!(book.get("a", Kind::Create), Some(&operation("op-1")));
        assert_eq!(book.get("a", Kind::Configure), None);
        book.start("a".into(), Kind::Create, operation("op-4"));
        assert!(book.is_current("a", Kind::Create, &operation("op-4").id));
        assert!(!book.is_current("a", Kind::Create, &operation("op-1").id));
        assert!(!book.is_current("a", Kind::Drain, &operation("op-4").id));
        assert_eq!(book.iter().count(), 3);
        book.forget("a");
        assert_eq!(book.get("a", Kind::Drain), None);
        assert_eq!(book.get("b", Kind::Create), Some(&operation("op-3")));
    }
}
