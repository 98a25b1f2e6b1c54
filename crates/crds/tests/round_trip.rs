//! Objects survive reading and writing, also those that the schema would refuse today.

#![allow(clippy::unwrap_used)]

use bigfleet_crds::{
    AvailableCapacity, CapacityRequest, CapacityRequestPhase, Operator, UpcomingNode,
    WhenUnsatisfiable,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn survives<K: Serialize + DeserializeOwned>(object: &Value) -> K {
    let read: K = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), object);
    read
}

#[test]
fn a_full_capacity_request() {
    let read: CapacityRequest = survives(&json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "CapacityRequest",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "priority": -7,
            "resources": {"cpu": "500m", "nvidia.com/gpu": "8"},
            "requirements": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "spot", "operator": "DoesNotExist"},
            ],
            "interruptionPenalty": "0.5",
            "reclamationPenalty": "1k",
            "topologySpread": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            ],
            "coLocation": {
                "topologyKey": "rack",
                "labelSelector": {"matchLabels": {"job": "train"}},
            },
        },
        "status": {
            "phase": "Acknowledged",
            "acknowledgedAt": "2026-11-15T12:00:00Z",
            "observedGeneration": 3,
            "conditions": [{
                "type": bigfleet_crds::conditions::SATISFIED,
                "status": "False",
                "reason": "NoMatchingSupply",
                "message": "",
                "lastTransitionTime": "2026-11-15T12:00:00Z",
            }],
        },
    }));
    assert_eq!(read.phase(), CapacityRequestPhase::Acknowledged);
}

#[test]
fn the_other_kinds() {
    let _: AvailableCapacity = survives(&json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "AvailableCapacity",
        "metadata": {"name": "ac-1"},
        "spec": {"availability": "Low", "availableCount": 3, "cost": "768m", "resources": {}},
        "status": {},
    }));
    let _: UpcomingNode = survives(&json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        "metadata": {"name": "un-1"},
        "spec": {
            "resources": {"cpu": "96"},
            "labels": {"zone": "a"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Failed",
            "nodeRef": {"kind": "Node", "name": "n"},
            "providerID": "aws:///a/i-1",
            "lastError": "no quota",
            "provisioningStartTime": "2026-11-15T12:00:00Z",
        },
    }));
}

fn request(spec: &Value, status: &Value) -> CapacityRequest {
    let object = json!({"metadata": {}, "spec": spec, "status": status});
    serde_json::from_value(object).unwrap()
}

#[test]
fn what_an_older_schema_let_in_is_still_readable() {
    let read: CapacityRequest = request(
        &json!({
            "priority": 0,
            "resources": {"cpu": 4, "memory": "much"},
            "requirements": [{"key": "cores", "operator": "Gt", "values": ["4"]}],
            "topologySpread": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "Maybe"}],
        }),
        &json!({"phase": ""}),
    );
    assert_eq!(read.spec.resources["cpu"].as_str(), "4");
    assert_eq!(read.spec.resources["memory"].as_str(), "much");
    assert_eq!(read.spec.requirements[0].operator, Operator::Other("Gt".to_owned()));
    assert_eq!(
        read.spec.topology_spread[0].when_unsatisfiable,
        WhenUnsatisfiable::Other("Maybe".to_owned())
    );
    assert_eq!(read.phase(), CapacityRequestPhase::Pending);
}

#[test]
fn no_status_is_pending_and_empty_fields_are_left_out() {
    let spec = json!({"priority": 0, "resources": {}});
    let read = request(&spec, &Value::Null);
    assert_eq!(read.phase(), CapacityRequestPhase::Pending);
    assert_eq!(serde_json::to_value(&read.spec).unwrap(), spec);
}
