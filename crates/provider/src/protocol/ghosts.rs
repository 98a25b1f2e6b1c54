//! Marks of machines that nobody knows: a bounded memory, for their ids are the
//! caller's to invent.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::MachineId;

use super::fence::Mark;
use crate::mutant::{Mutant, active};

/// How many marks of unknown machines are kept.
pub const GHOSTS: usize = 65_536;

/// Their ids may be long, so the texts together are bounded, too.
const MAX_TEXT: usize = 64 << 20;

type Key = (MachineId, Arc<str>);

/// The marks used last. Never stored: a restart forgets them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ghosts {
    marks: BTreeMap<Key, (Mark, u64)>,
    /// Oldest first.
    by_age: BTreeMap<u64, Key>,
    clock: u64,
    text: usize,
}

impl Ghosts {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn get(&self, machine: &str, shard: &str) -> Option<Mark> {
        // The usual case, without the two copies that a lookup needs.
        if self.marks.is_empty() {
            return None;
        }
        let key = (MachineId::from(machine), Arc::from(shard));
        self.marks.get(&key).map(|(mark, _)| *mark)
    }

    pub(super) fn set(&mut self, machine: MachineId, shard: Arc<str>, mark: Mark) {
        self.clock += 1;
        self.text += machine.len() + shard.len();
        let key = (machine, shard);
        if let Some((old, age)) = self.marks.insert(key.clone(), (mark, self.clock)) {
            let backwards = old > mark && !active(Mutant::MarkOnRefusal);
            if let Some((mark, _)) = self.marks.get_mut(&key).filter(|_| backwards) {
                *mark = old;
            }
            self.text -= key.0.len() + key.1.len();
            self.by_age.remove(&age);
        }
        self.by_age.insert(self.clock, key);
        let unbounded = active(Mutant::GhostMarksUnbounded);
        while !unbounded && (self.marks.len() > GHOSTS || self.text > MAX_TEXT) {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.marks.remove(&oldest);
            self.text -= oldest.0.len() + oldest.1.len();
        }
    }

    /// Forgets a machine and returns its marks.
    pub(super) fn take(&mut self, machine: &MachineId) -> Vec<(Arc<str>, Mark)> {
        let from = (machine.clone(), Arc::from(""));
        let shards: Vec<Arc<str>> = self
            .marks
            .range(from..)
            .take_while(|((id, _), _)| id == machine)
            .map(|((_, shard), _)| shard.clone())
            .collect();
        let mut taken = Vec::with_capacity(shards.len());
        for shard in shards {
            let key = (machine.clone(), shard);
            if let Some((mark, age)) = self.marks.remove(&key) {
                self.by_age.remove(&age);
                self.text -= key.0.len() + key.1.len();
                taken.push((key.1, mark));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(sequence: i64) -> Mark {
        Mark { epoch: 1, sequence }
    }

    #[test]
    fn the_least_recently_used_goes_first_and_books_balance() {
        let mut ghosts = Ghosts::default();
        for index in 0..=GHOSTS {
            let id = format!("g-{index}");
            ghosts.set(id.as_str().into(), "s".into(), mark(index as i64));
            // Kept young.
            ghosts.set("g-0".into(), "s".into(), mark(index as i64));
        }
        assert_eq!(ghosts.len(), GHOSTS);
        assert_eq!(ghosts.by_age.len(), GHOSTS);
        assert_eq!(ghosts.get("g-0", "s"), Some(mark(GHOSTS as i64)));
        assert_eq!(ghosts.get("g-1", "s"), None);
        assert_eq!(ghosts.get("g-2", "s"), Some(mark(2)));
        let text: usize = ghosts.marks.keys().map(|(id, shard)| id.len() + shard.len()).sum();
        assert_eq!(ghosts.text, text);
    }

    #[test]
    fn long_ids_leave_room_for_fewer() {
        let mut ghosts = Ghosts::default();
        for index in 0..5 {
            let id = format!("{index}{}", "x".repeat(MAX_TEXT / 4));
            ghosts.set(id.into(), "s".into(), mark(1));
        }
        assert_eq!(ghosts.len(), 3);
    }

    #[test]
    fn taking_a_machine_takes_all_its_shards_and_no_neighbour() {
        let mut ghosts = Ghosts::default();
        for (id, shard) in [("a", "x"), ("b", ""), ("b", "x"), ("b", "y"), ("b2", "x")] {
            ghosts.set(id.into(), shard.into(), mark(7));
        }
        let taken = ghosts.take(&"b".into());
        let shards: Vec<&str> = taken.iter().map(|(shard, _)| &**shard).collect();
        assert_eq!(shards, ["", "x", "y"]);
        assert_eq!(ghosts.len(), 2);
        assert_eq!(ghosts.by_age.len(), 2);
        assert_eq!(ghosts.text, 5);
    }
}
