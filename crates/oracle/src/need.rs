//! A need as the phases see it: one as sent, or a fold of several gangs (§4).

use std::sync::Arc;

use bigfleet_engine::{NeedKey, NoAcquire};
use bigfleet_model::{
    Attributes, ClusterId, Group, Machine, MachineState, Profile, Stamp, TopologySpread, Totals,
};

use crate::acquire::Pick;

/// Values of the `Same` keys of a need, in key order (§6.3).
pub(crate) type Domain = Vec<String>;

/// A prepared need and what Phase 1 found out about it.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) cluster: ClusterId,
    pub(crate) profile: Arc<Profile>,
    pub(crate) group: Group,
    pub(crate) aggregate: Totals,
    /// Of a fold one gang's aggregate, which may pass `i64`.
    pub(crate) min_unit: Totals,
    pub(crate) arrival: i64,
    /// Gangs folded into it; empty if it is no fold.
    pub(crate) members: Vec<NeedKey>,
    pub(crate) held: Option<NoAcquire>,
    pub(crate) parked: bool,
    /// Hopeless cycles before this one.
    pub(crate) age: u32,
    pub(crate) domain: Option<Domain>,
    pub(crate) satisfiable: bool,
    /// Which rule decided the domain choice.
    pub(crate) domain_rule: u8,
    /// What step C took.
    pub(crate) picks: Vec<Pick>,
    /// A hard spread stopped acquisition while candidates remained (§9).
    pub(crate) spread_stopped: bool,
}

impl Prepared {
    pub(crate) fn key(&self) -> NeedKey {
        NeedKey {
            cluster: self.cluster.clone(),
            fingerprint: self.profile.fingerprint().clone(),
            group: self.group.clone(),
        }
    }

    pub(crate) fn is_fold(&self) -> bool {
        !self.members.is_empty()
    }

    /// *Quiet* = parked or held (§4.3).
    pub(crate) fn quiet(&self) -> bool {
        self.parked || self.held.is_some()
    }

    /// Has `Same`. The profile of a fold has none.
    pub(crate) fn same(&self) -> bool {
        self.profile.same().next().is_some()
    }

    /// The `Same` keys in order, each once.
    pub(crate) fn same_keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.profile.same().map(|same| same.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The spread that is enforced: none with `Same` (§6.4), none for a fold
    /// (§4.2), else the first hard one (§1.4).
    pub(crate) fn spread(&self) -> Option<&TopologySpread> {
        if self.same() || self.is_fold() { None } else { self.profile.hard_spread() }
    }

    /// Needs several machines: `min_unit` does not cover the aggregate (§4.2, §6.4).
    pub(crate) fn spanning(&self) -> bool {
        !self.min_unit.covers(&self.aggregate)
    }

    /// Matches and covers `min_unit` alone (§1.8).
    pub(crate) fn usable(&self, machine: &Machine) -> bool {
        machine.class.capacity().covers(&self.min_unit) && self.profile.matches(&*machine.class)
    }

    /// Matches, but is too small for `min_unit` (§6.5). Machines of a fold hold whole
    /// gangs, so nobody runs on one that is too small.
    pub(crate) fn outgrew(&self, machine: &Machine) -> bool {
        !self.is_fold()
            && !machine.class.capacity().covers(&self.min_unit)
            && self.profile.matches(&*machine.class)
    }

    /// What a machine gives: its whole capacity; to a fold as many whole units as
    /// fit (§4.2).
    pub(crate) fn contribution(&self, machine: &Machine) -> Totals {
        let capacity = machine.class.capacity();
        if !self.is_fold() {
            return capacity.scale(1);
        }
        let unit = &self.min_unit;
        let units = unit
            .iter()
            .map(|(dimension, amount)| i128::from(capacity.get(dimension)) / amount)
            .min()
            .unwrap_or(0);
        // Amounts of a machine fit i64, so the number of units does.
        unit.scale(u64::try_from(units).unwrap_or(0))
    }

    /// The machine's values of the `Same` keys; none if one is missing (§6.3).
    pub(crate) fn domain_of(&self, machine: &Machine) -> Option<Domain> {
        self.same_keys()
            .into_iter()
            .map(|key| machine.class.attribute(key).map(str::to_owned))
            .collect()
    }

    /// The machine lies in the given domain; a need without `Same` has none and
    /// takes any.
    pub(crate) fn within(&self, domain: Option<&Domain>, machine: &Machine) -> bool {
        !self.same()
            || domain.is_some_and(|domain| self.domain_of(machine).as_ref() == Some(domain))
    }

    /// *Own* (§6.1, §6.2): the stamp names this need or, of a fold, a member.
    pub(crate) fn owns(&self, machine: &Machine) -> bool {
        let Some(stamp) = &machine.stamp else { return false };
        let cluster = match machine.state {
            MachineState::Configured | MachineState::Configuring => &machine.cluster,
            MachineState::Creating => &stamp.for_cluster,
            _ => return false,
        };
        cluster.as_ref() == Some(&self.cluster)
            && (self.is_named_by(stamp)
                || self.members.iter().any(|member| {
                    stamp.fingerprint == member.fingerprint && stamp.group == member.group
                }))
    }

    fn is_named_by(&self, stamp: &Stamp) -> bool {
        stamp.fingerprint == *self.profile.fingerprint() && stamp.group == self.group
    }

    /// What a machine acquired for this need will carry (§1.7).
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            priority: Some(self.profile.priority()),
            interruption: self.profile.interruption().dollars(),
            reclamation: self.profile.reclamation().dollars(),
            fingerprint: self.profile.fingerprint().clone(),
            group: self.group.clone(),
            for_cluster: Some(self.cluster.clone()),
        }
    }
}

/// The contribution lowers a positive dimension of what is missing (§6.1).
pub(crate) fn lowers(residual: &Totals, contribution: &Totals) -> bool {
    residual.iter().any(|(dimension, _)| contribution.get(dimension) > 0)
}
