//! One answer to List.

use bigfleet_model::{MachineId, MachineState};

use super::revision::{Cursor, RevIndex, Revision};
use crate::mutant::{Mutant, active};

/// Which machines, and where the next answer goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In the order of their last change.
    pub machines: Vec<MachineId>,
    /// Of the last machine if the answer was cut, else head: fed back, it
    /// continues without gap or repeat.
    pub cursor: Cursor,
}

impl Page {
    pub(super) fn read(
        index: &RevIndex,
        after: Revision,
        max_results: usize,
        mut wanted: impl FnMut(&MachineId) -> bool,
    ) -> Self {
        let cap = match max_results {
            0 if active(Mutant::CapZeroIsNone) => 0,
            0 => usize::MAX,
            _ if active(Mutant::CapIgnored) => usize::MAX,
            cap if active(Mutant::CapOffByOne) => cap + 1,
            cap => cap,
        };
        let mut changed = index.since(after).filter(|(_, machine)| wanted(machine));
        let mut taken: Vec<_> = if active(Mutant::PageOrderById) {
            let mut all: Vec<_> = changed.by_ref().collect();
            all.sort_by_key(|(_, machine)| *machine);
            all.truncate(cap);
            all
        } else {
            changed.by_ref().take(cap).collect()
        };
        let cut = cap == taken.len() && (changed.next().is_some() || active(Mutant::PageOrderById));
        let last = taken.last().map(|(revision, _)| *revision);
        let revision = match last {
            Some(last) if cut && !active(Mutant::CutPageReturnsHead) => last,
            _ => index.head(),
        };
        if active(Mutant::DuplicateRow) {
            taken.extend(taken.first().copied());
        }
        let machines = taken.into_iter().map(|(_, machine)| machine.clone()).collect();
        Self { machines, cursor: index.cursor(revision) }
    }
}

/// Some of the eight states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateSet(u16);

impl StateSet {
    /// Whether a state is one of them.
    pub const fn contains(self, state: MachineState) -> bool {
        self.0 & (1 << state as u16) != 0
    }

    /// Those of them, in order.
    pub fn iter(self) -> impl Iterator<Item = MachineState> {
        MachineState::ALL.iter().copied().filter(move |state| self.contains(*state))
    }

    /// None of them.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Wire numbers; those we do not know match nothing.
    pub fn from_wire(numbers: &[i32]) -> Self {
        let known = numbers.iter().filter_map(|number| MachineState::from_wire(*number));
        if active(Mutant::UnionIsLast) { known.rev().take(1).collect() } else { known.collect() }
    }
}

impl FromIterator<MachineState> for StateSet {
    fn from_iter<T: IntoIterator<Item = MachineState>>(states: T) -> Self {
        Self(states.into_iter().fold(0, |set, state| set | (1 << state as u16)))
    }
}
