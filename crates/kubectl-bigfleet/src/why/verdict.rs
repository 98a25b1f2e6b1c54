//! How a pod stands, and what to do about it.

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, conditions, keys};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

use super::condition;
use crate::picture::Picture;

/// A request that nobody accepted for this long tells of trouble: two roll-ups.
const SLOW_SECONDS: i64 = 20;

/// The annotation of a static pod's mirror.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// How a pod stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// In a few words.
    pub state: String,
    /// What to do.
    pub advice: String,
    /// Whether it still waits for a node.
    pub waits: bool,
}

/// Judges a pod.
#[must_use]
pub fn verdict(picture: &Picture) -> Verdict {
    let pod = &picture.pod;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    match (phase, node) {
        ("Running", node) => {
            settled(format!("runs on {}", node.unwrap_or("a node")), "nothing: it runs")
        }
        ("Succeeded" | "Failed", _) => settled(
            format!("has ended as {phase}"),
            "nothing: what has ended asks for no capacity, and its request is gone",
        ),
        (_, Some(node)) => settled(
            format!("has its place on {node} and starts there"),
            "wait for its containers; `kubectl describe pod` shows how far they are",
        ),
        _ => {
            let (state, advice) = waiting(picture);
            Verdict { state, advice, waits: true }
        }
    }
}

fn settled(state: String, advice: &str) -> Verdict {
    Verdict { state, advice: advice.to_owned(), waits: false }
}

fn waiting(picture: &Picture) -> (String, String) {
    let Some(request) = &picture.request else { return without_request(&picture.pod) };
    if let Some(refused) =
        condition(request, conditions::TRANSLATABLE).filter(|found| found.status == "False")
    {
        return (
            "waits, and its request counts for nothing".to_owned(),
            format!("mend what cannot be understood: {}", refused.message),
        );
    }
    if request.phase() == CapacityRequestPhase::Pending {
        return unheard(picture, request);
    }
    match condition(request, conditions::SATISFIED) {
        Some(found) if found.status == "False" => (
            format!("waits: {}", found.reason),
            match found.message.is_empty() {
                true => format!("see what the fleet says of {}", found.reason),
                false => found.message.clone(),
            },
        ),
        Some(found) if found.reason == "CapacityComing" => (
            "waits for a machine that is on its way".to_owned(),
            "wait: `kubectl bigfleet wait` tells when it runs".to_owned(),
        ),
        Some(_) => unplaced(&picture.pod),
        None => (
            "waits for the fleet's first word on it".to_owned(),
            "wait: the fleet has accepted its request and says within a minute what comes of \
             it"
            .to_owned(),
        ),
    }
}

fn without_request(pod: &Pod) -> (String, String) {
    let annotation =
        |key: &str| pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key));
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_deref());
    if annotation(keys::IGNORE).is_some_and(|value| value == "true") {
        return (
            "waits, and BigFleet was told to ignore it".to_owned(),
            format!("take away its annotation {} if BigFleet is to find it a node", keys::IGNORE),
        );
    }
    if annotation(MIRROR).is_some() {
        return ("is a static pod".to_owned(), "nothing: its kubelet runs it".to_owned());
    }
    if let Some(gates) = gates.filter(|gates| !gates.is_empty()) {
        let names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
        return (
            "is held back by scheduling gates".to_owned(),
            format!("it asks for capacity when its gates are gone: {}", names.join(", ")),
        );
    }
    (
        "waits, and asks for no capacity".to_owned(),
        "no request was made for it; see whether the controller that makes them runs: kubectl get \
         deployments -A -l app.kubernetes.io/name=bigfleet-unschedulable-pod-controller"
            .to_owned(),
    )
}

fn unheard(picture: &Picture, request: &CapacityRequest) -> (String, String) {
    let made = request.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let old = made.is_none_or(|made| picture.now.as_second() - made.as_second() > SLOW_SECONDS);
    let state = "waits for the fleet to accept its request".to_owned();
    let advice = match old {
        false => "wait: requests go out every ten seconds".to_owned(),
        true => "its request should be accepted by now: the operator is down, cut off from its \
                 shard, or holds its roll-ups; see its events and logs: kubectl get deployments -A \
                 -l app.kubernetes.io/name=bigfleet-operator"
            .to_owned(),
    };
    (state, advice)
}

/// The fleet has what it needs; the rest is the scheduler's.
fn unplaced(pod: &Pod) -> (String, String) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let scheduled: Option<&PodCondition> =
        conditions.unwrap_or_default().iter().find(|found| found.type_ == "PodScheduled");
    let state = "waits for the scheduler; the fleet covers its demand".to_owned();
    match scheduled.and_then(|found| found.message.as_deref()).filter(|text| !text.is_empty()) {
        Some(message) => (state, format!("the scheduler says: {message}")),
        None => (state, "wait for the scheduler".to_owned()),
    }
}
