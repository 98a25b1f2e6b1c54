//! Machines that something holds of, one bit each.

use crate::handle::{Handle, MachineIx};

/// A set of machines that is emptied at the cost of what was in it.
#[derive(Clone, Default)]
pub(crate) struct Marks {
    words: Vec<u64>,
    /// Words that may not be zero.
    used: Vec<u32>,
}

impl Marks {
    pub(crate) fn insert(&mut self, machine: MachineIx) {
        let at = machine.index() / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        if self.words[at] == 0 {
            self.used.push(at as u32);
        }
        self.words[at] |= 1 << (machine.index() % 64);
    }

    pub(crate) fn remove(&mut self, machine: MachineIx) {
        if let Some(word) = self.words.get_mut(machine.index() / 64) {
            *word &= !(1 << (machine.index() % 64));
        }
    }

    pub(crate) fn contains(&self, machine: MachineIx) -> bool {
        let word = self.words.get(machine.index() / 64);
        word.is_some_and(|word| word & (1 << (machine.index() % 64)) != 0)
    }

    pub(crate) fn clear(&mut self) {
        for at in self.used.drain(..) {
            self.words[at as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_is_known_until_it_is_cleared() {
        let (mut marks, a, b) = (Marks::default(), MachineIx::at(3), MachineIx::at(200));
        marks.insert(a);
        marks.insert(b);
        marks.remove(a);
        assert!(!marks.contains(a) && marks.contains(b));
        marks.insert(a);
        marks.clear();
        assert!(!marks.contains(a) && !marks.contains(b));
    }

    #[test]
    fn each_machine_is_marked_by_itself() {
        let machines = || (0..300).map(MachineIx::at);
        let mut marks = Marks::default();
        machines().step_by(2).for_each(|machine| marks.insert(machine));
        machines().step_by(3).for_each(|machine| marks.remove(machine));
        for (at, machine) in machines().enumerate() {
            assert_eq!(marks.contains(machine), at % 2 == 0 && at % 3 != 0, "machine {at}");
        }
    }
}
