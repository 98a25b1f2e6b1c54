//! What the API shows of the wire's messages. Unknown is null, never 0: instants that were not
//! given, numbers that are none, verdicts that do not apply.

pub(crate) mod decision;
pub(crate) mod machine;
pub(crate) mod need;
mod needs_body;
pub(crate) mod summary;

use std::collections::BTreeMap;

use bigfleet_model::PenaltyBucket;
use bigfleet_wire::v1alpha1::{
    CapacityType, MachineState, NodeSelectorRequirement, Resources, TopologySpread, UnmetDetail,
    UnmetReason, node_selector_requirement::Operator, topology_spread::WhenUnsatisfiable,
};
use serde::{Serialize, Serializer};

pub(crate) use self::needs_body::Body as NeedsBody;

/// States as metrics call them.
pub(crate) const STATES: [&str; 8] = [
    "speculative",
    "creating",
    "idle",
    "configuring",
    "configured",
    "draining",
    "deleting",
    "failed",
];

/// Capacity types as metrics call them, in the order of screens.
pub(crate) const CAPACITY_TYPES: [&str; 5] =
    ["bare_metal", "reserved", "on_demand", "spot", "unspecified"];

/// A state as metrics call it.
#[must_use]
pub(crate) fn state(state: i32) -> &'static str {
    let state = MachineState::try_from(state).unwrap_or_default() as usize;
    state.checked_sub(1).and_then(|at| STATES.get(at)).copied().unwrap_or("unspecified")
}

/// The wire's number of a state.
#[must_use]
pub(crate) fn state_number(name: &str) -> Option<i32> {
    let at = STATES.iter().position(|state| *state == name)?;
    i32::try_from(at + 1).ok()
}

/// A capacity type as metrics call it.
#[must_use]
pub(crate) fn capacity_type(kind: i32) -> &'static str {
    match CapacityType::try_from(kind).unwrap_or_default() {
        CapacityType::BareMetal => "bare_metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on_demand",
        CapacityType::Spot => "spot",
        CapacityType::Unspecified => "unspecified",
    }
}

/// Labels of the penalty buckets, by number.
#[must_use]
pub(crate) fn buckets() -> Vec<String> {
    (0..=27).filter_map(PenaltyBucket::from_wire).map(|bucket| bucket.to_string()).collect()
}

/// The label of a bucket; numbers that this build does not know stay numbers.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) fn bucket<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    match PenaltyBucket::from_wire(*number) {
        Some(bucket) => serializer.collect_str(&bucket),
        None => serializer.collect_str(number),
    }
}

/// An instant, unless none was given.
#[must_use]
pub(crate) fn instant(nanos: i64) -> Option<i64> {
    Some(nanos).filter(|nanos| *nanos != 0)
}

/// A number, unless it is none.
#[must_use]
pub(crate) fn finite(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite())
}

/// A dollar amount: the wire's -1 is none.
#[must_use]
pub(crate) fn dollars(amount: f64) -> Option<f64> {
    finite(amount).filter(|amount| *amount >= 0.0)
}

/// A sequence number: too large for the numbers of a browser.
#[must_use]
pub(crate) fn sequence(number: i64) -> Option<String> {
    (number != 0).then(|| number.to_string())
}

/// Priority classes as metrics call them (shard chapter §18).
#[must_use]
pub(crate) const fn priority_class(priority: i32) -> &'static str {
    match priority {
        1_000_000.. => "critical",
        1_000.. => "service",
        100.. => "batch",
        _ => "other",
    }
}

/// The vector of a message that may lack it.
#[must_use]
pub(crate) fn vector(resources: Option<&Resources>) -> Option<&BTreeMap<String, String>> {
    resources.map(|vector| &vector.resources)
}

/// The name of a base reason, unless there is none.
#[must_use]
pub(crate) fn unmet_reason(reason: i32) -> Option<&'static str> {
    let known = UnmetReason::try_from(reason).unwrap_or_default();
    (known != UnmetReason::Unspecified).then(|| bigfleet_model::unmet::base(reason).name)
}

/// The name of a finer reason, unless there is none.
#[must_use]
pub(crate) fn unmet_detail(detail: i32) -> Option<&'static str> {
    let known = UnmetDetail::try_from(detail).unwrap_or_default();
    (known != UnmetDetail::Unspecified).then(|| bigfleet_model::unmet::of(0, detail).name)
}

/// One requirement.
#[derive(Serialize)]
pub(crate) struct Requirement<'a> {
    key: &'a str,
    operator: &'static str,
    values: &'a [String],
}

impl<'a> From<&'a NodeSelectorRequirement> for Requirement<'a> {
    fn from(wire: &'a NodeSelectorRequirement) -> Self {
        let operator = match wire.operator() {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::Same => "Same",
            Operator::Unspecified => "",
        };
        Self { key: &wire.key, operator, values: &wire.values }
    }
}

/// Requirements, written without a copy.
pub(crate) fn requirements<S: Serializer>(
    all: &&[NodeSelectorRequirement],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(Requirement::from))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spread<'a> {
    topology_key: &'a str,
    max_skew: i32,
    when_unsatisfiable: &'static str,
}

/// Spread terms, written without a copy.
pub(crate) fn spread<S: Serializer>(
    all: &&[TopologySpread],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|wire| Spread {
        topology_key: &wire.topology_key,
        max_skew: wire.max_skew,
        when_unsatisfiable: match wire.when_unsatisfiable() {
            WhenUnsatisfiable::DoNotSchedule => "DoNotSchedule",
            WhenUnsatisfiable::ScheduleAnyway => "ScheduleAnyway",
            WhenUnsatisfiable::Unspecified => "",
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_metrics() {
        assert_eq!(
            (state(1), state(8), state(0), state(99)),
            ("speculative", "failed", "unspecified", "unspecified")
        );
        assert_eq!((state_number("idle"), state_number("gone")), (Some(3), None));
        assert_eq!((capacity_type(3), capacity_type(77)), ("on_demand", "unspecified"));
        assert_eq!((buckets().len(), buckets()[2].as_str()), (28, "0.5"));
    }

    #[test]
    fn unknown_is_never_a_number() {
        assert_eq!((finite(f64::NAN), dollars(-1.0), dollars(0.0)), (None, None, Some(0.0)));
        assert_eq!((instant(0), instant(7)), (None, Some(7)));
        assert_eq!((unmet_reason(0), unmet_reason(1)), (None, Some("PRIORITY_STARVED")));
        assert_eq!((unmet_detail(0), unmet_detail(4)), (None, Some("NO_SESSION")));
    }
}
