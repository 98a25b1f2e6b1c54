//! Machines of a shared provider that are not ours, as far as they matter to us.

use bigfleet_model::{CapacityType, Machine, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::quota::REGION_LABEL;
use crate::holdings::{Draw, Ownership};

/// One of them.
#[derive(Clone, Debug)]
struct Neighbour {
    state: MachineState,
    /// It draws on our share of an account: whose, and where.
    draws: Option<(Option<String>, Option<String>)>,
    /// It lacks the label that says whose it is.
    nobodys: bool,
}

/// What Lists told of them.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    by_id: HashMap<MachineId, Neighbour, RandomState>,
}

const fn is_elastic(capacity: CapacityType) -> bool {
    matches!(capacity, CapacityType::OnDemand | CapacityType::Spot)
}

impl Neighbours {
    /// Takes in a record, whoever has the machine.
    pub(crate) fn note(&mut self, ownership: &Ownership, record: &Machine, ours: bool) {
        let class = &record.class;
        let away = ownership.is_away(&record.id);
        let nobodys = ownership.is_nobodys(class);
        // A slot out on transfer is drawn, whether it has been created or not.
        let drawn = record.state != MachineState::Speculative || away;
        let draws = drawn && is_elastic(class.capacity_type) && ownership.is_home(class);
        if (ours && !nobodys) || !(draws || away || nobodys) {
            self.by_id.remove(&record.id);
            return;
        }
        let account = || {
            let provider = record.host.as_ref().map(|host| host.provider.clone());
            (provider, class.labels.get(REGION_LABEL).cloned())
        };
        let draws = (draws && !ours).then(account);
        let neighbour = Neighbour { state: record.state, draws, nobodys };
        self.by_id.insert(record.id.clone(), neighbour);
    }

    /// What a machine that is not ours was last seen as.
    pub(crate) fn state(&self, machine: &MachineId) -> Option<MachineState> {
        self.by_id.get(machine).map(|one| one.state)
    }

    /// Machines that are not ours and draw on our share.
    pub(crate) fn draws(&self) -> impl Iterator<Item = Draw<'_>> {
        let drawing = self.by_id.values().filter_map(|one| one.draws.as_ref());
        drawing.map(|(provider, region)| Draw {
            provider: provider.as_deref(),
            region: region.as_deref(),
        })
    }

    /// Machines without the label that says whose they are.
    pub(crate) fn nobodys(&self) -> usize {
        self.by_id.values().filter(|one| one.nobodys).count()
    }

    /// A full List told of these and no others; one of changes, of these besides.
    pub(crate) fn replace(&mut self, others: Self, full: bool) {
        if full {
            *self = others;
        } else {
            self.by_id.extend(others.by_id);
        }
    }
}
