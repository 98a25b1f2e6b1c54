//! Which machines were written since a List or Get began: its record of them is
//! older than what we did, and would undo it (§9 step 2).

use std::collections::BTreeMap;

use bigfleet_model::MachineId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

/// When a read of the provider began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    sequence: u64,
    /// On the clock.
    pub(crate) at: Instant,
}

/// The last write of each machine, as long as a read that is under way may be
/// older.
#[derive(Debug, Default)]
pub(crate) struct Touches {
    sequence: u64,
    last: HashMap<MachineId, u64, RandomState>,
    /// Reads under way, by the sequence at which they began.
    open: BTreeMap<u64, usize>,
}

impl Touches {
    /// A machine is written.
    pub(crate) fn touch(&mut self, machine: &MachineId) {
        self.sequence += 1;
        if self.open.is_empty() {
            return;
        }
        let sequence = self.sequence;
        *self.last.entry_ref(machine).or_insert(sequence) = sequence;
    }

    /// A read begins.
    pub(crate) fn begin(&mut self) -> Begun {
        *self.open.entry(self.sequence).or_default() += 1;
        Begun { sequence: self.sequence, at: Instant::now() }
    }

    /// Whether a machine was written since a read began.
    pub(crate) fn touched_since(&self, machine: &MachineId, begun: Begun) -> bool {
        self.last.get(machine).is_some_and(|last| *last > begun.sequence)
    }

    /// A read is over: its records are applied, or there were none.
    pub(crate) fn end(&mut self, begun: Begun) {
        if let Some(readers) = self.open.get_mut(&begun.sequence) {
            *readers -= 1;
            if *readers == 0 {
                self.open.remove(&begun.sequence);
            }
        }
        match self.open.first_key_value() {
            None => self.last.clear(),
            Some((&oldest, _)) => self.last.retain(|_, last| *last > oldest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_after_the_beginning_count() {
        let mut touches = Touches::default();
        let (a, b) = (MachineId::from("a"), MachineId::from("b"));
        touches.touch(&a);
        let first = touches.begin();
        touches.touch(&b);
        let second = touches.begin();
        touches.touch(&a);
        assert!(touches.touched_since(&a, first) && touches.touched_since(&b, first));
        assert!(touches.touched_since(&a, second) && !touches.touched_since(&b, second));
        touches.end(first);
        assert!(touches.touched_since(&a, second), "what the second one asks for is kept");
        touches.end(second);
        assert!(touches.last.is_empty(), "nobody asks any more");
    }
}
