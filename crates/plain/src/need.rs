//! A need as a person writes it, in YAML or JSON.

use std::collections::HashMap;

use bigfleet_wire::v1alpha1::{
    CapacityNeed, NodeSelectorRequirement, PenaltyBucket, TopologySpread,
    node_selector_requirement::Operator, topology_spread::WhenUnsatisfiable,
};
use serde::Deserialize;

/// A `CapacityNeed` in its own field names; enums with or without their prefix.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NeedText {
    #[serde(default)]
    requirements: Vec<RequirementText>,
    aggregate_resources: HashMap<String, Amount>,
    #[serde(default)]
    min_unit: HashMap<String, Amount>,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    spread: Vec<SpreadText>,
    #[serde(default)]
    interruption_penalty_bucket: Option<Amount>,
    #[serde(default)]
    reclamation_penalty_bucket: Option<Amount>,
    #[serde(default)]
    group: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequirementText {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SpreadText {
    topology_key: String,
    #[serde(default)]
    max_skew: i32,
    #[serde(default)]
    when_unsatisfiable: Option<String>,
}

/// `8`, `0.5` and `8Gi` are all amounts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Amount {
    Whole(i64),
    Part(f64),
    Text(String),
}

impl Amount {
    fn text(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Part(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

/// `DoNotSchedule` and `DO_NOT_SCHEDULE` are one name.
fn screaming(name: &str) -> String {
    if name.contains('_') || name.chars().all(|c| !c.is_lowercase()) {
        return name.to_uppercase();
    }
    let mut out = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(c.to_uppercase());
    }
    out
}

fn prefixed(prefix: &str, name: &str) -> String {
    let name = screaming(name);
    if name.starts_with(prefix) { name } else { format!("{prefix}{name}") }
}

fn bucket(field: &str, amount: Option<Amount>) -> Result<i32, String> {
    let Some(amount) = amount.map(Amount::text) else { return Ok(PenaltyBucket::Zero.into()) };
    let name = match amount.as_str() {
        "0" => "ZERO",
        "0.5" => "HALF_DOLLAR",
        other => other,
    };
    let known = PenaltyBucket::from_str_name(&prefixed("PENALTY_BUCKET_", name));
    known.map(Into::into).ok_or_else(|| {
        format!("{field}: {amount:?} is no bucket; write 0, 0.5, 1, 2, 4 … 8388608 or pinned")
    })
}

impl NeedText {
    /// As the wire has it; a refusal names the field.
    pub fn into_wire(self) -> Result<CapacityNeed, String> {
        let amounts = |all: HashMap<String, Amount>| {
            all.into_iter().map(|(name, amount)| (name, amount.text())).collect()
        };
        let requirement = |one: RequirementText| {
            let name = prefixed("OPERATOR_", &one.operator);
            let operator = Operator::from_str_name(&name).ok_or_else(|| {
                let operator = &one.operator;
                format!("requirements: {operator:?} is no operator; write In, NotIn, Exists, DoesNotExist or Same")
            })?;
            let (key, values) = (one.key, one.values);
            Ok(NodeSelectorRequirement { key, operator: operator.into(), values })
        };
        let spread = |one: SpreadText| {
            let when = one.when_unsatisfiable.as_deref().unwrap_or("DoNotSchedule");
            let known = WhenUnsatisfiable::from_str_name(&prefixed("WHEN_UNSATISFIABLE_", when));
            let known = known.ok_or_else(|| {
                format!("spread: {when:?} is not known; write DoNotSchedule or ScheduleAnyway")
            })?;
            Ok(TopologySpread {
                topology_key: one.topology_key,
                max_skew: one.max_skew.max(1),
                when_unsatisfiable: known.into(),
            })
        };
        Ok(CapacityNeed {
            requirements: self
                .requirements
                .into_iter()
                .map(requirement)
                .collect::<Result<_, String>>()?,
            aggregate_resources: amounts(self.aggregate_resources),
            min_unit: amounts(self.min_unit),
            priority: self.priority,
            spread: self.spread.into_iter().map(spread).collect::<Result<_, String>>()?,
            interruption_penalty_bucket: bucket(
                "interruptionPenaltyBucket",
                self.interruption_penalty_bucket,
            )?,
            reclamation_penalty_bucket: bucket(
                "reclamationPenaltyBucket",
                self.reclamation_penalty_bucket,
            )?,
            group: self.group.replace("\\0", "\0"),
        })
    }
}
