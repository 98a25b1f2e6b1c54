//! What the server makes of an object that it stores.

use bigfleet_crds::{AvailableCapacity, CapacityRequest, CapacityRequestPhase, UpcomingNode};
use serde_json::{Value, json};

use super::kubectl::Cluster;

/// An object of ours.
pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let mut metadata = json!({"name": name});
    if kind == "CapacityRequest" {
        metadata["namespace"] = json!("samples");
    }
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    })
}

pub(crate) fn unknown_fields_are_pruned(cluster: &Cluster) {
    let spec = json!({
        "priority": 5,
        "resources": {"cpu": 4},
        "count": 3,
        "profile": {"name": "x"},
        "requirements": [{"key": "a", "operator": "Exists", "weight": 1}],
        "coLocation": {"topologyKey": "rack", "strict": true},
    });
    let created = cluster.create(&object("CapacityRequest", "pruned", &spec));
    assert_eq!(
        created["spec"],
        json!({
            "priority": 5,
            "resources": {"cpu": 4},
            "requirements": [{"key": "a", "operator": "Exists"}],
            "coLocation": {"topologyKey": "rack"},
        })
    );
    let spec = json!({"resources": {}, "machineId": "m"});
    let created = cluster.create(&object("UpcomingNode", "un-pruned", &spec));
    assert_eq!(created["spec"], json!({"resources": {}}));
}

pub(crate) fn a_new_request_is_pending(cluster: &Cluster) {
    let spec = json!({"priority": 0, "resources": {}});
    let plain = object("CapacityRequest", "pending", &spec);
    assert_eq!(cluster.create(&plain)["status"], json!({"phase": "Pending"}));

    // An explicit null is as good as nothing, and a status in a create is not listened to.
    let mut null = object("CapacityRequest", "pending-null", &spec);
    null["status"] = Value::Null;
    for field in ["requirements", "interruptionPenalty", "coLocation"] {
        null["spec"][field] = Value::Null;
    }
    let created = cluster.create(&null);
    assert_eq!(created["status"], json!({"phase": "Pending"}));
    assert_eq!(created["spec"], spec);
    let mut eager = object("CapacityRequest", "pending-eager", &spec);
    eager["status"] = json!({"phase": "Acknowledged"});
    assert_eq!(cluster.create(&eager)["status"], json!({"phase": "Pending"}));

    // No other kind has defaults.
    let node = cluster.create(&object("UpcomingNode", "un-plain", &json!({"resources": {}})));
    assert_eq!(node["status"], Value::Null);
}

pub(crate) fn stored_objects_read_as_our_types(cluster: &Cluster) {
    let request: CapacityRequest = read(cluster, "cr/pruned");
    assert_eq!(request.phase(), CapacityRequestPhase::Pending);
    assert_eq!(request.spec.resources["cpu"].as_str(), "4");
    let node: UpcomingNode = read(cluster, "upn/un-pruned");
    assert!(node.spec.resources.is_empty());
    let spec =
        json!({"availability": "High", "availableCount": 7, "cost": "768m", "resources": {}});
    cluster.create(&object("AvailableCapacity", "ac-stored", &spec));
    let hint: AvailableCapacity = read(cluster, "avc/ac-stored");
    assert_eq!(hint.spec.cost.as_str(), "768m");

    // And what our types write, the server takes.
    let mut copy = request;
    copy.metadata = Default::default();
    copy.metadata.name = Some("copy".to_owned());
    copy.metadata.namespace = Some("samples".to_owned());
    let args = ["create", "--validate=strict", "-f", "-"];
    cluster.ok_with(&args, &serde_json::to_string(&copy).unwrap());
}

fn read<K: serde::de::DeserializeOwned>(cluster: &Cluster, object: &str) -> K {
    let json = cluster.ok(&["get", object, "--namespace=samples", "-o=json"]);
    serde_json::from_str(&json).unwrap()
}
