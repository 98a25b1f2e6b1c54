//! One CapacityRequest becomes demand (§3.2, wire chapter §13.1).

use std::sync::Arc;

use bigfleet_crds::{self as crds, CapacityRequestSpec, group_text};
use bigfleet_model::{
    Operator, PenaltyBucket, Profile, Quantity, Requirement, TopologySpread, WhenUnsatisfiable,
    gate::{Quoted, Refusal, unit_amount},
};

use super::{
    identity::{Key, NeedIdentity},
    intern::Interner,
    skipped::{Skipped, Untranslatable},
    vector::Vector,
};

/// What one request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The need it is part of; equal ones are one pointer.
    pub need: Arc<NeedIdentity>,
    /// How much; the atomic unit.
    pub unit: Arc<Vector>,
}

impl Demand {
    /// Counts for the same, by pointers: both are interned.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.need, &other.need) && Arc::ptr_eq(&self.unit, &other.unit)
    }
}

/// Translates, and keeps one copy of what is equal.
#[derive(Debug, Default)]
pub struct Translator {
    needs: Interner<NeedIdentity>,
    units: Interner<Vector>,
}

impl Translator {
    /// The demand of one request, or what is wrong with it. The checks are those of
    /// the shard's gate, so that one bad object never freezes a cluster.
    pub fn translate(
        &self,
        namespace: &str,
        spec: &CapacityRequestSpec,
    ) -> Result<Demand, Untranslatable> {
        let mut requirements = requirements(&spec.requirements)?;
        let co_location = spec.co_location.as_ref().filter(|one| !one.topology_key.is_empty());
        let group = co_location.map_or_else(String::new, |one| {
            group_text(&one.topology_key, one.label_selector.as_ref(), namespace)
        });
        if let Some(one) = co_location {
            let (key, operator) = (one.topology_key.clone(), Operator::Same);
            requirements.push(Requirement { key, operator, values: Vec::new() });
        }
        let interruption = penalty("interruptionPenalty", spec.interruption_penalty.as_ref())?;
        let reclamation = penalty("reclamationPenalty", spec.reclamation_penalty.as_ref())?;
        let unit = unit(spec)?;
        let profile = Profile::new(
            requirements,
            spread(&spec.topology_spread),
            spec.priority,
            interruption,
            reclamation,
        );
        let unit = self.units.intern(&unit, || Arc::new(unit.clone()));
        Ok(Demand { need: self.need(profile, &group), unit })
    }

    fn need(&self, profile: Profile, group: &str) -> Arc<NeedIdentity> {
        let fingerprint = profile.fingerprint().clone();
        let key = (fingerprint.as_str(), group);
        let make = || Arc::new(NeedIdentity::new(profile, group));
        self.needs.intern(&key as &dyn Key, make)
    }
}

fn untranslatable(
    kind: Skipped,
    path: impl Into<String>,
    reason: impl std::fmt::Display,
) -> Untranslatable {
    Untranslatable { kind, refusal: Refusal::new(path, reason) }
}

fn requirements(requirements: &[crds::Requirement]) -> Result<Vec<Requirement>, Untranslatable> {
    let translate = |(index, one): (usize, &crds::Requirement)| {
        let operator = match &one.operator {
            crds::Operator::In => Operator::In,
            crds::Operator::NotIn => Operator::NotIn,
            crds::Operator::Exists => Operator::Exists,
            crds::Operator::DoesNotExist => Operator::DoesNotExist,
            crds::Operator::Other(text) => {
                let reason = format_args!(
                    "{} is no operator; use In, NotIn, Exists or DoesNotExist",
                    Quoted(text)
                );
                let path = format!("spec.requirements[{index}].operator");
                return Err(untranslatable(Skipped::Operator, path, reason));
            }
        };
        Ok(Requirement { key: one.key.clone(), operator, values: one.values.clone() })
    };
    requirements.iter().enumerate().map(translate).collect()
}

/// A soft wish is dropped: nothing enforces it, and it would split equal demand.
fn spread(spread: &[crds::TopologySpread]) -> Vec<TopologySpread> {
    let translate = |one: &crds::TopologySpread| {
        let when_unsatisfiable = match &one.when_unsatisfiable {
            crds::WhenUnsatisfiable::DoNotSchedule => WhenUnsatisfiable::DoNotSchedule,
            crds::WhenUnsatisfiable::ScheduleAnyway => return None,
            crds::WhenUnsatisfiable::Other(_) => WhenUnsatisfiable::Unspecified,
        };
        let (topology_key, max_skew) = (one.topology_key.clone(), one.max_skew);
        Some(TopologySpread { topology_key, max_skew, when_unsatisfiable })
    };
    spread.iter().filter_map(translate).collect()
}

/// A missing penalty is $0 and not unspecified: else equal demand is two profiles.
fn penalty(field: &str, text: Option<&crds::Quantity>) -> Result<PenaltyBucket, Untranslatable> {
    let Some(text) = text else { return Ok(PenaltyBucket::ZERO) };
    let dollars: Quantity = text.as_str().parse().map_err(|_| {
        let reason = format_args!("{} is no quantity of dollars", Quoted(text.as_str()));
        untranslatable(Skipped::Penalty, format!("spec.{field}"), reason)
    })?;
    Ok(PenaltyBucket::from_dollars(dollars.to_f64()))
}

fn unit(spec: &CapacityRequestSpec) -> Result<Vector, Untranslatable> {
    let read = |(name, text): (&String, &crds::Quantity)| {
        unit_amount(name, text.as_str()).map_err(|error| {
            let path = format!("spec.resources[{}]", Quoted(name));
            untranslatable(Skipped::from(&error), path, error)
        })
    };
    spec.resources.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn translate(spec: Value) -> Result<Demand, Untranslatable> {
        let spec: CapacityRequestSpec = serde_json::from_value(spec).unwrap();
        Translator::default().translate("team-a", &spec)
    }

    fn fingerprint(spec: Value) -> String {
        translate(spec).unwrap().need.fingerprint().to_owned()
    }

    #[test]
    fn every_field_goes_where_the_table_says() {
        let demand = translate(json!({
            "priority": 7,
            "resources": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 0},
            "requirements": [
                {"key": "b", "operator": "In", "values": ["y", "x", "x"]},
                {"key": "a", "operator": "Exists"},
                {"key": "c", "operator": "NotIn", "values": ["1"]},
                {"key": "d", "operator": "DoesNotExist"},
            ],
            "interruptionPenalty": "500m",
            "reclamationPenalty": 8000,
            "topologySpread": [
                {"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "y", "whenUnsatisfiable": "ScheduleAnyway"},
                {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "Sometimes"},
            ],
        }))
        .unwrap();
        assert_eq!(
            demand.need.fingerprint(),
            "p=7|ipb=2|rpb=16|reqs=a:3:;b:1:x,y;c:2:1;d:4:;|spr=x:1:0;z:2:1;"
        );
        assert_eq!(demand.need.group(), "");
        assert_eq!(demand.unit.amounts().len(), 2, "zero is as good as missing");
    }

    #[test]
    fn nothing_given_is_zero_dollars() {
        let minimal = json!({"priority": 0, "resources": {}});
        assert_eq!(fingerprint(minimal), "p=0|ipb=1|rpb=1|reqs=|spr=");
        let paid = json!({"priority": 0, "resources": {}, "interruptionPenalty": "-5"});
        assert_eq!(fingerprint(paid), "p=0|ipb=1|rpb=1|reqs=|spr=");
    }

    #[test]
    fn co_location_makes_a_group_and_one_same() {
        let gang = |key: &str| {
            translate(json!({
                "priority": 0, "resources": {},
                "coLocation": {"topologyKey": key, "labelSelector": {"matchLabels": {"job": "j"}}},
            }))
            .unwrap()
            .need
        };
        assert_eq!(gang("rack").fingerprint(), "p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=");
        assert_eq!(gang("rack").group(), "rack\0job=j,;\0team-a");
        assert_eq!((gang("").fingerprint(), gang("").group()), ("p=0|ipb=1|rpb=1|reqs=|spr=", ""));
    }

    #[test]
    fn a_refusal_names_the_field() {
        for (spec, kind, text) in [
            (
                json!({"requirements": [{"key": "k", "operator": "Exists"},
                                        {"key": "k", "operator": "Gt", "values": ["4"]}]}),
                Skipped::Operator,
                "spec.requirements[1].operator: \"Gt\" is no operator; use In, NotIn, Exists or \
                 DoesNotExist",
            ),
            (
                json!({"requirements": [{"key": "k", "operator": "Same"}]}),
                Skipped::Operator,
                "spec.requirements[0].operator: \"Same\" is no operator; use In, NotIn, Exists or \
                 DoesNotExist",
            ),
            (
                json!({"resources": {"cpu": "abc"}}),
                Skipped::Quantity,
                "spec.resources[\"cpu\"]: unparseable quantity \"abc\"",
            ),
            (
                json!({"resources": {"cpu": "-1"}}),
                Skipped::NegativeQuantity,
                "spec.resources[\"cpu\"]: negative quantity \"-1\"",
            ),
            (
                json!({"resources": {"memory": "10E"}}),
                Skipped::Quantity,
                "spec.resources[\"memory\"]: unparseable quantity \"10E\": exceeds 64-bit \
                 milli-units",
            ),
            (
                json!({"resources": {"": "1"}}),
                Skipped::ResourceName,
                "spec.resources[\"\"]: empty resource name",
            ),
            (
                json!({"interruptionPenalty": "much"}),
                Skipped::Penalty,
                "spec.interruptionPenalty: \"much\" is no quantity of dollars",
            ),
        ] {
            let mut full = json!({"priority": 0, "resources": {}});
            full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            let refused = translate(full).unwrap_err();
            assert_eq!((refused.kind, refused.to_string().as_str()), (kind, text));
        }
    }

    #[test]
    fn equal_demand_is_one_pointer() {
        let translator = Translator::default();
        let spec = |cpu: &str| -> CapacityRequestSpec {
            serde_json::from_value(json!({"priority": 1, "resources": {"cpu": cpu}})).unwrap()
        };
        let one = translator.translate("a", &spec("1")).unwrap();
        let same = translator.translate("b", &spec("1")).unwrap();
        let other = translator.translate("a", &spec("2")).unwrap();
        assert!(one.is_same(&same) && !one.is_same(&other));
        assert!(Arc::ptr_eq(&one.need, &other.need));
    }
}
