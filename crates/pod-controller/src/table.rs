//! Which pods have a CapacityRequest (§8.1).
//!
//! All that are alive, bound or not: demand must be total, or the arithmetic of surplus takes
//! machines from under running pods.

use jiff::{SignedDuration, Timestamp};

use crate::pod::{Phase, Pod};

/// How long a pod may outstay its grace before it counts as over.
const OVERSTAY: SignedDuration = SignedDuration::from_mins(5);

/// What is done about the pods of DaemonSets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DaemonSetPods {
    /// They have requests, labelled as such: they take of what a machine has
    #[default]
    Count,
    /// They have none
    Skip,
}

/// What a pod is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a request.
    Counted,
    /// It is over, and so is its request.
    Terminal,
    /// It has none, as long as this is so.
    Skipped,
}

/// The row of the table that `pod` falls into; `unmanaged`: it is bound to an unmanaged node.
#[must_use]
pub fn verdict(
    pod: &Pod,
    unmanaged: bool,
    daemonset_pods: DaemonSetPods,
    now: Timestamp,
) -> Verdict {
    if pod.phase == Phase::Over || over_at(pod).is_some_and(|at| at < now) {
        return Verdict::Terminal;
    }
    let skipped = pod.mirror
        || pod.ignored
        || pod.gated
        || unmanaged
        || (pod.daemonset && daemonset_pods == DaemonSetPods::Skip);
    if skipped { Verdict::Skipped } else { Verdict::Counted }
}

/// When a pod that is being deleted counts as over, though nothing about it changes.
#[must_use]
pub fn over_at(pod: &Pod) -> Option<Timestamp> {
    // The API server has added the grace already.
    pod.grace_ends.map(|at| at.saturating_add(OVERSTAY).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn pod(patch: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "a", "namespace": "b", "uid": "c"},
            "spec": {"containers": [], "nodeName": "n"},
            "status": {"phase": "Running"},
        });
        for (part, fields) in patch.as_object().unwrap() {
            for (name, value) in fields.as_object().unwrap() {
                pod[part][name] = value.clone();
            }
        }
        Pod::of(&serde_json::from_value(pod).unwrap())
    }

    fn owner(kind: &str, api_version: &str, controller: bool) -> Value {
        json!({"metadata": {"ownerReferences": [{
            "apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": controller,
        }]}})
    }

    #[test]
    fn every_row_of_the_table() {
        use DaemonSetPods::{Count, Skip};
        use Verdict::{Counted, Skipped, Terminal};
        let gone_at = |at: &str| json!({"metadata": {"deletionTimestamp": at}});
        for (patch, unmanaged, mode, expected) in [
            (json!({}), false, Count, Counted),
            (json!({"status": {"phase": "Pending"}}), false, Count, Counted),
            (json!({"status": {"phase": "Unknown"}}), false, Count, Counted),
            (json!({"spec": {"nodeName": ""}}), false, Count, Counted),
            (json!({"status": {"phase": "Succeeded"}}), false, Count, Terminal),
            (json!({"status": {"phase": "Failed"}}), true, Count, Terminal),
            (json!({}), true, Count, Skipped),
            (
                json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
                false,
                Count,
                Skipped,
            ),
            (
                json!({"metadata": {"annotations": {"bigfleet.lucy.sh/ignore": "true"}}}),
                false,
                Count,
                Skipped,
            ),
            (
                json!({"metadata": {"annotations": {"bigfleet.lucy.sh/ignore": "yes"}}}),
                false,
                Count,
                Counted,
            ),
            (json!({"spec": {"schedulingGates": [{"name": "g"}]}}), false, Count, Skipped),
            (json!({"spec": {"schedulingGates": []}}), false, Count, Counted),
            (owner("DaemonSet", "apps/v1", true), false, Count, Counted),
            (owner("DaemonSet", "apps/v1", true), false, Skip, Skipped),
            (owner("DaemonSet", "apps/v1", false), false, Skip, Counted),
            (owner("DaemonSet", "example.com/v1", true), false, Skip, Counted),
            (owner("ReplicaSet", "apps/v1", true), false, Skip, Counted),
            (gone_at("2026-01-01T12:00:30Z"), false, Count, Counted),
            (gone_at("2026-01-01T11:55:00Z"), false, Count, Counted),
            (gone_at("2026-01-01T11:54:59Z"), false, Count, Terminal),
            (gone_at("2026-01-01T11:54:59Z"), true, Skip, Terminal),
        ] {
            let now = NOW.parse().unwrap();
            assert_eq!(verdict(&pod(&patch), unmanaged, mode, now), expected, "{patch}");
        }
    }

    #[test]
    fn labels_of_daemonsets_are_told() {
        assert!(pod(&owner("DaemonSet", "apps/v1", true)).daemonset);
        assert!(!pod(&owner("ReplicaSet", "apps/v1", true)).daemonset);
    }
}
