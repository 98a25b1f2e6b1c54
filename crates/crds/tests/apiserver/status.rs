//! The status subresource of each kind.

use bigfleet_crds::conditions;
use serde_json::{Value, json};

use super::kubectl::Cluster;
use super::objects::object;

pub(crate) fn phases_are_those_of_the_specification(cluster: &Cluster) {
    let spec = json!({"priority": 0, "resources": {}});
    cluster.create(&object("CapacityRequest", "phases", &spec));
    let node_spec = json!({"resources": {}});
    cluster.create(&object("UpcomingNode", "un-phases", &node_spec));
    let node_phases =
        ["Provisioning", "Launched", "Registered", "Ready", "Draining", "Drained", "Failed"];
    for (target, phases) in
        [("cr/phases", &["Pending", "Acknowledged"][..]), ("upn/un-phases", &node_phases)]
    {
        for phase in phases {
            let patched = cluster.patch_status(target, &json!({"status": {"phase": phase}}));
            assert_eq!(patched["status"]["phase"], *phase);
        }
        for phase in ["", "pending", "Bound"] {
            let error = cluster.patch_status_refused(target, &json!({"status": {"phase": phase}}));
            assert!(error.contains("status.phase: Unsupported value"), "{target}: {error}");
        }
        let without = json!({"status": {"phase": null, "lastError": "x", "observedGeneration": 1}});
        let error = cluster.patch_status_refused(target, &without);
        assert!(error.contains("status.phase: Required value"), "{target}: {error}");
    }

    let full = json!({
        "phase": "Failed",
        "nodeRef": {"kind": "Node", "name": "node-1"},
        "providerID": "aws:///eu-west-1a/i-0abc",
        "lastError": "no quota",
        "provisioningStartTime": "2026-11-15T12:00:00Z",
    });
    let patched = cluster.patch_status("upn/un-phases", &json!({"status": full}));
    assert_eq!(patched["status"], full);
    let acknowledged = json!({
        "phase": "Acknowledged",
        "acknowledgedAt": "2026-11-15T12:00:00Z",
        "observedGeneration": 1,
    });
    let patched = cluster.patch_status("cr/phases", &json!({"status": acknowledged}));
    assert_eq!(patched["status"], acknowledged);
    let bad_time = json!({"status": {"acknowledgedAt": "noon"}});
    let error = cluster.patch_status_refused("cr/phases", &bad_time);
    assert!(error.contains("status.acknowledgedAt"), "{error}");
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-11-15T12:00:00Z",
    })
}

pub(crate) fn bad_conditions_are_refused(cluster: &Cluster) {
    let with = |field: &str, value: Value| {
        let mut bad = condition("Satisfied", "CapacityComing");
        bad[field] = value;
        json!([bad])
    };
    for (conditions, expected) in [
        (with("status", json!("Maybe")), "[0].status: Unsupported value"),
        (with("reason", json!("")), "[0].reason"),
        (with("reason", json!("no matching supply")), "[0].reason"),
        (with("type", json!("not a type")), "[0].type"),
        (with("observedGeneration", json!(-1)), "[0].observedGeneration"),
        (with("lastTransitionTime", Value::Null), "[0].lastTransitionTime: Required value"),
        (with("message", json!("x".repeat(32769))), "[0].message: Too long"),
        (
            json!([condition("Satisfied", "A"), condition("Satisfied", "B")]),
            "conditions[1]: Duplicate value",
        ),
    ] {
        let patch = json!({"status": {"conditions": conditions}});
        let error = cluster.patch_status_refused("cr/phases", &patch);
        assert!(error.contains(expected), "expected {expected}, got {error}");
    }
}

pub(crate) fn conditions_of_two_writers_merge_by_type(cluster: &Cluster) {
    let apply = |manager: &str, condition: Value| {
        let mut applied = object("CapacityRequest", "pending", &Value::Null);
        if let Some(fields) = applied.as_object_mut() {
            fields.remove("spec");
        }
        applied["status"] = json!({"phase": "Pending", "conditions": [condition]});
        let manager = format!("--field-manager={manager}");
        let args = ["apply", "--server-side", "--subresource=status", &manager, "-f", "-"];
        cluster.ok_with(&args, &applied.to_string());
    };
    apply("one", condition(conditions::TRANSLATABLE, "Understood"));
    apply("two", condition(conditions::SATISFIED, "CapacityComing"));
    apply("two", condition(conditions::SATISFIED, "Satisfied"));
    let reasons = "-o=jsonpath={.status.conditions[*].reason}";
    let reasons = cluster.ok(&["get", "cr/pending", "--namespace=samples", reasons]);
    assert_eq!(reasons, "Understood Satisfied");
}

pub(crate) fn the_hint_has_no_status(cluster: &Cluster) {
    let patch = json!({"status": {"phase": "Ready"}});
    let patched = cluster.patch_status("avc/ac-stored", &patch);
    assert_eq!(patched["status"], json!({}));
}
