//! Gangs: which pods must share a topology domain (§8.2).
//!
//! A PodGroup with a topology constraint wins over pod affinity. Preferred affinity and all
//! anti-affinity are no demand.

use std::collections::BTreeMap;

use bigfleet_crds::CoLocation;
use k8s_openapi::{
    api::core::v1::PodAffinityTerm,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

use crate::pod::Pod;

/// Names the group of a PodGroup; nobody evaluates it.
const POD_GROUP: &str = "scheduling.k8s.io/pod-group";

/// A pod affinity term as its pod means it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GangTerm {
    topology_key: String,
    label_selector: Option<LabelSelector>,
}

impl GangTerm {
    /// Of a term, with the pod's values of `matchLabelKeys` folded into the selector.
    #[must_use]
    pub fn of(term: &PodAffinityTerm, labels: Option<&BTreeMap<String, String>>) -> Self {
        let mut label_selector = term.label_selector.clone();
        if let Some(selector) = &mut label_selector {
            for key in term.match_label_keys.iter().flatten() {
                // As the scheduler does it: a key that the pod lacks is left out.
                if let Some(value) = labels.and_then(|labels| labels.get(key)) {
                    fold(selector, key, value);
                }
            }
            plain(selector);
        }
        Self { topology_key: term.topology_key.clone(), label_selector }
    }
}

/// Adds `key In [value]`, unless the API server has already done so.
fn fold(selector: &mut LabelSelector, key: &str, value: &str) {
    let expression = LabelSelectorRequirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![value.to_owned()]),
    };
    let expressions = selector.match_expressions.get_or_insert_default();
    if !expressions.contains(&expression) {
        expressions.push(expression);
    }
}

/// Empty and absent mean the same and must compare equal.
pub(crate) fn plain(selector: &mut LabelSelector) {
    selector.match_labels.take_if(|labels| labels.is_empty());
    selector.match_expressions.take_if(|expressions| expressions.is_empty());
    for expression in selector.match_expressions.iter_mut().flatten() {
        expression.values.take_if(|values| values.is_empty());
    }
}

/// The gang of `pod`; `group_topology` is the constraint of the PodGroup that it names.
#[must_use]
pub fn co_location(pod: &Pod, group_topology: Option<&str>) -> Option<CoLocation> {
    if let (Some(name), Some(topology)) = (&pod.group, group_topology) {
        let labels = BTreeMap::from([(POD_GROUP.to_owned(), String::from(&**name))]);
        let selector = LabelSelector { match_labels: Some(labels), match_expressions: None };
        return Some(CoLocation {
            topology_key: topology.to_owned(),
            label_selector: Some(selector),
        });
    }
    pod.pod_affinity.as_deref().filter(|term| !term.topology_key.is_empty()).map(|term| {
        CoLocation {
            topology_key: term.topology_key.clone(),
            label_selector: term.label_selector.clone(),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(affinity: &Value, group: Option<&str>) -> Pod {
        let mut pod = json!({
            "metadata": {"name": "a", "labels": {"app": "train", "rev": "7"}},
            "spec": {"containers": [], "affinity": {"podAffinity": affinity}},
        });
        if let Some(group) = group {
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        }
        Pod::of(&serde_json::from_value(pod).unwrap())
    }

    fn required(terms: &Value) -> Value {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": terms})
    }

    fn rack(selector: &Value) -> Value {
        json!({"topologyKey": "rack", "labelSelector": selector})
    }

    fn of(pod: &Pod, topology: Option<&str>) -> Value {
        serde_json::to_value(co_location(pod, topology)).unwrap()
    }

    #[test]
    fn the_first_required_term_names_the_gang() {
        let selector = json!({"matchLabels": {"app": "train"}});
        let terms = json!([rack(&selector), {"topologyKey": "zone", "labelSelector": {}}]);
        assert_eq!(of(&pod(&required(&terms), None), None), rack(&selector));
        let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": rack(&selector)},
        ]});
        assert_eq!(of(&pod(&preferred, None), None), Value::Null);
        let none = json!([{"topologyKey": "rack"}]);
        assert_eq!(of(&pod(&required(&none), None), None), json!({"topologyKey": "rack"}));
    }

    #[test]
    fn label_keys_are_folded_in_once() {
        let folded = json!({
            "matchLabels": {"app": "train"},
            "matchExpressions": [{"key": "rev", "operator": "In", "values": ["7"]}],
        });
        for selector in [&json!({"matchLabels": {"app": "train"}}), &folded] {
            let mut term = rack(selector);
            term["matchLabelKeys"] = json!(["rev", "absent"]);
            assert_eq!(of(&pod(&required(&json!([term])), None), None), rack(&folded));
        }
    }

    #[test]
    fn a_pod_group_with_a_topology_wins() {
        let affinity = required(&json!([rack(&json!({}))]));
        let group = json!({
            "topologyKey": "block",
            "labelSelector": {"matchLabels": {"scheduling.k8s.io/pod-group": "g"}},
        });
        assert_eq!(of(&pod(&affinity, Some("g")), Some("block")), group);
        assert_eq!(of(&pod(&affinity, Some("g")), None), rack(&json!({})));
        assert_eq!(of(&pod(&affinity, None), Some("block")), rack(&json!({})));
    }

    #[test]
    fn empty_and_absent_parts_of_a_selector_are_one() {
        let empty = json!({"matchLabels": {}, "matchExpressions": []});
        let pod = pod(&required(&json!([rack(&empty)])), None);
        assert_eq!(of(&pod, None), rack(&json!({})));
    }
}
