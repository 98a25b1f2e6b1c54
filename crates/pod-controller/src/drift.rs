//! What a merge patch must say to turn one CapacityRequest into another.

use bigfleet_crds::{CapacityRequest, keys};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// The patch that makes `live` what `wanted` is, in all that we write; none if it is.
#[must_use]
pub fn patch(live: &CapacityRequest, wanted: &CapacityRequest) -> Option<Value> {
    let mut all = Map::new();
    let mut metadata = Map::new();
    for (part, live, wanted, ours) in [
        ("labels", live.labels(), wanted.labels(), &[keys::OWNED_BY_POD, keys::DAEMONSET][..]),
        ("annotations", live.annotations(), wanted.annotations(), &[keys::APPROXIMATED][..]),
    ] {
        let changed: Map<String, Value> = ours
            .iter()
            .filter(|key| live.get(**key) != wanted.get(**key))
            .map(|key| ((*key).to_owned(), json!(wanted.get(*key))))
            .collect();
        if !changed.is_empty() {
            metadata.insert(part.to_owned(), changed.into());
        }
    }
    let owned = |owner: &_| live.owner_references().contains(owner);
    if !wanted.owner_references().iter().all(owned) {
        metadata.insert("ownerReferences".to_owned(), json!(wanted.owner_references()));
    }
    if !metadata.is_empty() {
        all.insert("metadata".to_owned(), metadata.into());
    }
    if let Some(spec) = merge(&json!(live.spec), &json!(wanted.spec)) {
        all.insert("spec".to_owned(), spec);
    }
    (!all.is_empty()).then(|| all.into())
}

/// Members that went away must be named as null, or they stay.
fn merge(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        _ if from == to => None,
        (Value::Object(from), Value::Object(to)) => {
            let gone = from.keys().filter(|key| !to.contains_key(*key));
            let mut changed: Map<String, Value> =
                gone.map(|key| (key.clone(), Value::Null)).collect();
            for (key, to) in to {
                let part = from.get(key).map_or_else(|| Some(to.clone()), |from| merge(from, to));
                changed.extend(part.map(|part| (key.clone(), part)));
            }
            Some(changed.into())
        }
        _ => Some(to.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: Value) -> CapacityRequest {
        serde_json::from_value(value).unwrap()
    }

    fn live() -> Value {
        json!({
            "metadata": {
                "name": "a",
                "labels": {"bigfleet.lucy.sh/owned-by-pod": "u", "theirs": "x"},
                "annotations": {"bigfleet.lucy.sh/approximated": "cores"},
            },
            "spec": {
                "priority": 1,
                "resources": {"cpu": "1", "memory": "1Gi"},
                "requirements": [{"key": "a", "operator": "Exists"}],
                "coLocation": {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}},
            },
        })
    }

    #[test]
    fn nothing_changed_is_no_patch() {
        let mut wanted = live();
        wanted["metadata"]["labels"].as_object_mut().unwrap().remove("theirs");
        assert_eq!(patch(&request(live()), &request(wanted)), None);
    }

    #[test]
    fn what_went_away_is_named() {
        let wanted = json!({
            "metadata": {
                "name": "a",
                "labels": {
                    "bigfleet.lucy.sh/owned-by-pod": "u",
                    "bigfleet.lucy.sh/daemonset": "true",
                },
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
            },
            "spec": {
                "priority": 1,
                "resources": {"cpu": "2"},
                "requirements": [{"key": "b", "operator": "Exists"}],
                "coLocation": {"topologyKey": "rack"},
                "interruptionPenalty": "5",
            },
        });
        let expected = json!({
            "metadata": {
                "labels": {"bigfleet.lucy.sh/daemonset": "true"},
                "annotations": {"bigfleet.lucy.sh/approximated": null},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
            },
            "spec": {
                "resources": {"cpu": "2", "memory": null},
                "requirements": [{"key": "b", "operator": "Exists"}],
                "coLocation": {"labelSelector": null},
                "interruptionPenalty": "5",
            },
        });
        assert_eq!(patch(&request(live()), &request(wanted)), Some(expected));
    }
}
