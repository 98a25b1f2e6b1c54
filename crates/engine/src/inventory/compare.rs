//! What a report says that is not known yet.

use bigfleet_model::{Machine, MachineId};

use crate::{
    engine::Engine,
    handle::{Handle, MachineIx},
};

/// What taking a machine in would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// There is no such machine.
    Unknown,
    /// Nothing.
    Same,
    /// Not where it stands, but what it is: price, labels, resources, host or error.
    Refreshed,
    /// State or cluster.
    Moved,
}

impl Engine {
    /// Compares a report with what was last taken in, whatever is pending. Metadata
    /// and stamp are not looked at: the engine knows better. Quantities written
    /// differently are the same. Allocates nothing, for it is asked of every record
    /// of a List.
    pub fn compare(&self, machine: &Machine) -> Comparison {
        self.comparer().compare(machine)
    }

    /// Machines that a list does not tell of, and how many there are in all. One pass
    /// over their rows.
    pub fn unseen(&self, seen: &Seen) -> (Vec<MachineId>, usize) {
        let machines = &self.world.machines;
        let rows = machines.rows.iter().filter(|(_, row)| !row.removed);
        let unseen = rows.filter(|(number, _)| !seen.contains(*number));
        (unseen.map(|(number, _)| machines.id(number).into()).collect(), machines.len())
    }

    /// Compares one report after the other. Costs a fraction of [`Self::compare`] each
    /// where they come in the order in which the machines first came, as Lists mostly do.
    pub const fn comparer(&self) -> Comparer<'_> {
        Comparer { engine: self, next: 0 }
    }

    fn compare_with(&self, number: MachineIx, machine: &Machine) -> Comparison {
        if !self.stands_as(number, machine) {
            Comparison::Moved
        } else if self.is_as(number, machine) {
            Comparison::Same
        } else {
            Comparison::Refreshed
        }
    }

    fn stands_as(&self, number: MachineIx, machine: &Machine) -> bool {
        let reported = self.world.machines.reported(number);
        let cluster = reported.cluster.map(|cluster| &self.world.names.clusters[cluster].id);
        reported.state == machine.state && cluster == machine.cluster.as_ref()
    }

    fn is_as(&self, number: MachineIx, machine: &Machine) -> bool {
        let machines = &self.world.machines;
        let host = machine.host.as_ref().map(|host| (&*host.provider, &*host.reference));
        let error = machines.errors.get(&number).map_or("", |error| error);
        error == machine.last_error
            && machines.host(number) == host
            && self.world.classes[machines.rows[number].class].is(&machine.class)
    }
}

/// Compares reports that come in a row; see [`Engine::comparer`].
pub struct Comparer<'e> {
    engine: &'e Engine,
    /// Number of the machine after the last one.
    next: usize,
}

/// Machines that a list has told of, by number: a bit each. Where a machine goes and
/// another gets its number while the list is read, that one counts as seen.
#[derive(Clone, Debug, Default)]
pub struct Seen(Vec<u64>);

impl Seen {
    fn insert(&mut self, number: MachineIx) {
        let (word, bit) = (number.index() / 64, number.index() % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    fn contains(&self, number: MachineIx) -> bool {
        let (word, bit) = (number.index() / 64, number.index() % 64);
        self.0.get(word).is_some_and(|bits| bits & (1 << bit) != 0)
    }
}

impl Comparer<'_> {
    /// See [`Engine::compare`].
    pub fn compare(&mut self, machine: &Machine) -> Comparison {
        let found = self.find(&machine.id);
        found.map_or(Comparison::Unknown, |number| self.engine.compare_with(number, machine))
    }

    /// Notes that a list tells of a machine, if there is such a one.
    pub fn see(&mut self, id: &str, seen: &mut Seen) {
        if let Some(number) = self.find(id) {
            seen.insert(number);
        }
    }

    fn find(&mut self, id: &str) -> Option<MachineIx> {
        let machines = &self.engine.world.machines;
        let is_it =
            |number: &MachineIx| !machines.rows[*number].removed && machines.id(*number) == id;
        let at = |index: usize| {
            let there = index < machines.rows.len();
            there.then(|| MachineIx::at(index)).filter(is_it)
        };
        // The index is a jump to memory that nobody else looks at. Whoever asks twice
        // of one machine finds it where it was.
        let last = self.next.checked_sub(1).and_then(at);
        let number = last.or_else(|| at(self.next)).or_else(|| machines.find(id))?;
        self.next = number.index() + 1;
        Some(number)
    }
}
