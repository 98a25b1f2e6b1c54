use serde_json::Value;

/// Which objects a list or watch is about.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Vec<Term>,
    fields: Vec<Term>,
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    pub(super) fn new(namespace: Option<&str>, labels: &str, fields: &str) -> Self {
        let terms = |text| split(text).into_iter().filter_map(term).collect();
        Self {
            labels: terms(labels),
            fields: terms(fields),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Whether objects need not be opened to know.
    pub(super) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object, as it is stored, is selected; the namespace is the caller's to compare.
    pub(super) fn selects(&self, json: &str) -> bool {
        self.is_all() || serde_json::from_str(json).is_ok_and(|object| self.selects_value(&object))
    }

    pub(super) fn selects_value(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"][key].as_str().map(str::to_owned);
        let field = |path: &str| {
            let value = path.split('.').fold(object, |value, part| &value[part]);
            // An absent field reads as empty: `spec.nodeName=` selects unbound pods.
            Some(value.as_str().map_or_else(
                || if value.is_null() { String::new() } else { value.to_string() },
                str::to_owned,
            ))
        };
        self.labels.iter().all(|term| term.holds(label))
            && self.fields.iter().all(|term| term.holds(field))
    }
}

impl Term {
    fn holds(&self, value: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            Self::In(key, values) => value(key).is_some_and(|value| values.contains(&value)),
            Self::NotIn(key, values) => value(key).is_none_or(|value| !values.contains(&value)),
            Self::Exists(key) => value(key).is_some(),
            Self::Absent(key) => value(key).is_none(),
        }
    }
}

/// At commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn term(text: &str) -> Option<Term> {
    let list = |text: &str| -> Vec<String> {
        text.trim()
            .trim_matches(['(', ')'])
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect()
    };
    let key = |text: &str| text.trim().to_owned();
    if let Some((name, values)) = text.split_once(" notin ") {
        return Some(Term::NotIn(key(name), list(values)));
    }
    if let Some((name, values)) = text.split_once(" in ") {
        return Some(Term::In(key(name), list(values)));
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Some(Term::NotIn(key(name), vec![value.to_owned()]));
    }
    if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Term::In(key(name), vec![value.to_owned()]));
    }
    Some(
        text.strip_prefix('!')
            .map_or_else(|| Term::Exists(key(text)), |name| Term::Absent(key(name))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selects_as_the_server_does() {
        let pod = json!({
            "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}},
            "spec": {"nodeName": "node-1", "unschedulable": true},
        });
        for (labels, fields, selected) in [
            ("", "", true),
            ("app=web", "spec.nodeName=node-1", true),
            ("app==web,tier in (front, back)", "", true),
            ("app in (api,db)", "", false),
            ("tier notin (back),!gone,app", "", true),
            ("gone", "", false),
            ("app!=web", "", false),
            ("", "spec.nodeName=", false),
            ("", "status.phase=", true),
            ("", "metadata.name=web,spec.nodeName!=node-2,spec.unschedulable=true", true),
        ] {
            let selector = Selector::new(None, labels, fields);
            assert_eq!(selector.selects(&pod.to_string()), selected, "{labels:?} {fields:?}");
        }
    }
}
