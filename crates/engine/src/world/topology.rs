//! Topology keys and the domains that classes lie in.

use std::cmp::Ordering;

use bigfleet_model::{Attributes, Class};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::handle::{Column, DomainIx, Handle, TopologyIx};

/// A key, or a tuple of several, with its values.
#[derive(Clone, Default)]
pub(crate) struct TopologyRow {
    pub(crate) keys: Vec<String>,
    /// By class; none where a key is missing.
    of_class: Vec<Option<DomainIx>>,
    values: Column<DomainIx, Vec<String>>,
    numbers: HashMap<Vec<String>, DomainIx, FixedState>,
}

impl TopologyRow {
    pub(crate) fn of_class(&self, class: impl Handle) -> Option<DomainIx> {
        self.of_class[class.index()]
    }

    /// One per key, in key order.
    pub(crate) fn values(&self, domain: DomainIx) -> &[String] {
        &self.values[domain]
    }

    /// The smaller value first.
    pub(crate) fn order(&self, a: DomainIx, b: DomainIx) -> Ordering {
        self.values[a].cmp(&self.values[b])
    }

    /// Takes in the next class.
    fn learn(&mut self, class: &Class) {
        let tuple: Option<Vec<String>> =
            self.keys.iter().map(|key| class.attribute(key).map(str::to_owned)).collect();
        let domain = tuple.map(|tuple| match self.numbers.get(&tuple) {
            Some(known) => *known,
            None => {
                let number = self.values.push(tuple.clone());
                self.numbers.insert(tuple, number);
                number
            }
        });
        self.of_class.push(domain);
    }
}

/// All topologies that some profile looks at.
#[derive(Clone, Default)]
pub(crate) struct Topologies {
    rows: Column<TopologyIx, TopologyRow>,
    numbers: HashMap<Vec<String>, TopologyIx, FixedState>,
}

impl Topologies {
    pub(crate) fn intern<'c>(
        &mut self,
        keys: Vec<String>,
        classes: impl Iterator<Item = &'c Class>,
    ) -> TopologyIx {
        if let Some(known) = self.numbers.get(&keys) {
            return *known;
        }
        let mut row = TopologyRow { keys: keys.clone(), ..TopologyRow::default() };
        classes.for_each(|class| row.learn(class));
        let number = self.rows.push(row);
        self.numbers.insert(keys, number);
        number
    }

    pub(crate) fn learn(&mut self, class: &Class) {
        self.rows.rows_mut().iter_mut().for_each(|row| row.learn(class));
    }

    pub(crate) fn row(&self, topology: TopologyIx) -> &TopologyRow {
        &self.rows[topology]
    }
}
