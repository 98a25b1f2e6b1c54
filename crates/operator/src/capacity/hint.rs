use std::sync::Arc;

use bigfleet_crds::{
    Availability, AvailableCapacity, AvailableCapacitySpec, Operator, Requirement,
};
use bigfleet_model::Quantity;
use bigfleet_model::quantity::Family;
use bigfleet_wire::v1alpha1::available_capacity_update::Confidence;
use bigfleet_wire::v1alpha1::{self as wire, AvailableCapacityUpdate};
use serde_json::{Map, Value, json};

use crate::nodes::mirror::{Version, mirrored};

/// What a hint says.
#[derive(Debug, Clone)]
pub struct Hint {
    spec: AvailableCapacitySpec,
}

impl PartialEq for Hint {
    /// Quantities are equal when their values are, however written.
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.spec, &other.spec);
        one.availability == two.availability
            && one.available_count == two.available_count
            && one.requirements == two.requirements
            && same(&one.cost, &two.cost)
            && one.resources.len() == two.resources.len()
            && one.resources.iter().all(|(name, quantity)| {
                two.resources.get(name).is_some_and(|other| same(quantity, other))
            })
    }
}

fn same(one: &bigfleet_crds::Quantity, two: &bigfleet_crds::Quantity) -> bool {
    let value = |text: &bigfleet_crds::Quantity| text.as_str().parse::<Quantity>().ok();
    one == two || (value(one).is_some() && value(one) == value(two))
}

impl Hint {
    /// What a frame says.
    #[must_use]
    pub fn of(frame: &AvailableCapacityUpdate) -> Self {
        let resources = frame.resources.iter().flat_map(|all| &all.resources);
        let spec = AvailableCapacitySpec {
            availability: match frame.confidence() {
                Confidence::Low => Availability::Low,
                Confidence::Medium => Availability::Medium,
                Confidence::High => Availability::High,
                Confidence::None | Confidence::Unspecified => Availability::None,
            },
            available_count: frame.available_count,
            cost: dollars(frame.cost_per_hour).as_str().into(),
            resources: resources
                .filter(|(_, quantity)| quantity.parse::<Quantity>().is_ok())
                .map(|(name, quantity)| (name.clone(), quantity.as_str().into()))
                .collect(),
            requirements: frame.requirements.iter().filter_map(requirement).collect(),
        };
        Self { spec }
    }

    /// Nothing can be had.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.spec.available_count == 0 && self.spec.availability == Availability::None
    }

    /// The object to create.
    #[must_use]
    pub fn create(&self, name: &str) -> AvailableCapacity {
        AvailableCapacity::new(name, self.spec.clone())
    }

    /// The merge patch that turns `old` into this.
    #[must_use]
    pub fn patch(&self, old: &Self) -> Value {
        let spec = &self.spec;
        let removed = old.spec.resources.keys().filter(|name| !spec.resources.contains_key(*name));
        let mut resources: Map<_, _> = removed.map(|name| (name.clone(), Value::Null)).collect();
        resources.extend(
            spec.resources.iter().map(|(name, value)| (name.clone(), value.as_str().into())),
        );
        json!({"spec": {
            "availability": spec.availability,
            "availableCount": spec.available_count,
            "cost": spec.cost,
            "resources": resources,
            "requirements": spec.requirements,
        }})
    }
}

/// Dollars to the millionth, canonical. What is no price is 0.
fn dollars(cost: f64) -> String {
    let micros = (cost * 1e6).round();
    let micros = if micros.is_finite() && micros > 0.0 { micros as i128 } else { 0 };
    Quantity::from_nanos(micros.saturating_mul(1_000), Family::Decimal).to_string()
}

/// SAME is left out: co-location does not appear in a CRD.
fn requirement(requirement: &wire::NodeSelectorRequirement) -> Option<Requirement> {
    use wire::node_selector_requirement::Operator as Wire;
    let operator = match requirement.operator() {
        Wire::In => Operator::In,
        Wire::NotIn => Operator::NotIn,
        Wire::Exists => Operator::Exists,
        Wire::DoesNotExist => Operator::DoesNotExist,
        Wire::Same | Wire::Unspecified => return None,
    };
    let (key, values) = (requirement.key.clone(), requirement.values.clone());
    Some(Requirement { key, operator, values })
}

/// An AvailableCapacity.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacityView {
    name: Arc<str>,
    uid: Arc<str>,
    version: Version,
    pub(super) hint: Hint,
}

impl CapacityView {
    /// What is kept of an AvailableCapacity. None without a name.
    #[must_use]
    pub fn of(object: &AvailableCapacity) -> Option<Self> {
        Some(Self {
            name: object.metadata.name.as_deref()?.into(),
            uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
            version: Version::of(object.metadata.resource_version.as_deref()),
            hint: Hint { spec: object.spec.clone() },
        })
    }
}

mirrored!(CapacityView);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_rounded_to_micro_dollars() {
        for (cost, text) in [
            (0.768, "768m"),
            (0.0, "0"),
            (-1.0, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (12.0, "12"),
            (0.000_000_4, "0"),
            (0.123_456_7, "123457u"),
        ] {
            assert_eq!(dollars(cost), text, "{cost}");
        }
    }

    #[test]
    fn a_frame_becomes_its_hint_without_same() {
        let requirement = |operator: i32| wire::NodeSelectorRequirement {
            key: "zone".into(),
            operator,
            values: vec!["a".into()],
        };
        let frame = AvailableCapacityUpdate {
            requirements: vec![requirement(1), requirement(5), requirement(99)],
            confidence: 77,
            available_count: 3,
            ..AvailableCapacityUpdate::default()
        };
        let hint = Hint::of(&frame);
        assert_eq!(hint.spec.requirements.len(), 1);
        assert_eq!(hint.spec.availability, Availability::None);
        assert!(!hint.is_nothing());
        assert!(hint.spec.resources.is_empty());
    }

    #[test]
    fn removed_resources_are_nulled() {
        let with = |resources: &[(&str, &str)]| {
            let resources = resources.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            Hint::of(&AvailableCapacityUpdate {
                resources: Some(wire::Resources { resources }),
                ..AvailableCapacityUpdate::default()
            })
        };
        assert_eq!(with(&[("cpu", "1")]), with(&[("cpu", "1000m")]));
        let patch = with(&[]).patch(&with(&[("cpu", "1")]));
        assert_eq!(patch["spec"]["resources"], json!({"cpu": null}));
    }
}
