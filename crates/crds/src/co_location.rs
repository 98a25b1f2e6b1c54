//! Gangs: pods that must share a topology domain.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Puts the pods of one group on machines that share one value of a topology key.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoLocation {
    /// The machine label that all machines of the group share one value of.
    pub topology_key: String,

    /// Names the group: requests of one namespace with equal topologyKey and labelSelector belong
    /// together. It is compared as text and never evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// The standard selector, with the merge rules that the library's schema leaves out.
fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = LabelSelector::json_schema(generator);
    schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    for list in
        ["/properties/matchExpressions", "/properties/matchExpressions/items/properties/values"]
    {
        if let Some(list) = schema.pointer_mut(list).and_then(|list| list.as_object_mut()) {
            list.insert("x-kubernetes-list-type".into(), "atomic".into());
        }
    }
    schema
}
