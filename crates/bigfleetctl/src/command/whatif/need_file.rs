//! A need as a person writes it.

use std::collections::HashMap;

use bigfleet_wire::v1alpha1::{
    CapacityNeed, NodeSelectorRequirement, PenaltyBucket, TopologySpread,
    node_selector_requirement::Operator, topology_spread::WhenUnsatisfiable,
};
use serde::Deserialize;

use crate::yaml;

/// A `CapacityNeed` in its own field names; enums with or without their prefix.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NeedFile {
    #[serde(default)]
    requirements: Vec<RequirementFile>,
    aggregate_resources: HashMap<String, Amount>,
    #[serde(default)]
    min_unit: HashMap<String, Amount>,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    spread: Vec<SpreadFile>,
    #[serde(default)]
    interruption_penalty_bucket: Option<Amount>,
    #[serde(default)]
    reclamation_penalty_bucket: Option<Amount>,
    #[serde(default)]
    group: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequirementFile {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SpreadFile {
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

impl NeedFile {
    fn into_wire(self) -> Result<CapacityNeed, String> {
        let amounts = |all: HashMap<String, Amount>| {
            all.into_iter().map(|(name, amount)| (name, amount.text())).collect()
        };
        let requirement = |one: RequirementFile| {
            let name = prefixed("OPERATOR_", &one.operator);
            let operator = Operator::from_str_name(&name).ok_or_else(|| {
                let operator = &one.operator;
                format!("requirements: {operator:?} is no operator; write In, NotIn, Exists, DoesNotExist or Same")
            })?;
            let (key, values) = (one.key, one.values);
            Ok(NodeSelectorRequirement { key, operator: operator.into(), values })
        };
        let spread = |one: SpreadFile| {
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

/// The need in a file.
pub(super) fn parse(text: &str) -> Result<CapacityNeed, String> {
    yaml::read::<NeedFile>(text)?.into_wire()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_read_with_and_without_prefixes() {
        let need = parse(
            "requirements:\n- {key: zone, operator: In, values: [a]}\n- {key: rack, operator: OPERATOR_SAME}\n\
             aggregateResources: {cpu: 64, memory: 256Gi, share: 0.5}\nminUnit: {cpu: 8}\npriority: 1000\n\
             spread: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]\n\
             interruptionPenaltyBucket: 1024\nreclamationPenaltyBucket: pinned\ngroup: 'rack\\0a=b,;\\0ns'\n",
        )
        .unwrap();
        assert_eq!(need.requirements[0].operator(), Operator::In);
        assert_eq!(need.requirements[1].operator(), Operator::Same);
        assert_eq!(need.aggregate_resources["cpu"], "64");
        assert_eq!(need.aggregate_resources["share"], "0.5");
        assert_eq!(need.aggregate_resources["memory"], "256Gi");
        assert_eq!(need.spread[0].when_unsatisfiable(), WhenUnsatisfiable::ScheduleAnyway);
        assert_eq!((need.interruption_penalty_bucket, need.reclamation_penalty_bucket), (13, 27));
        assert_eq!(need.group, "rack\0a=b,;\0ns");
        let plain = parse("{\"aggregateResources\": {\"cpu\": \"1\"}}").unwrap();
        assert_eq!(plain.interruption_penalty_bucket, 1);
    }

    #[test]
    fn refusals_name_the_field() {
        for (text, named) in [
            ("aggregateResources: {cpu: 1}\ncount: 3\n", "line 2"),
            ("priority: 1\n", "aggregateResources"),
            (
                "aggregateResources: {cpu: 1}\ninterruptionPenaltyBucket: 3\n",
                "interruptionPenaltyBucket",
            ),
            ("aggregateResources: {cpu: 1}\nrequirements: [{key: a, operator: Gt}]\n", "Gt"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(named), "{problem}");
        }
    }
}
