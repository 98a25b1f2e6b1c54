//! Condition types of a [`CapacityRequest`](crate::CapacityRequest).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Condition type: the shard has accepted the demand.
pub const ACKNOWLEDGED: &str = "Acknowledged";

/// Condition type: False when the request cannot be understood and counts for nothing.
pub const TRANSLATABLE: &str = "Translatable";

/// Condition type: whether the fleet covers the demand, and why not.
pub const SATISFIED: &str = "Satisfied";

/// What Kubernetes checks on its own conditions; the library's schema leaves it out.
fn limits() -> [(&'static str, Value); 5] {
    [
        ("message", json!({"maxLength": 32768})),
        ("observedGeneration", json!({"minimum": 0})),
        (
            "reason",
            json!({
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            }),
        ),
        ("status", json!({"enum": ["True", "False", "Unknown"]})),
        (
            "type",
            json!({
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                            (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            }),
        ),
    ]
}

/// Schema of the list: a map keyed by type, so that writers of different types do not collide.
pub(crate) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let mut condition = Condition::json_schema(generator);
    for (field, limits) in limits() {
        let field = condition
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(field))
            .and_then(Value::as_object_mut);
        if let (Some(field), Value::Object(limits)) = (field, limits) {
            field.extend(limits);
        }
    }
    json_schema!({
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
