//! The life of a pod on its node.

use std::time::Duration;

use bigfleet_in_cluster::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use super::views::PodView;

/// What a kubelet owes a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    Run,
    Finish,
    /// Its containers have ended: the object goes.
    Remove,
}

/// What is due for a pod that has been here, and been leaving, for so long.
pub(super) fn due(
    pod: &PodView,
    here: Duration,
    leaving: Option<Duration>,
    usual_termination: Duration,
) -> Option<Duty> {
    if let Some(leaving) = leaving {
        let ended = pod.phase == "Succeeded" || pod.phase == "Failed";
        let termination = pod.termination.unwrap_or(usual_termination).min(pod.grace);
        return (ended || leaving >= termination).then_some(Duty::Remove);
    }
    match pod.phase.as_str() {
        "Pending" => Some(Duty::Run),
        "Running" if pod.duration.is_some_and(|duration| here >= duration) => Some(Duty::Finish),
        _ => None,
    }
}

pub(super) async fn perform(
    client: &Client,
    key: &ObjectKey,
    uid: &str,
    duty: Duty,
) -> Result<(), kube::Error> {
    let namespace = key.namespace.as_deref().unwrap_or("default");
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = |ready: &str| {
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(|kind| {
            let held = matches!(kind, "PodScheduled" | "Initialized");
            let status = if held { "True" } else { ready };
            json!({"type": kind, "status": status, "lastTransitionTime": now})
        })
    };
    let status = match duty {
        Duty::Run => json!({
            "phase": "Running",
            "startTime": now,
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "conditions": conditions("True"),
        }),
        Duty::Finish => json!({"phase": "Succeeded", "conditions": conditions("False")}),
        Duty::Remove => {
            let this = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
            let params = DeleteParams::default().grace_period(0).preconditions(this);
            return pods.delete(&key.name, &params).await.map(drop);
        }
    };
    // The UID is a precondition here too.
    let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "status": status}));
    pods.patch_status(&key.name, &PatchParams::default(), &patch).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(phase: &str) -> PodView {
        PodView {
            uid: "uid".into(),
            node: "node".into(),
            phase: phase.into(),
            leaving: false,
            grace: Duration::from_secs(30),
            duration: None,
            termination: None,
        }
    }

    #[test]
    fn pods_run_finish_and_leave_in_their_time() {
        let second = Duration::from_secs(1);
        let due = |pod: &PodView, here: u32, leaving: Option<u32>| {
            due(pod, here * second, leaving.map(|leaving| leaving * second), 10 * second)
        };
        assert_eq!(due(&pod("Pending"), 0, None), Some(Duty::Run));
        assert_eq!(due(&pod("Running"), 1000, None), None);
        let short = PodView { duration: Some(5 * second), ..pod("Running") };
        assert_eq!(due(&short, 4, None), None);
        assert_eq!(due(&short, 5, None), Some(Duty::Finish));
        assert_eq!(due(&pod("Running"), 0, Some(9)), None);
        assert_eq!(due(&pod("Running"), 0, Some(10)), Some(Duty::Remove));
        assert_eq!(due(&pod("Succeeded"), 0, Some(0)), Some(Duty::Remove));
        let hasty = PodView { grace: 2 * second, ..pod("Running") };
        assert_eq!(due(&hasty, 0, Some(2)), Some(Duty::Remove));
        let slow = PodView { termination: Some(20 * second), ..pod("Running") };
        assert_eq!(due(&slow, 0, Some(19)), None);
    }
}
