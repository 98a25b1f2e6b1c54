//! Which machines are ours, of whatever a shared provider lists.

use bigfleet_model::{Attributes, Class, ClusterId, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::{Assignment, Domain, Holdings};

type Set<T> = HashSet<T, RandomState>;

/// Holdings, to be asked about every record of a List.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Values held, by label. The coordinator has one label for all.
    domains: HashMap<String, Set<String>, RandomState>,
    clusters: Set<ClusterId>,
    /// Received and not settled.
    machines_in: Set<MachineId>,
    /// Of our domains, and somebody else's.
    away: Set<MachineId>,
    /// The label that domains are values of.
    label: Option<String>,
}

/// Whether a machine in this state is its cluster's, by its provider's word.
#[must_use]
pub const fn is_bound(state: MachineState) -> bool {
    use MachineState::{Configured, Configuring, Draining};
    matches!(state, Configuring | Configured | Draining)
}

impl Ownership {
    /// Of these holdings. What is being released is not ours to begin anything on.
    #[must_use]
    pub fn of(holdings: &Holdings) -> Self {
        let none = Assignment::default();
        let assignment = holdings.assignment.as_ref().unwrap_or(&none);
        let mut domains: HashMap<String, Set<String>, RandomState> = HashMap::default();
        for Domain { key, value } in &assignment.held.domains {
            domains.entry_ref(key).or_default().insert(value.clone());
        }
        let known = assignment.held.domains.iter().chain(&holdings.releasing.domains).next();
        let moved = assignment.machines_out.iter().map(|one| &one.machine);
        let out = holdings.out.values().flat_map(|out| &out.machines);
        Self {
            domains,
            clusters: assignment.held.clusters.iter().cloned().collect(),
            machines_in: assignment.machines_in.iter().map(|one| one.machine.clone()).collect(),
            away: moved.chain(out).cloned().collect(),
            label: known.map(|domain| domain.key.clone()),
        }
    }

    /// Whether the shard may act on a machine that its provider has in this state.
    #[must_use]
    pub fn owns(
        &self,
        id: &str,
        state: MachineState,
        cluster: Option<&ClusterId>,
        class: &Class,
    ) -> bool {
        if is_bound(state)
            && let Some(cluster) = cluster
        {
            return self.clusters.contains(cluster);
        }
        self.machines_in.contains(id) || (!self.away.contains(id) && self.is_home(class))
    }

    /// Whether the machine is of one of our domains, whoever has it.
    #[must_use]
    pub fn is_home(&self, class: &Class) -> bool {
        self.domains.iter().any(|(label, values)| {
            class.attribute(label).is_some_and(|value| values.contains(value))
        })
    }

    /// Whether the machine is of our domains and lent to somebody.
    #[must_use]
    pub fn is_away(&self, id: &str) -> bool {
        self.away.contains(id)
    }

    /// Whether the machine was received and is not settled.
    #[must_use]
    pub fn is_received(&self, id: &str) -> bool {
        self.machines_in.contains(id)
    }

    /// Whether the machine lacks the label that says whose it is: then it is nobody's.
    #[must_use]
    pub fn is_nobodys(&self, class: &Class) -> bool {
        self.label.as_ref().is_some_and(|label| class.attribute(label).is_none())
    }

    /// Whether the cluster is ours.
    #[must_use]
    pub fn holds(&self, cluster: &ClusterId) -> bool {
        self.clusters.contains(cluster)
    }

    /// What is ours by both: while one takes the place of the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut domains: HashMap<String, Set<String>, RandomState> = HashMap::default();
        for (label, values) in &self.domains {
            if let Some(others) = other.domains.get(label) {
                domains.insert(label.clone(), values.intersection(others).cloned().collect());
            }
        }
        Self {
            domains,
            clusters: self.clusters.intersection(&other.clusters).cloned().collect(),
            machines_in: self.machines_in.intersection(&other.machines_in).cloned().collect(),
            away: self.away.union(&other.away).cloned().collect(),
            label: other.label.clone(),
        }
    }
}
