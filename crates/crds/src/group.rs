//! The identity of a co-location group.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Canonical text of a co-location group: `topologyKey NUL selector NUL namespace`.
///
/// The namespace is part of it because affinity terms are namespace-scoped:
/// equal selectors in two namespaces are two gangs. An empty topology key is
/// no group, and gives an empty text.
pub fn group_text(topology_key: &str, selector: Option<&LabelSelector>, namespace: &str) -> String {
    if topology_key.is_empty() {
        return String::new();
    }
    let selector = selector.map(selector_text).unwrap_or_default();
    format!("{topology_key}\0{selector}\0{namespace}")
}

fn selector_text(selector: &LabelSelector) -> String {
    let mut text = String::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        text.extend([key, "=", value, ","]);
    }
    text.push(';');
    let mut expressions: Vec<(&str, &str, String)> = selector
        .match_expressions
        .iter()
        .flatten()
        .map(|expression| {
            let mut values = expression.values.clone().unwrap_or_default();
            values.sort_unstable();
            (expression.key.as_str(), expression.operator.as_str(), values.join(","))
        })
        .collect();
    expressions.sort_unstable();
    for (key, operator, values) in &expressions {
        text.extend([key, " ", operator, " ", values, ";"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(selector: serde_json::Value) -> String {
        let selector: Option<LabelSelector> = serde_json::from_value(selector).unwrap();
        group_text("rack", selector.as_ref(), "team-a")
    }

    #[test]
    fn the_text_is_exact() {
        assert_eq!(text(json!(null)), "rack\0\0team-a");
        assert_eq!(text(json!({})), "rack\0;\0team-a");
        assert_eq!(
            text(json!({"matchLabels": {"job": "train", "app": "llm"}})),
            "rack\0app=llm,job=train,;\0team-a"
        );
        assert_eq!(
            text(json!({
                "matchLabels": {"b": "2", "a": "1"},
                "matchExpressions": [
                    {"key": "y", "operator": "Exists"},
                    {"key": "x", "operator": "NotIn", "values": ["q"]},
                    {"key": "x", "operator": "In", "values": ["r", "p"]},
                    {"key": "x", "operator": "In", "values": ["o"]},
                ],
            })),
            "rack\0a=1,b=2,;x In o;x In p,r;x NotIn q;y Exists ;\0team-a"
        );
    }

    #[test]
    fn order_on_input_does_not_matter() {
        let one = json!({"matchExpressions": [
            {"key": "a", "operator": "In", "values": ["1", "2"]},
            {"key": "b", "operator": "DoesNotExist"},
        ]});
        let other = json!({"matchExpressions": [
            {"key": "b", "operator": "DoesNotExist", "values": []},
            {"key": "a", "operator": "In", "values": ["2", "1"]},
        ]});
        assert_eq!(text(one), text(other));
    }

    #[test]
    fn namespaces_are_kept_apart_and_no_key_is_no_group() {
        assert_ne!(group_text("rack", None, "a"), group_text("rack", None, "b"));
        assert_eq!(group_text("", Some(&LabelSelector::default()), "a"), "");
    }
}
