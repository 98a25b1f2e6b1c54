//! The three definitions, ready to be installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{AvailableCapacity, CapacityRequest, UpcomingNode};

/// Definition of [`CapacityRequest`]. Use this and not `CapacityRequest::crd()`.
pub fn capacity_request_crd() -> CustomResourceDefinition {
    let mut crd = definition::<CapacityRequest>();
    // Served on read, so that making a request takes one write and not two.
    for status in
        schemas(&mut crd).filter_map(|schema| schema.properties.as_mut()?.get_mut("status"))
    {
        status.default = Some(JSON(json!({"phase": "Pending"})));
    }
    crd
}

/// Definition of [`AvailableCapacity`]. Use this and not `AvailableCapacity::crd()`.
pub fn available_capacity_crd() -> CustomResourceDefinition {
    definition::<AvailableCapacity>()
}

/// Definition of [`UpcomingNode`]. Use this and not `UpcomingNode::crd()`.
pub fn upcoming_node_crd() -> CustomResourceDefinition {
    definition::<UpcomingNode>()
}

fn definition<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = K::crd();
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    schemas(&mut crd).for_each(mend);
    crd
}

fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    crd.spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}

/// Mends what the derivation says from Rust's point of view.
///
/// - `nullable`: an `Option` is a field that may be absent. With `nullable` the server would store
///   an explicit null instead of dropping it.
/// - `title` repeats the kind; line breaks in descriptions are those of source comments.
/// - `anyOf`: the derivation drops the two types of an int-or-string, and some readers of schemas
///   know no other sign of it.
fn mend(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.any_of = Some(["integer", "string"].map(of_type).to_vec());
    }
    if let Some(description) = &mut schema.description {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    schema.properties.iter_mut().flatten().for_each(|(_, property)| mend(property));
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => mend(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(mend),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        mend(values);
    }
}

fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(name.to_owned()), ..Default::default() }
}
