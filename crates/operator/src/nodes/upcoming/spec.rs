use std::collections::BTreeMap;

use bigfleet_crds::UpcomingNodeSpec;
use bigfleet_model::Quantity;
use bigfleet_wire::v1alpha1::NodeStateUpdate;
use k8s_openapi::api::core::v1::Taint;
use serde::Serialize;

/// The spec of an UpcomingNode. Two are equal when their quantities are, however written.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Spec {
    /// Labels that the node will carry.
    pub labels: BTreeMap<String, String>,
    /// What the machine offers, as written.
    pub resources: BTreeMap<String, String>,
    /// Taints that the node will carry.
    pub taints: Vec<TaintView>,
}

/// A taint, without its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaintView {
    /// Its key.
    pub key: String,
    /// Its value; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Its effect.
    pub effect: String,
}

impl From<&Taint> for TaintView {
    fn from(taint: &Taint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
        }
    }
}

impl Spec {
    /// What a frame says of its machine. A quantity that does not parse is left out alone.
    #[must_use]
    pub fn of(frame: &NodeStateUpdate) -> Self {
        let resources = frame.resources.iter().flat_map(|all| &all.resources);
        Self {
            labels: frame.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            resources: resources
                .filter(|(_, quantity)| quantity.parse::<Quantity>().is_ok())
                .map(|(name, quantity)| (name.clone(), quantity.clone()))
                .collect(),
            taints: frame
                .taints
                .iter()
                .map(|taint| TaintView {
                    key: taint.key.clone(),
                    value: taint.value.clone(),
                    effect: taint.effect.clone(),
                })
                .collect(),
        }
    }

    /// As the object carries it.
    #[must_use]
    pub fn to_object(&self) -> UpcomingNodeSpec {
        UpcomingNodeSpec {
            resources: self
                .resources
                .iter()
                .map(|(name, quantity)| (name.clone(), quantity.as_str().into()))
                .collect(),
            labels: self.labels.clone(),
            taints: self
                .taints
                .iter()
                .map(|taint| Taint {
                    key: taint.key.clone(),
                    value: (!taint.value.is_empty()).then(|| taint.value.clone()),
                    effect: taint.effect.clone(),
                    time_added: None,
                })
                .collect(),
        }
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        let value = |text: &str| text.parse::<Quantity>().ok();
        self.labels == other.labels
            && self.taints == other.taints
            && self.resources.len() == other.resources.len()
            && self.resources.iter().zip(&other.resources).all(|((name, one), (same, two))| {
                name == same && (one == two || (value(one).is_some() && value(one) == value(two)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_wire::v1alpha1::Resources;

    fn spec(resources: &[(&str, &str)]) -> Spec {
        let resources = resources.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Spec::of(&NodeStateUpdate {
            resources: Some(Resources { resources }),
            ..NodeStateUpdate::default()
        })
    }

    #[test]
    fn quantities_compare_by_value() {
        assert_eq!(spec(&[("cpu", "1")]), spec(&[("cpu", "1000m")]));
        assert_eq!(spec(&[("memory", "1Gi")]), spec(&[("memory", "1024Mi")]));
        assert_ne!(spec(&[("cpu", "1")]), spec(&[("cpu", "2")]));
        assert_ne!(spec(&[("cpu", "1")]), spec(&[("gpu", "1")]));
        assert_ne!(spec(&[("cpu", "1")]), spec(&[]));
    }

    #[test]
    fn an_unparsable_quantity_is_dropped_alone() {
        assert_eq!(spec(&[("cpu", "four"), ("memory", "1Gi")]), spec(&[("memory", "1Gi")]));
    }
}
