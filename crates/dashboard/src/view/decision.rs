//! A decision, or what became of it.

use bigfleet_wire::v1alpha1::DecisionRecord;
use serde::Serialize;

use super::{dollars, instant, sequence};

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
