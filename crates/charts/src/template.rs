//! `%{parameter}` and `@{column}` of the source file.

use std::collections::BTreeMap;

use crate::{
    Error,
    source::{Alert, Parameter},
};

/// Replaces each `<mark>{name}`; an unknown name is an error.
fn fill(text: &str, mark: char, value: impl Fn(&str) -> Option<String>) -> Result<String, Error> {
    let open = format!("{mark}{{");
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((name, after)) = after.split_once('}') else {
            return Err(Error::Source(format!("{open} without a closing brace in: {text}")));
        };
        let Some(value) = value(name) else {
            return Err(Error::Source(format!("{open}{name}}} is not declared; used in: {text}")));
        };
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// With samples in place of parameters.
pub(crate) fn samples(
    parameters: &BTreeMap<String, Parameter>,
    text: &str,
) -> Result<String, Error> {
    fill(text, '%', |name| {
        parameters.get(name).map(|parameter| match &parameter.sample {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    })
}

/// As a Helm template: parameters become pipelines, and braces that Prometheus is to read are
/// printed by Helm.
pub(crate) fn helm(parameters: &BTreeMap<String, Parameter>, text: &str) -> Result<String, Error> {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("}}")).min() {
        let (before, after) = rest.split_at(at);
        let (braces, after) = after.split_at(2);
        escaped.push_str(before);
        escaped.push_str("{{ `");
        escaped.push_str(braces);
        escaped.push_str("` }}");
        rest = after;
    }
    escaped.push_str(rest);
    fill(&escaped, '%', |name| {
        parameters.get(name).map(|parameter| format!("{{{{ {} }}}}", parameter.helm))
    })
}

/// The rules, once for each row of the columns.
pub(crate) fn each(
    columns: &BTreeMap<String, Vec<String>>,
    rules: &[Alert],
) -> Result<Vec<Alert>, Error> {
    let Some(rows) = columns.values().map(Vec::len).max() else {
        return Ok(rules.to_vec());
    };
    if columns.values().any(|column| column.len() != rows) {
        return Err(Error::Source("columns of each have unequal lengths".to_owned()));
    }
    let mut repeated = Vec::with_capacity(rows * rules.len());
    for row in 0..rows {
        let value = |name: &str| columns.get(name).map(|column| column[row].clone());
        for rule in rules {
            let mut rule = rule.clone();
            rule.expr = fill(&rule.expr, '@', value)?;
            rule.summary = fill(&rule.summary, '@', value)?;
            for label in rule.labels.values_mut() {
                *label = fill(label, '@', value)?;
            }
            repeated.push(rule);
        }
    }
    Ok(repeated)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parameters() -> BTreeMap<String, Parameter> {
        let parameter = Parameter { helm: ".Values.n".to_owned(), sample: 3.into() };
        BTreeMap::from([("n".to_owned(), parameter)])
    }

    #[test]
    fn parameters_become_samples_or_pipelines() {
        assert_eq!(samples(&parameters(), "x > %{n}").unwrap(), "x > 3");
        assert_eq!(helm(&parameters(), "x > %{n}").unwrap(), "x > {{ .Values.n }}");
        assert!(samples(&parameters(), "%{m}").unwrap_err().to_string().contains("%{m} is not"));
    }

    #[test]
    fn helm_prints_the_braces_of_others() {
        assert_eq!(
            helm(&parameters(), "{{ $value }} of %{n}").unwrap(),
            "{{ `{{` }} $value {{ `}}` }} of {{ .Values.n }}"
        );
    }
}
