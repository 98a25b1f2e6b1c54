//! Constraint on the labels of a machine.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// One constraint on the labels of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub struct Requirement {
    /// The label key.
    pub key: String,

    /// How the label is compared: In, NotIn, Exists or DoesNotExist. Same is not accepted: pods
    /// that must share a topology domain say so in spec.coLocation of their CapacityRequest.
    pub operator: Operator,

    /// The values for In and NotIn; an In without values matches nothing. Exists and DoesNotExist
    /// take none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// Any other text. The schema refuses it, but an object stored under an older one may hold it,
    /// and only that object is to be skipped.
    #[serde(untagged)]
    Other(String),
}

// By hand: the derivation would admit every text for the sake of `Other`.
impl JsonSchema for Operator {
    fn schema_name() -> Cow<'static, str> {
        "Operator".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist],
        })
    }
}
