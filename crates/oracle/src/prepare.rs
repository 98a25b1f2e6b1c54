//! Preparing demand: identities merged, parked and held needs told (§4.1, §4.3).

use bigfleet_engine::{CycleInput, GangKey, NeedKey, input::merge};
use bigfleet_model::Need;

use crate::{need::Prepared, order};

/// A gang of this age parks (§4.1).
pub(crate) const PARK_AGE: u32 = 8;
/// A parked gang looks again every so many cycles (§4.1).
pub(crate) const PROBE_AGE: u32 = 32;

/// Demand in §5 order, not yet folded.
pub(crate) fn demand(input: &CycleInput) -> Vec<Prepared> {
    let mut needs: Vec<Prepared> =
        merge(input.demand.clone()).iter().map(|need| prepare(input, need)).collect();
    needs.sort_by(order::total);
    needs
}

/// §4.1, §4.3.
fn prepare(input: &CycleInput, need: &Need) -> Prepared {
    let mut prepared = unmarked(need);
    prepared.held = input.no_acquire.get(&NeedKey::of(need)).copied();
    if prepared.same() {
        prepared.age = input.gang_ages.get(&gang_key(&prepared)).copied().unwrap_or(0);
        prepared.parked = prepared.age >= PARK_AGE && !prepared.age.is_multiple_of(PROBE_AGE);
    }
    prepared
}

/// A need as sent, neither parked nor held.
pub(crate) fn unmarked(need: &Need) -> Prepared {
    Prepared {
        cluster: need.cluster.clone(),
        profile: need.profile.clone(),
        group: need.group.clone(),
        aggregate: need.aggregate.clone(),
        min_unit: need.min_unit.scale(1),
        arrival: need.arrival,
        members: Vec::new(),
        held: None,
        parked: false,
        age: 0,
        domain: None,
        satisfiable: false,
        domain_rule: 0,
        picks: Vec::new(),
        spread_stopped: false,
    }
}

/// Under which a gang's age is kept (§4.1).
pub(crate) fn gang_key(need: &Prepared) -> GangKey {
    GangKey {
        cluster: need.cluster.clone(),
        group: need.group.clone(),
        fingerprint: need.profile.fingerprint().clone(),
    }
}
