//! Machines that differ in nothing but id, binding and state.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use bigfleet_model::{CapacityType, Class, Dimension, Resources, Totals};
use hashbrown::HashMap;

/// A class, by value: quantities written differently are the same.
pub(crate) struct ClassRow<'a> {
    pub(crate) class: &'a Class,
    pub(crate) capacity: Totals,
    pub(crate) price: f64,
    pub(crate) probability: f64,
    pub(crate) capacity_type: CapacityType,
}

/// What makes two classes one.
struct ByValue<'a>(&'a Class);

impl ByValue<'_> {
    fn fields(
        &self,
    ) -> (&str, &str, CapacityType, u64, u64, &BTreeMap<String, String>, &Resources) {
        let class = self.0;
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
}

impl PartialEq for ByValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Eq for ByValue<'_> {}

impl Hash for ByValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields().hash(state);
    }
}

/// Gives classes their numbers.
#[derive(Default)]
pub(super) struct Classes<'a> {
    pub(super) rows: Vec<ClassRow<'a>>,
    numbers: HashMap<ByValue<'a>, usize, foldhash::fast::FixedState>,
}

impl<'a> Classes<'a> {
    pub(super) fn intern(&mut self, class: &'a Class) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry(ByValue(class)).or_insert(next);
        if number == next {
            self.rows.push(ClassRow {
                class,
                capacity: class.capacity().scale(1),
                price: class.price_per_hour,
                probability: class.interruption_probability,
                capacity_type: class.capacity_type,
            });
        }
        number
    }
}

impl ClassRow<'_> {
    /// Dimensions worth sparing that `asked` does not ask for (§6.4): else plain
    /// work eats owned devices, whose price of 0 hides their worth.
    pub(crate) fn unasked_scarce(&self, asked: impl Fn(Dimension) -> bool) -> usize {
        self.capacity.iter().filter(|(d, _)| is_scarce(*d) && !asked(*d)).count()
    }
}

fn is_scarce(dimension: Dimension) -> bool {
    let common = [Dimension::CPU, Dimension::MEMORY, Dimension::EPHEMERAL_STORAGE, Dimension::PODS];
    !common.contains(&dimension) && !dimension.name().starts_with("hugepages-")
}
