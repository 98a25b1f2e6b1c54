//! Spread over topology domains.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How evenly machines are spread over the domains of one topology key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    /// The largest allowed difference between any two domains; at least 1.
    #[schemars(range(min = 1))]
    pub max_skew: i32,

    /// The machine label whose values are the domains.
    pub topology_key: String,

    /// DoNotSchedule: the spread binds. ScheduleAnyway: it is only a wish, and is not reported to
    /// the fleet.
    pub when_unsatisfiable: WhenUnsatisfiable,
}

/// What to do when the spread cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum WhenUnsatisfiable {
    /// The spread binds.
    DoNotSchedule,
    /// The spread is only a wish.
    ScheduleAnyway,
    /// Any other text. The schema refuses it, but an object stored under an older one may hold it.
    #[serde(untagged)]
    Other(String),
}

// By hand: the derivation would admit every text for the sake of `Other`.
impl JsonSchema for WhenUnsatisfiable {
    fn schema_name() -> Cow<'static, str> {
        "WhenUnsatisfiable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": [Self::DoNotSchedule, Self::ScheduleAnyway],
        })
    }
}
