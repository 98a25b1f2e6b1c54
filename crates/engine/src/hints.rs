//! How much of what a profile asks for could be had (shard chapter §13): a hint,
//! never a reservation.

use std::cell::RefCell;

use bigfleet_model::{
    Attributes, Fingerprint, MachineState, Operator, Profile, machine::INSTANCE_TYPE_LABEL,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    engine::Engine,
    handle::{ClassIx, Handle},
    world::{MachineRow, RunKind},
};

/// Machines that match a profile and could be acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Available {
    /// Idle ones.
    pub idle: u32,
    /// Speculative ones.
    pub speculative: u32,
    /// Lowest price of an Idle one.
    pub cheapest_idle: Option<f64>,
    /// Lowest price of a Speculative one.
    pub cheapest_speculative: Option<f64>,
}

impl Available {
    fn add(&mut self, free: &Free, price: f64) {
        let lower = |known: Option<f64>| Some(known.map_or(price, |known| known.min(price)));
        if free.idle > 0 {
            self.idle += free.idle;
            self.cheapest_idle = lower(self.cheapest_idle);
        }
        if free.speculative > 0 {
            self.speculative += free.speculative;
            self.cheapest_speculative = lower(self.cheapest_speculative);
        }
    }
}

/// Machines of a class that are there for the taking.
struct Free {
    class: ClassIx,
    idle: u32,
    speculative: u32,
}

/// Answers for many profiles from one count. Neither machines that are held back nor
/// those with a pending action are in it; units of needs are not looked at.
pub struct Hints<'e> {
    engine: &'e Engine,
    free: Vec<Free>,
    /// Places in `free`, by what the classes answer for their instance type.
    by_type: HashMap<&'e str, Vec<u32>, FixedState>,
    known: RefCell<HashMap<Fingerprint, Available, FixedState>>,
}

impl Engine {
    /// Counts what is there for the taking, in one pass over classes and over what
    /// changed since the last cycle.
    pub fn hints(&self) -> Hints<'_> {
        let free = self.free_machines();
        let mut by_type: HashMap<&str, Vec<u32>, FixedState> = HashMap::default();
        for (at, free) in free.iter().enumerate() {
            let class = &self.world.classes[free.class].class;
            if let Some(name) = class.attribute(INSTANCE_TYPE_LABEL) {
                by_type.entry(name).or_default().push(at as u32);
            }
        }
        Hints { engine: self, free, by_type, known: RefCell::default() }
    }

    /// What could be acquired for a profile. Ask [`Hints`] about many.
    pub fn available(&self, profile: &Profile) -> Available {
        self.hints().available(profile)
    }

    fn free_machines(&self) -> Vec<Free> {
        let world = &self.world;
        let count = |(class, row): (ClassIx, &crate::world::ClassRow)| {
            let [idle, _, speculative] =
                row.unbound.acquirable.map(|run| world.runs[run].members.len() as u32);
            Free { class, idle, speculative }
        };
        let mut free: Vec<Free> = world.classes.iter().map(count).collect();
        // Runs are brought up to date when a cycle begins.
        for row in world.moved_machines() {
            if let Some(run) = row.run.map(|run| &world.runs[run]) {
                let free = &mut free[run.class.index()];
                free.idle -= u32::from(run.kind == RunKind::Idle);
                free.speculative -= u32::from(run.kind == RunKind::Speculative);
            }
            if is_free(row) {
                let free = &mut free[row.class.index()];
                free.idle += u32::from(row.state == MachineState::Idle);
                free.speculative += u32::from(row.state == MachineState::Speculative);
            }
        }
        free.retain(|free| free.idle + free.speculative > 0);
        free
    }
}

fn is_free(row: &MachineRow) -> bool {
    !row.removed && row.held_back.is_none()
}

impl Hints<'_> {
    /// What could be acquired for a profile.
    pub fn available(&self, profile: &Profile) -> Available {
        if let Some(known) = self.known.borrow().get(profile.fingerprint()) {
            return *known;
        }
        let found = self.count(profile);
        self.known.borrow_mut().insert(profile.fingerprint().clone(), found);
        found
    }

    fn count(&self, profile: &Profile) -> Available {
        let mut found = Available::default();
        let mut look_at = |free: &Free| {
            let row = &self.engine.world.classes[free.class];
            if profile.matches(&*row.class) {
                found.add(free, row.price);
            }
        };
        let pinned = profile.requirements().iter().find(|requirement| {
            requirement.key == INSTANCE_TYPE_LABEL && requirement.operator == Operator::In
        });
        match pinned {
            Some(types) => {
                let places = types.values.iter().filter_map(|name| self.by_type.get(name.as_str()));
                places.flatten().for_each(|at| look_at(&self.free[*at as usize]));
            }
            None => self.free.iter().for_each(look_at),
        }
        found
    }
}
