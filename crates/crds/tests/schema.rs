//! The schemas say what the specification says.

#![allow(clippy::unwrap_used)]

use bigfleet_crds::{available_capacity_crd, capacity_request_crd, upcoming_node_crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

fn definitions() -> [Value; 3] {
    [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()]
        .map(|crd| serde_json::to_value(crd).unwrap())
}

fn schema(crd: CustomResourceDefinition) -> Value {
    serde_json::to_value(crd).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
}

/// Calls `visit` with the path and the schema of every field.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        visit(&path, field);
        walk(&path, field, visit);
    }
    for (mark, inner) in [("[]", "items"), ("{}", "additionalProperties")] {
        if schema[inner].is_object() {
            let path = format!("{path}{mark}");
            walk(&path, &schema[inner], visit);
        }
    }
}

#[test]
fn every_field_is_described_without_markup() {
    let mut seen = 0;
    for crd in definitions() {
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        assert!(schema["description"].as_str().unwrap().starts_with(kind));
        walk(kind, schema, &mut |path, field| {
            seen += 1;
            let description = field["description"].as_str().unwrap_or_default();
            assert!(!description.trim().is_empty(), "{path} has no description");
            assert!(!description.contains("[`"), "{path} shows rustdoc links: {description}");
        });
    }
    assert!(seen > 50, "the walk has lost its way: it saw {seen} fields");
}

#[test]
fn descriptions_say_what_users_must_know() {
    let request = schema(capacity_request_crd());
    let spec = &request["properties"]["spec"]["properties"];
    let formula = "price + interruption probability × interruptionPenalty";
    for (penalty, other) in [
        ("interruptionPenalty", "reclamationPenalty"),
        ("reclamationPenalty", "interruptionPenalty"),
    ] {
        let text = spec[penalty]["description"].as_str().unwrap();
        for part in [formula, "$0, $0.50, $1", "$8388608", "pinned"] {
            assert!(text.contains(part), "{penalty} does not say {part:?}");
        }
        assert!(text.contains(&format!("derived neither from {other} nor from priority")));
    }
    let requirements = spec["requirements"]["description"].as_str().unwrap();
    assert!(requirements.contains("Same is not accepted"));
    assert!(requirements.contains("spec.coLocation"));
    let hint = schema(available_capacity_crd());
    assert!(hint["description"].as_str().unwrap().contains("hint"));
}

#[test]
fn the_only_default_is_the_pending_status_and_nothing_is_nullable_or_preserved() {
    let mut defaults = Vec::new();
    for crd in definitions() {
        assert_eq!(crd["spec"]["preserveUnknownFields"], Value::Null);
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk(&kind, schema, &mut |path, field| {
            assert_eq!(field["nullable"], Value::Null, "{path} is nullable");
            assert_eq!(field["x-kubernetes-preserve-unknown-fields"], Value::Null, "{path}");
            if !field["default"].is_null() {
                defaults.push((path.to_owned(), field["default"].clone()));
            }
        });
    }
    assert_eq!(defaults, [("CapacityRequest.status".to_owned(), json!({"phase": "Pending"}))]);
}

#[test]
fn names_scopes_and_versions() {
    let names = definitions().map(|crd| {
        assert_eq!(crd["spec"]["group"], bigfleet_crds::GROUP);
        assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 1);
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], bigfleet_crds::VERSION);
        assert_eq!([&version["served"], &version["storage"]], [&json!(true), &json!(true)]);
        assert_eq!(version["subresources"], json!({"status": {}}));
        assert_eq!(version["schema"]["openAPIV3Schema"]["required"], json!(["spec"]));
        let names = &crd["spec"]["names"];
        assert_eq!(names["categories"], json!(["fleet"]));
        let kind = names["kind"].as_str().unwrap();
        assert_eq!(names["listKind"], format!("{kind}List"));
        json!([
            kind,
            names["plural"],
            names["singular"],
            names["shortNames"],
            crd["spec"]["scope"],
            version["selectableFields"],
        ])
    });
    assert_eq!(
        names,
        [
            json!([
                "CapacityRequest",
                "capacityrequests",
                "capacityrequest",
                ["cr", "crs"],
                "Namespaced",
                [{"jsonPath": ".status.phase"}],
            ]),
            json!([
                "AvailableCapacity",
                "availablecapacities",
                "availablecapacity",
                ["avc"],
                "Cluster",
                null,
            ]),
            json!(["UpcomingNode", "upcomingnodes", "upcomingnode", ["upn"], "Cluster", null]),
        ]
    );
}

#[test]
fn merge_rules_formats_and_required_fields() {
    let [request, hint, node] =
        [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()].map(schema);
    let list_type = |v: &Value| v["x-kubernetes-list-type"].clone();
    let spec = &request["properties"]["spec"];
    let fields = &spec["properties"];
    assert_eq!(spec["required"], json!(["priority", "resources"]));
    assert_eq!(fields["priority"]["format"], "int32");
    let requirement = &fields["requirements"]["items"];
    assert_eq!(requirement["required"], json!(["key", "operator"]));
    assert_eq!(list_type(&requirement["properties"]["values"]), "atomic");
    assert_eq!(
        fields["topologySpread"]["items"]["required"],
        json!(["maxSkew", "topologyKey", "whenUnsatisfiable"])
    );
    let group = &fields["coLocation"];
    assert_eq!(group["required"], json!(["topologyKey"]));
    assert_eq!(group["properties"]["labelSelector"]["x-kubernetes-map-type"], "atomic");

    let status = &request["properties"]["status"];
    assert_eq!(status["required"], json!(["phase"]));
    assert_eq!(status["properties"]["acknowledgedAt"]["format"], "date-time");
    assert_eq!(status["properties"]["observedGeneration"]["format"], "int64");
    let conditions = &status["properties"]["conditions"];
    assert_eq!(list_type(conditions), "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));

    let spec = &hint["properties"]["spec"];
    assert_eq!(spec["required"], json!(["availability", "availableCount", "cost", "resources"]));
    assert_eq!(spec["properties"]["availableCount"]["format"], "int32");
    assert_eq!(hint["properties"]["status"]["type"], "object");
    assert_eq!(hint["properties"]["status"]["properties"], Value::Null);

    let spec = &node["properties"]["spec"];
    assert_eq!(spec["required"], json!(["resources"]));
    assert_eq!(spec["properties"]["taints"]["items"]["required"], json!(["effect", "key"]));
    let status = &node["properties"]["status"];
    assert_eq!(status["required"], json!(["phase"]));
    assert_eq!(status["properties"]["nodeRef"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(status["properties"]["provisioningStartTime"]["format"], "date-time");
}

#[test]
fn conditions_have_the_standard_limits() {
    let request = schema(capacity_request_crd());
    let status = &request["properties"]["status"]["properties"];
    let mut condition = status["conditions"]["items"].clone();
    for (_, field) in condition["properties"].as_object_mut().unwrap() {
        field.as_object_mut().unwrap().remove("description");
    }
    let domain = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    assert_eq!(
        condition["properties"],
        json!({
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0.0},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {
                "type": "string",
                "maxLength": 316,
                "pattern": format!("^({domain}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"),
            },
        })
    );
    assert_eq!(
        condition["required"],
        json!(["lastTransitionTime", "message", "reason", "status", "type"])
    );
}

#[test]
fn every_quantity_is_int_or_string_with_the_pattern() {
    // Written out, so that a change of the constant is seen.
    let pattern = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let quantity = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": true,
    });
    let [request, hint, node] =
        [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()].map(schema);
    let field = |schema: &Value, name: &str| {
        let mut field = schema["properties"]["spec"]["properties"][name].clone();
        field.as_object_mut().unwrap().remove("description");
        field
    };
    for name in ["interruptionPenalty", "reclamationPenalty"] {
        assert_eq!(field(&request, name), quantity, "{name}");
    }
    assert_eq!(field(&hint, "cost"), quantity);
    for schema in [&request, &hint, &node] {
        assert_eq!(field(schema, "resources")["additionalProperties"], quantity);
    }
}
