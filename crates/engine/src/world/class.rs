//! Machines that differ in nothing but id, binding, stamp and state.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc};

use bigfleet_model::{CapacityType, Class, Dimension, Resources, Totals};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;

use crate::handle::{ClassIx, Column, PoolIx, RunIx};

/// A class, by value: quantities written differently are the same.
#[derive(Clone)]
pub(crate) struct ClassRow {
    pub(crate) class: Arc<Class>,
    pub(crate) capacity: Totals,
    pub(crate) price: f64,
    pub(crate) probability: f64,
    /// Dimensions worth sparing: else plain work eats owned devices, whose price
    /// of 0 hides their worth (§6.4).
    pub(crate) scarce: SmallVec<[Dimension; 2]>,
    /// Machines, in any state.
    pub(crate) machines: u32,
    /// Runs of the machines that are nobody's.
    pub(crate) unbound: UnboundRuns,
    /// Runs of bound machines, of all clusters.
    pub(crate) bound: Vec<RunIx>,
    /// Pools of gangs that count what is left of this class.
    pub(crate) gang_pools: Vec<PoolIx>,
}

/// One run per state for the machines of a class that no cluster holds.
#[derive(Clone, Copy)]
pub(crate) struct UnboundRuns {
    /// Idle, unstamped Creating, Speculative: the order in which they are taken.
    pub(crate) acquirable: [RunIx; 3],
    pub(crate) draining: RunIx,
    /// Would be acquirable, but their provider fails, or a quota is used up.
    pub(crate) withheld: [RunIx; 2],
}

impl ClassRow {
    pub(crate) fn new(class: Arc<Class>, unbound: UnboundRuns) -> Self {
        let capacity = class.capacity().scale(1);
        Self {
            scarce: capacity.iter().map(|(d, _)| d).filter(|d| is_scarce(*d)).collect(),
            price: class.price_per_hour,
            probability: class.interruption_probability,
            capacity,
            machines: 0,
            unbound,
            bound: Vec::new(),
            gang_pools: Vec::new(),
            class,
        }
    }

    /// Whether machines of a class are machines of this one.
    pub(crate) fn is(&self, class: &Arc<Class>) -> bool {
        Arc::ptr_eq(&self.class, class) || by_value(&self.class) == by_value(class)
    }

    pub(crate) fn capacity_type(&self) -> CapacityType {
        self.class.capacity_type
    }
}

fn is_scarce(dimension: Dimension) -> bool {
    let common = [Dimension::CPU, Dimension::MEMORY, Dimension::EPHEMERAL_STORAGE, Dimension::PODS];
    !common.contains(&dimension) && !dimension.name().starts_with("hugepages-")
}

type ByValue<'a> =
    (&'a str, &'a str, CapacityType, u64, u64, &'a BTreeMap<String, String>, &'a Resources);

/// What makes two classes one.
fn by_value(class: &Class) -> ByValue<'_> {
    (
        &class.instance_type,
        &class.zone,
        class.capacity_type,
        class.price_per_hour.to_bits(),
        class.interruption_probability.to_bits(),
        &class.labels,
        class.capacity(),
    )
}

/// Finds the number of a class.
#[derive(Clone, Default)]
pub(crate) struct ClassIndex {
    by_value: HashTable<ClassIx>,
    /// Shared classes need no look at their value. The rows keep what is behind
    /// these addresses alive.
    by_address: HashMap<usize, ClassIx, FixedState>,
}

impl ClassIndex {
    pub(crate) fn find(
        &self,
        class: &Arc<Class>,
        rows: &Column<ClassIx, ClassRow>,
    ) -> Option<ClassIx> {
        if let Some(known) = self.by_address.get(&(Arc::as_ptr(class) as usize)) {
            return Some(*known);
        }
        let value = by_value(class);
        let hash = FixedState::default().hash_one(value);
        self.by_value.find(hash, |known| by_value(&rows[*known].class) == value).copied()
    }

    /// Makes a row findable that [`Self::find`] did not find.
    pub(crate) fn insert(&mut self, number: ClassIx, rows: &Column<ClassIx, ClassRow>) {
        let hash =
            |number: &ClassIx| FixedState::default().hash_one(by_value(&rows[*number].class));
        self.by_value.insert_unique(hash(&number), number, hash);
        self.by_address.insert(Arc::as_ptr(&rows[number].class) as usize, number);
    }
}
