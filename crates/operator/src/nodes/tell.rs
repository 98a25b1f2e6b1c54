//! Events about nodes.

use bigfleet_crds::UpcomingNode;
use bigfleet_in_cluster::events::{Kind, Note};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::Resource;

use super::drain::{PodName, PodView};
use super::effect::{NodeId, Start, Told};

/// The event that tells it. `deployment` is our own.
pub(super) fn note(told: &Told, deployment: &ObjectReference) -> Note {
    match told {
        Told::Reclaim { node, instruction, grace, preemptor_priority } => normal(
            "BigFleetReclaim",
            format!(
                "the machine is reclaimed{}: cordoned, pods are evicted within {} s \
                 (instruction {instruction})",
                preemptor(*preemptor_priority),
                grace.as_secs()
            ),
            of_node(node),
        ),
        Told::Drained(node) => {
            normal("BigFleetDrained", "all pods to be evicted are gone".into(), of_node(node))
        }
        Told::DrainTimeout(node, text) => {
            warning("BigFleetDrainTimeout", text.to_string(), of_node(node))
        }
        Told::Uncordoned(node) => normal(
            "BigFleetUncordoned",
            "the reclaim is over and the machine stays: pods are taken again".into(),
            of_node(node),
        ),
        Told::MachineRemoved(node, text) => warning(
            "BigFleetMachineRemoved",
            format!("the machine of this node is gone: {text}"),
            of_node(node),
        ),
        Told::NotReady { node, object, machine } => warning(
            "ConfiguredNotReady",
            format!(
                "machine {machine} has been configured for more than 2 minutes, but its node is \
                 {}",
                if node.is_some() { "not ready" } else { "not there" }
            ),
            node.as_ref().map_or_else(|| of_upcoming_node(object), of_node),
        ),
        Told::Unresolved { instruction, name } => warning(
            "UnresolvedNode",
            format!(
                "reclaim {instruction} names {name}, which leads to no node or to several; \
                 label nodes with {}",
                bigfleet_crds::keys::MACHINE_ID
            ),
            deployment.clone(),
        ),
    }
}

/// A pod stands in the way of a drain.
pub(super) fn blocked(start: &Start, pod: &PodName, why: &str) -> Note {
    let message = format!("pod {pod} cannot be evicted for now: {why}");
    warning("BigFleetDrainBlocked", message, of_node(&start.node))
}

/// Reason of the event on an evicted Pod.
pub(super) const EVICTED: &str = "BigFleetEvicted";

/// A pod had to go.
pub(super) fn evicted(start: &Start, pod: &PodView) -> Note {
    let message = format!(
        "evicted: the machine of node {} is reclaimed within {} s{}",
        start.node.name,
        start.grace.as_secs(),
        preemptor(start.preemptor_priority)
    );
    let regarding = ObjectReference {
        api_version: Some(Pod::api_version(&()).into_owned()),
        kind: Some(Pod::kind(&()).into_owned()),
        namespace: Some(pod.name.namespace.to_string()),
        name: Some(pod.name.name.to_string()),
        uid: Some(pod.uid.to_string()),
        ..ObjectReference::default()
    };
    normal(EVICTED, message, regarding)
}

fn preemptor(priority: i32) -> String {
    if priority == 0 { String::new() } else { format!(" for demand of priority {priority}") }
}

fn normal(reason: &str, message: String, regarding: ObjectReference) -> Note {
    Note { kind: Kind::Normal, reason: reason.into(), message, regarding }
}

fn warning(reason: &str, message: String, regarding: ObjectReference) -> Note {
    Note { kind: Kind::Warning, reason: reason.into(), message, regarding }
}

fn of_node(node: &NodeId) -> ObjectReference {
    ObjectReference {
        api_version: Some(Node::api_version(&()).into_owned()),
        kind: Some(Node::kind(&()).into_owned()),
        name: Some(node.name.to_string()),
        // kubectl looks for events of a Node under its name, not under its uid.
        uid: Some(node.name.to_string()),
        ..ObjectReference::default()
    }
}

fn of_upcoming_node(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(UpcomingNode::api_version(&()).into_owned()),
        kind: Some(UpcomingNode::kind(&()).into_owned()),
        name: Some(name.into()),
        ..ObjectReference::default()
    }
}
