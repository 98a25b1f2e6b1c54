//! `--unmanaged-node-selector`: a label selector as kubectl writes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use kube::core::{Expression, Selector, SelectorExt};

/// Which nodes are none of ours. Empty: none is.
#[derive(Clone, Debug, Default)]
pub struct NodeSelector(Option<Selector>);

impl NodeSelector {
    /// Whether these are the labels of such a node.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// As the API server reads it; none if no node is selected.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.0.as_ref().map(ToString::to_string)
    }
}

impl FromStr for NodeSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self(None));
        }
        let expressions = split(text).into_iter().map(expression);
        let expressions = expressions.collect::<Result<Vec<_>, _>>()?;
        Ok(Self(Some(expressions.into_iter().collect())))
    }
}

/// At commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        inside = match c {
            '(' => true,
            ')' => false,
            _ => inside,
        };
        c == ',' && !inside
    })
    .map(str::trim)
    .collect()
}

fn expression(text: &str) -> Result<Expression, String> {
    let equality = [("!=", false), ("==", true), ("=", true)];
    if let Some((left, right, equal)) = equality
        .into_iter()
        .find_map(|(sign, equal)| text.split_once(sign).map(|(left, right)| (left, right, equal)))
    {
        let (key, value) = (key(left, text)?, value(right, text)?);
        return Ok(if equal {
            Expression::Equal(key, value)
        } else {
            Expression::NotEqual(key, value)
        });
    }
    if let Some((left, set)) = text.split_once('(') {
        let set = set.strip_suffix(')').ok_or_else(|| wrong(text))?;
        let values =
            set.split(',').map(|one| value(one, text)).collect::<Result<BTreeSet<_>, _>>()?;
        return match left.trim().rsplit_once(char::is_whitespace) {
            Some((left, "in")) => Ok(Expression::In(key(left, text)?, values)),
            Some((left, "notin")) => Ok(Expression::NotIn(key(left, text)?, values)),
            _ => Err(wrong(text)),
        };
    }
    match text.strip_prefix('!') {
        Some(absent) => Ok(Expression::DoesNotExist(key(absent, text)?)),
        None => Ok(Expression::Exists(key(text, text)?)),
    }
}

fn key(text: &str, whole: &str) -> Result<String, String> {
    let text = text.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let fits = !text.is_empty() && text.chars().all(legal) && text.matches('/').count() <= 1;
    if fits { Ok(text.to_owned()) } else { Err(wrong(whole)) }
}

fn value(text: &str, whole: &str) -> Result<String, String> {
    let text = text.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if text.chars().all(legal) && text.len() <= 63 {
        Ok(text.to_owned())
    } else {
        Err(wrong(whole))
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?} is not a label selector; write for example key, key=value or key in (a,b)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_as_kubectl_does() {
        let labels = [("zone", "a"), ("node-role.kubernetes.io/control-plane", "")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        for (text, expected) in [
            ("", false),
            (" ", false),
            ("node-role.kubernetes.io/control-plane", true),
            ("!node-role.kubernetes.io/control-plane", false),
            ("zone=a", true),
            ("zone == a", true),
            ("zone!=a", false),
            ("zone!=b", true),
            ("absent!=b", true),
            ("zone in (a, b)", true),
            ("zone in (b,c),zone", false),
            ("zone notin (b,c), zone", true),
            ("zone=a,absent", false),
            ("absent notin (a)", true),
            ("node-role.kubernetes.io/control-plane=", true),
        ] {
            let selector: NodeSelector = text.parse().unwrap();
            assert_eq!(selector.matches(&labels), expected, "{text:?}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "a,",
            ",a",
            "a b",
            "a in b",
            "a in (b",
            "in (b)",
            "a within (b)",
            "=a",
            "!",
            "a=b c",
            "a/b/c",
            "a>5",
        ] {
            let error = text.parse::<NodeSelector>().unwrap_err();
            assert!(error.contains("write for example"), "{text:?}: {error}");
        }
    }
}
