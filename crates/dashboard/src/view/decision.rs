//! A decision, or what became of it.

use bigfleet_wire::v1alpha1::DecisionRecord;
use serde::Serialize;

use super::{dollars, instant, sequence};
use crate::auth::Viewer;

/// One record of the audit log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decision<'a> {
    sequence: String,
    cycle: i64,
    time_unix_nanos: Option<i64>,
    kind: &'a str,
    machine_id: &'a str,
    cluster_id: &'a str,
    profile_fingerprint: &'a str,
    group: &'a str,
    priority: i32,
    preemptor_priority: i32,
    effective_cost: Option<f64>,
    runner_up_cost: Option<f64>,
    reason: &'a str,
    outcome: &'a str,
    grace_seconds: i64,
    error: &'a str,
    of_sequence: Option<String>,
    gap: bool,
}

/// What an operator of the fleet does, and says why in their own words.
const SET_ACTUATION: &str = "SetActuation";

impl<'a> Decision<'a> {
    /// As this viewer may see it.
    #[must_use]
    pub(crate) fn new(wire: &'a DecisionRecord, viewer: &Viewer) -> Self {
        if viewer.is_scoped() { Self::scoped(wire) } else { wire.into() }
    }

    /// As somebody may see it who does not see every cluster: of a decision about none, texts may
    /// be about one of those.
    #[must_use]
    pub(crate) fn scoped(wire: &'a DecisionRecord) -> Self {
        let whole = Self::from(wire);
        if !wire.cluster_id.is_empty() {
            return whole;
        }
        let reason = if wire.kind == SET_ACTUATION { "" } else { whole.reason };
        Self { profile_fingerprint: "", group: "", priority: 0, reason, error: "", ..whole }
    }
}

impl<'a> From<&'a DecisionRecord> for Decision<'a> {
    fn from(wire: &'a DecisionRecord) -> Self {
        Self {
            sequence: wire.sequence.to_string(),
            cycle: wire.cycle,
            time_unix_nanos: instant(wire.time_unix_nanos),
            kind: &wire.kind,
            machine_id: &wire.machine_id,
            cluster_id: &wire.cluster_id,
            profile_fingerprint: &wire.profile_fingerprint,
            group: &wire.group,
            priority: wire.priority,
            preemptor_priority: wire.preemptor_priority,
            effective_cost: dollars(wire.effective_cost),
            runner_up_cost: dollars(wire.runner_up_cost),
            reason: &wire.reason,
            outcome: &wire.outcome,
            grace_seconds: wire.grace_seconds,
            error: &wire.error,
            of_sequence: sequence(wire.of_sequence),
            gap: wire.gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn texts_of_a_decision_about_no_cluster_are_for_those_who_see_all() {
        let told = |kind: &str, cluster: &str| {
            let wire = DecisionRecord {
                kind: kind.to_owned(),
                cluster_id: cluster.to_owned(),
                reason: "r".to_owned(),
                error: "e".to_owned(),
                ..DecisionRecord::default()
            };
            let scoped = Viewer { clusters: Some(Arc::default()), ..Viewer::default() };
            let [all, some] = [&Viewer::default(), &scoped].map(|viewer| {
                let decision = Decision::new(&wire, viewer);
                format!("{}{}", decision.reason, decision.error)
            });
            (all, some)
        };
        let both = |all: &str, some: &str| (all.to_owned(), some.to_owned());
        assert_eq!(told("Bootstrap", "a"), both("re", "re"));
        // The engine's own reason names nobody.
        assert_eq!(told("Delete", ""), both("re", "r"));
        assert_eq!(told(SET_ACTUATION, ""), both("re", ""));
    }
}
