use std::collections::HashMap;

/// A request's path and query, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// `v1`, `coordination.k8s.io/v1`.
    pub(super) api_version: String,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    pub(super) query: HashMap<String, String>,
}

impl Route {
    /// None where no object can be.
    pub(super) fn parse(path: &str, query: &str) -> Option<Self> {
        let parts: Vec<String> =
            path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (api_version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(*name), None),
            [plural, name, subresource] => (plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self {
            api_version,
            plural: (*plural).to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            query: query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(key, value)| (decode(key), decode(value)))
                .collect(),
        })
    }

    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escaped =
            |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, tail.get(..2).and_then(escaped)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_paths_apart() {
        let route = |path, query| Route::parse(path, query).unwrap();
        let pod = route("/api/v1/namespaces/apps/pods/web/eviction", "");
        assert_eq!(pod.api_version, "v1");
        assert_eq!((pod.namespace.as_deref(), pod.plural.as_str()), (Some("apps"), "pods"));
        assert_eq!(pod.subresource.as_deref(), Some("eviction"));
        let leases = route("/apis/coordination.k8s.io/v1/leases", "limit=5&fieldSelector=a%3Db+c");
        assert_eq!(leases.api_version, "coordination.k8s.io/v1");
        assert_eq!(leases.param("fieldSelector"), Some("a=b c"));
        assert_eq!(leases.name, None);
        let namespace = route("/api/v1/namespaces/apps", "");
        assert_eq!(
            (namespace.plural.as_str(), namespace.name.as_deref()),
            ("namespaces", Some("apps"))
        );
        assert_eq!(Route::parse("/version", ""), None);
    }
}
