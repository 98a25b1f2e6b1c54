//! What a `describe` said, checked.

use std::collections::{HashMap, HashSet};

use bigfleet_model::{Machine, MachineId};

use crate::{
    cloud::Offer,
    shape::{Misshapen, ShapeCheck},
};

/// All offers by id; those of a wrong shape only say whether their host exists.
pub(crate) struct Offers {
    hosts: HashMap<MachineId, Option<String>>,
    machines: Vec<Machine>,
}

impl Offers {
    /// Checks each alone and reports the refused ones.
    pub(crate) fn check(
        offers: Vec<Offer>,
        shape: &ShapeCheck,
        mut refused: impl FnMut(Misshapen),
    ) -> Self {
        let mut this = Self { hosts: HashMap::new(), machines: Vec::with_capacity(offers.len()) };
        let mut references = HashSet::new();
        for offer in offers {
            let checked = shape.machine(&offer);
            let misshapen = |field, problem: &str| Misshapen {
                id: offer.id.clone(),
                field,
                problem: problem.into(),
            };
            if this.hosts.contains_key(&*offer.id) {
                refused(misshapen("id", "offered twice; ids are unique"));
                continue;
            }
            if offer.host.as_ref().is_some_and(|host| !references.insert(host.clone())) {
                refused(misshapen("host", "its reference is another slot's, too"));
                continue;
            }
            this.hosts.insert(offer.id.as_str().into(), offer.host.clone());
            match checked {
                Ok(machine) => this.machines.push(machine),
                Err(problem) => refused(problem),
            }
        }
        this
    }

    /// The described host of a slot: none if the slot is not offered at all.
    pub(crate) fn host(&self, id: &str) -> Option<Option<&str>> {
        self.hosts.get(id).map(Option::as_deref)
    }

    pub(crate) fn machines(&self) -> &[Machine] {
        &self.machines
    }

    pub(crate) fn into_machines(self) -> Vec<Machine> {
        self.machines
    }
}
