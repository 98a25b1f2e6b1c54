use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

/// Marks the API server's image of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the API server gives a pod that names no grace of its own.
const DEFAULT_GRACE: i64 = 30;

/// Namespace and name of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodName {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod that stands in the way of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: PodName,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether it is on its way out.
    pub terminating: bool,
    /// The seconds it asks for.
    pub grace_seconds: i64,
}

/// The pod, if a drain has to wait for it: pods of DaemonSets come back at once, static pods are
/// not the API server's to end, and finished pods hold nothing.
#[must_use]
pub fn remaining(pod: &Pod) -> Option<PodView> {
    let meta = &pod.metadata;
    let owners = meta.owner_references.iter().flatten();
    let of_daemon_set =
        owners.into_iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    let mirror = meta.annotations.as_ref().is_some_and(|all| all.contains_key(MIRROR));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if of_daemon_set || mirror || matches!(phase, Some("Succeeded" | "Failed")) {
        return None;
    }
    let own_grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    Some(PodView {
        name: PodName {
            namespace: meta.namespace.as_deref().unwrap_or_default().into(),
            name: meta.name.as_deref()?.into(),
        },
        uid: meta.uid.as_deref()?.into(),
        terminating: meta.deletion_timestamp.is_some(),
        grace_seconds: own_grace.unwrap_or(DEFAULT_GRACE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left(pod: serde_json::Value) -> bool {
        remaining(&serde_json::from_value(pod).unwrap()).is_some()
    }

    #[test]
    fn daemons_mirrors_and_the_finished_do_not_count() {
        let owned = |kind: &str, controller: bool| {
            json!({"metadata": {"name": "p", "uid": "u", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o",
                 "controller": controller}]}})
        };
        assert!(left(owned("ReplicaSet", true)));
        assert!(!left(owned("DaemonSet", true)));
        assert!(left(owned("DaemonSet", false)));
        assert!(!left(json!({"metadata": {"name": "p", "uid": "u",
            "annotations": {"kubernetes.io/config.mirror": "x"}}})));
        for (phase, expected) in
            [("Running", true), ("Pending", true), ("Succeeded", false), ("Failed", false)]
        {
            let pod = json!({"metadata": {"name": "p", "uid": "u"}, "status": {"phase": phase}});
            assert_eq!(left(pod), expected, "{phase}");
        }
    }
}
