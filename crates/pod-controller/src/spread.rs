//! Spreads that bind (§8.2); wishes are no demand.

use bigfleet_crds::{TopologySpread, WhenUnsatisfiable};
use k8s_openapi::api::core::v1::TopologySpreadConstraint;

/// The `DoNotSchedule` entries.
#[must_use]
pub fn binding(constraints: Option<&[TopologySpreadConstraint]>) -> Box<[TopologySpread]> {
    let all = constraints.unwrap_or_default().iter();
    all.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
        .map(|constraint| TopologySpread {
            max_skew: constraint.max_skew,
            topology_key: constraint.topology_key.clone(),
            when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        })
        .collect()
}
