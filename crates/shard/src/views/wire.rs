//! Rows as they travel (wire chapter §5).

use bigfleet_engine::{Detail, DomainCoverage, Reason, Supply};
use bigfleet_model::{MachineState, Totals};
use bigfleet_wire::v1alpha1 as wire;

use super::{Extras, NeedRow};

/// Hopeless cycles after which a gang is parked.
const PARKED_AT: u32 = 8;

/// A count on the wire.
pub(crate) fn count(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// A cycle's number on the wire.
pub(crate) fn cycle_number(cycle: u64) -> i64 {
    i64::try_from(cycle).unwrap_or(i64::MAX)
}

/// The base reason.
pub(crate) const fn reason(reason: Reason) -> wire::UnmetReason {
    match reason {
        Reason::PriorityStarved => wire::UnmetReason::PriorityStarved,
        Reason::NoMatchingSupply => wire::UnmetReason::NoMatchingSupply,
        Reason::TopologyUnsatisfiable => wire::UnmetReason::TopologyUnsatisfiable,
        Reason::PreemptionExhausted => wire::UnmetReason::PreemptionExhausted,
    }
}

/// What is finer than the reason.
pub(crate) const fn detail(detail: Option<Detail>) -> wire::UnmetDetail {
    match detail {
        None => wire::UnmetDetail::Unspecified,
        Some(Detail::SpreadUnsatisfiable) => wire::UnmetDetail::SpreadUnsatisfiable,
        Some(Detail::BootstrapRefused) => wire::UnmetDetail::BootstrapRefused,
        Some(Detail::ProviderFailing) => wire::UnmetDetail::ProviderFailing,
        Some(Detail::NoSession) => wire::UnmetDetail::NoSession,
        Some(Detail::PreemptionUnderWay) => wire::UnmetDetail::PreemptionUnderWay,
        Some(Detail::QuotaExhausted) => wire::UnmetDetail::QuotaExhausted,
    }
}

/// Amounts.
pub(crate) fn resources(totals: &Totals) -> wire::Resources {
    wire::Resources { resources: totals.to_wire() }
}

/// A domain: its value, or those of all keys of a gang in the order of the keys.
pub(crate) fn domain<'a>(values: impl IntoIterator<Item = &'a String>) -> String {
    values.into_iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// A domain as a place for a gang.
pub(crate) fn coverage(coverage: &DomainCoverage) -> wire::DomainCoverage {
    wire::DomainCoverage {
        domain: domain(coverage.domain.values()),
        coverage_per_mille: count(coverage.per_mille),
        satisfiable: coverage.satisfiable,
    }
}

fn supply(supply: &Supply) -> wire::MatchingSupply {
    wire::MatchingSupply {
        idle: count(supply.in_state(MachineState::Idle)),
        configured: count(supply.in_state(MachineState::Configured)),
        speculative: count(supply.in_state(MachineState::Speculative)),
        capped: supply.is_capped(),
    }
}

/// A row as of a cycle.
pub(crate) fn need_view(row: &NeedRow, cycle: u64, extras: &Extras) -> wire::NeedView {
    let (need, is_same) = (&row.need, row.is_same());
    let mut view = wire::NeedView {
        need: Some(need.into()),
        cluster_id: need.cluster.to_string(),
        arrival_unix_nanos: need.arrival,
        profile_fingerprint: need.profile.fingerprint().to_string(),
        satisfied: row.short.is_none(),
        claimed_machine_count: count(row.claimed),
        bootstrap_count: count(row.bootstrap),
        provision_count: count(row.provision),
        ..wire::NeedView::default()
    };
    if is_same {
        let values = row.domain.iter().flatten().map(|(_, value)| value);
        view.same_domain = domain(values);
        view.same_satisfiable = row.satisfiable;
        view.same_candidates = extras.domains.iter().flatten().map(coverage).collect();
    }
    if let Some(short) = &row.short {
        view.residual_deficit = Some(resources(&short.deficit));
        view.acquisition_parked = short.parked;
        if short.parked {
            view.parked_age_cycles = count(short.gang_age.saturating_sub(PARKED_AT));
        }
        view.age_cycles_unmet = count(row.age(cycle));
        view.set_unmet_reason(reason(short.reason));
        view.set_unmet_detail(detail(short.detail));
        view.matching_supply = extras.supply.as_ref().map(supply);
        view.preemption = short.preemption.as_ref().map(|preemption| wire::PreemptionSummary {
            victims_found: count(preemption.victims),
            capacity_freed: Some(resources(&preemption.freed)),
        });
        view.detail_text.clone_from(&extras.text);
    }
    view
}
