use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase as Phase, keys};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Spec, phase_name};
use crate::nodes::view::UpcomingView;

/// What the object of a machine is to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its spec; none while no frame has told it, and then the object is not created either.
    pub spec: Option<Arc<Spec>>,
    /// Its phase.
    pub phase: Phase,
    /// Why it is Failed; none in every other phase.
    pub last_error: Option<Arc<str>>,
}

/// The status to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The phase.
    pub phase: Phase,
    /// The Node's name; none keeps what is there.
    pub node: Option<Arc<str>>,
    /// The provider's name; none keeps what is there.
    pub provider_id: Option<Arc<str>>,
    /// The error; none clears it.
    pub last_error: Option<Arc<str>>,
    /// Whether `provisioningStartTime` is to be set.
    pub start: bool,
}

/// The next write on the way to what is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Create the object.
    Create(Arc<Spec>),
    /// Merge this into it.
    Spec(Value),
    /// Merge this into its status.
    Status(Status),
    /// It is as it should be, or cannot be made yet.
    Nothing,
}

/// The next write that brings the object to what is wanted.
#[must_use]
pub fn next_op(
    wanted: &Wanted,
    machine_id: &str,
    node: Option<&Arc<str>>,
    provider_id: Option<&Arc<str>>,
    existing: Option<&UpcomingView>,
) -> Op {
    let Some(existing) = existing else {
        return wanted.spec.clone().map_or(Op::Nothing, Op::Create);
    };
    if let Some(patch) = spec_patch(wanted.spec.as_deref(), machine_id, existing) {
        return Op::Spec(patch);
    }
    let status = Status {
        phase: wanted.phase,
        node: node.cloned(),
        provider_id: provider_id.cloned(),
        last_error: wanted.last_error.clone(),
        start: existing.status.as_ref().is_none_or(|status| !status.started),
    };
    let unchanged = existing.status.as_ref().is_some_and(|now| {
        now.phase == status.phase
            && now.last_error == status.last_error
            && (status.node.is_none() || now.node == status.node)
            && (status.provider_id.is_none() || now.provider_id == status.provider_id)
            && !status.start
    });
    if unchanged { Op::Nothing } else { Op::Status(status) }
}

fn spec_patch(wanted: Option<&Spec>, machine_id: &str, existing: &UpcomingView) -> Option<Value> {
    let wanted = wanted?;
    let mut patch = Map::new();
    if existing.machine.as_deref() != Some(machine_id) {
        patch.insert("metadata".into(), json!({"annotations": {keys::MACHINE_ID: machine_id}}));
    }
    if *wanted != existing.spec {
        let spec = json!({
            "labels": merged(&existing.spec.labels, &wanted.labels),
            "resources": merged(&existing.spec.resources, &wanted.resources),
            "taints": wanted.taints,
        });
        patch.insert("spec".into(), spec);
    }
    (!patch.is_empty()).then(|| patch.into())
}

/// The new map as a merge patch over the old: what is no longer there is set to null.
fn merged(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Value {
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let mut patch: Map<_, _> = removed.map(|key| (key.clone(), Value::Null)).collect();
    patch.extend(new.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
    patch.into()
}

/// The object to create.
#[must_use]
pub fn create(name: &str, machine_id: &str, spec: &Spec) -> UpcomingNode {
    let mut object = UpcomingNode::new(name, spec.to_object());
    let annotation = (keys::MACHINE_ID.to_owned(), machine_id.to_owned());
    object.metadata.annotations = Some(BTreeMap::from([annotation]));
    object
}

/// The merge patch of a status. The phase is always in it, since the schema requires it.
#[must_use]
pub fn status_patch(status: &Status, now: Timestamp) -> Value {
    let mut patch = Map::new();
    patch.insert("phase".into(), phase_name(status.phase).into());
    patch.insert("lastError".into(), status.last_error.as_deref().into());
    if let Some(node) = &status.node {
        patch.insert("nodeRef".into(), json!({"kind": "Node", "name": &**node}));
    }
    if let Some(provider_id) = &status.provider_id {
        patch.insert("providerID".into(), (&**provider_id).into());
    }
    if status.start {
        patch.insert("provisioningStartTime".into(), seconds(now).into());
    }
    json!({ "status": patch })
}

/// A time as Kubernetes writes it, in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::mirror::Version;
    use crate::nodes::view::StatusView;

    fn wanted(phase: Phase) -> Wanted {
        Wanted { spec: Some(Arc::default()), phase, last_error: None }
    }

    fn existing(phase: Option<Phase>) -> UpcomingView {
        UpcomingView {
            name: "un-m".into(),
            uid: "u".into(),
            version: Version::of(Some("1")),
            machine: Some("m".into()),
            spec: Spec::default(),
            status: phase.map(|phase| StatusView {
                phase,
                node: None,
                provider_id: Some("p".into()),
                last_error: None,
                started: true,
            }),
        }
    }

    #[test]
    fn create_then_status_then_nothing() {
        let wanted = wanted(Phase::Ready);
        let op = |now: Option<UpcomingView>| next_op(&wanted, "m", None, None, now.as_ref());
        assert!(matches!(op(None), Op::Create(_)));
        let Op::Status(status) = op(Some(existing(None))) else { panic!() };
        assert!(status.start);
        let Op::Status(status) = op(Some(existing(Some(Phase::Registered)))) else { panic!() };
        assert!(!status.start);
        assert_eq!(op(Some(existing(Some(Phase::Ready)))), Op::Nothing);
    }

    #[test]
    fn nothing_is_created_before_a_frame_has_told_what() {
        let wanted = Wanted { spec: None, ..wanted(Phase::Draining) };
        assert_eq!(next_op(&wanted, "m", None, None, None), Op::Nothing);
        let now = existing(Some(Phase::Ready));
        assert!(matches!(next_op(&wanted, "m", None, None, Some(&now)), Op::Status(_)));
    }

    #[test]
    fn what_is_unknown_keeps_what_is_there() {
        let now = existing(Some(Phase::Ready));
        let wanted = wanted(Phase::Ready);
        assert_eq!(next_op(&wanted, "m", None, Some(&"p".into()), Some(&now)), Op::Nothing);
        let op = next_op(&wanted, "m", Some(&"n".into()), None, Some(&now));
        let Op::Status(status) = op else { panic!() };
        let patch = status_patch(&status, Timestamp::UNIX_EPOCH);
        let expected = json!({"status": {
            "phase": "Ready", "lastError": null, "nodeRef": {"kind": "Node", "name": "n"},
        }});
        assert_eq!(patch, expected);
    }

    #[test]
    fn removed_labels_are_nulled_and_the_annotation_is_healed() {
        let mut now = existing(Some(Phase::Ready));
        now.machine = None;
        now.spec.labels.insert("old".into(), "1".into());
        let Op::Spec(patch) = next_op(&wanted(Phase::Ready), "m", None, None, Some(&now)) else {
            panic!()
        };
        assert_eq!(patch["metadata"]["annotations"][keys::MACHINE_ID], "m");
        assert_eq!(patch["spec"]["labels"], json!({"old": null}));
    }

    #[test]
    fn times_are_whole_seconds_in_utc() {
        let time = Timestamp::from_millisecond(1_234).unwrap();
        assert_eq!(seconds(time), "1970-01-01T00:00:01Z");
    }
}
