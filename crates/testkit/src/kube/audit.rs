//! Who removed pods, as the server wrote it down.

use std::{io, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

/// A call that takes a pod away, or tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Who called.
    pub user: String,
    /// `delete`, `deletecollection` or `evict`.
    pub verb: String,
    /// Namespace and name; a collection has no name.
    pub pod: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// Deletions and evictions of pods, without their bodies; all else would be too much.
pub(crate) fn policy() -> Value {
    let pods = |names: &[&str], verbs: &[&str]| {
        json!({
            "level": "Metadata",
            "verbs": verbs,
            "resources": [{"group": "", "resources": names}],
        })
    };
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [
            pods(&["pods"], &["delete", "deletecollection"]),
            pods(&["pods/eviction"], &["create"]),
            {"level": "None"},
        ],
    })
}

/// All removals in a log so far; a line that is not whole yet is left for later.
pub(crate) fn removals(log: &Path) -> io::Result<Vec<Removal>> {
    let text = match std::fs::read_to_string(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()).map(own).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    user: User,
    object_ref: Object,
    response_status: Option<Answer>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Object {
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    code: u16,
}

fn own(line: Line) -> Removal {
    let object = line.object_ref;
    let name = |part: Option<String>| part.unwrap_or_default();
    Removal {
        user: line.user.username,
        verb: if object.subresource.is_some() { "evict".to_owned() } else { line.verb },
        pod: format!("{}/{}", name(object.namespace), name(object.name)),
        code: line.response_status.map_or(0, |answer| answer.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_names_who_removed_what() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        assert_eq!(removals(&log).unwrap(), []);
        let line = |verb: &str, object: Value, code: u16| {
            json!({
                "kind": "Event", "stage": "ResponseComplete", "verb": verb,
                "user": {"username": "system:serviceaccount:a:b", "groups": []},
                "objectRef": object, "responseStatus": {"metadata": {}, "code": code},
            })
            .to_string()
        };
        let one = json!({"resource": "pods", "namespace": "n", "name": "p", "apiVersion": "v1"});
        let mut evicted = one.clone();
        evicted["subresource"] = "eviction".into();
        let all = json!({"resource": "pods", "namespace": "n"});
        let lines = [
            line("delete", one, 403),
            line("create", evicted, 201),
            line("deletecollection", all, 200),
            "{\"verb\": \"del".to_owned(),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        let removal = |verb: &str, pod: &str, code| {
            let user = "system:serviceaccount:a:b".to_owned();
            Removal { user, verb: verb.to_owned(), pod: pod.to_owned(), code }
        };
        let expected = [
            removal("delete", "n/p", 403),
            removal("evict", "n/p", 201),
            removal("deletecollection", "n/", 200),
        ];
        assert_eq!(removals(&log).unwrap(), expected);
    }
}
