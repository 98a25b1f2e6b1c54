//! Create, update, patch, delete, evict.

use serde_json::{Value, json};

use super::{
    Eviction, answer::Answer, collection::Place, route::Route, selector::Selector, world::World,
};

type Written = Result<Answer, Answer>;

impl World {
    pub(super) fn create(&mut self, route: &Route, body: &[u8]) -> Written {
        let mut object = parse(body)?;
        if route.subresource.as_deref() == Some("eviction") {
            return self.evict(route, &object);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let name = match object["metadata"]["generateName"].as_str() {
            Some(prefix) if name.is_empty() => format!("{prefix}{:05x}", self.next_version()),
            _ => name,
        };
        if name.is_empty() {
            return Err(Answer::refusal(422, "Invalid", "metadata.name: required value"));
        }
        let place = place(route, &name);
        let collection = self.collection(route)?;
        if collection.objects.contains_key(&place) {
            let message = format!("{} \"{name}\" already exists", route.plural);
            return Err(Answer::refusal(409, "AlreadyExists", &message));
        }
        if let Some(fields) = object.as_object_mut() {
            // The status is written through its own door.
            fields.remove("status");
        }
        let mut object = match &collection.defaults {
            Some(defaults) => {
                let mut under = defaults.clone();
                merge(&mut under, &object);
                under
            }
            None => object,
        };
        let metadata = &mut object["metadata"];
        metadata["name"] = name.into();
        if !place.0.is_empty() {
            metadata["namespace"] = place.0.clone().into();
        }
        metadata["generation"] = 1.into();
        metadata["creationTimestamp"] = now();
        metadata["uid"] = format!("uid-{}", self.next_uid()).into();
        let version = self.next_version();
        let text = self.collection(route)?.put(place, object, version);
        Ok(Answer::object(201, &*text))
    }

    pub(super) fn update(&mut self, route: &Route, body: &[u8]) -> Written {
        let wanted = parse(body)?;
        self.change(route, |object| {
            expect_version(&wanted, object)?;
            let metadata = object["metadata"].clone();
            let status = object["status"].clone();
            if route.subresource.as_deref() == Some("status") {
                object["status"] = wanted["status"].clone();
                return Ok(());
            }
            *object = wanted.clone();
            for kept in ["uid", "creationTimestamp", "generation", "resourceVersion", "namespace"] {
                object["metadata"][kept] = metadata[kept].clone();
            }
            object["status"] = status;
            Ok(())
        })
    }

    pub(super) fn patch(&mut self, route: &Route, body: &[u8], kind: &str) -> Written {
        if !kind.contains("merge-patch") {
            let message = format!("only merge patches are understood here, not {kind}");
            return Err(Answer::refusal(415, "UnsupportedMediaType", &message));
        }
        let patch = parse(body)?;
        let through_status = route.subresource.as_deref() == Some("status");
        self.change(route, |object| {
            expect_version(&patch, object)?;
            let before = object.clone();
            merge(object, &patch);
            // Each door changes its own part.
            if through_status {
                let status = object["status"].take();
                *object = before;
                object["status"] = status;
            } else {
                object["status"] = before["status"].clone();
                for kept in ["uid", "name", "namespace", "creationTimestamp", "generation"] {
                    object["metadata"][kept] = before["metadata"][kept].clone();
                }
            }
            Ok(())
        })
    }

    /// Changes an object; one that is as before gets no new version.
    fn change(
        &mut self,
        route: &Route,
        change: impl FnOnce(&mut Value) -> Result<(), Answer>,
    ) -> Written {
        let place = named(route);
        let before = self.object(route)?;
        let mut after = before.clone();
        change(&mut after)?;
        drop_nulls(&mut after);
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if after == before {
            return Ok(Answer::object(200, after.to_string()));
        }
        if after["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
            after["metadata"]["generation"] = (generation + 1).into();
        }
        let version = self.next_version();
        // A pod that waits for its kubelet was never held by a finalizer.
        let released = is_held(&before) && !is_held(&after) && is_terminating(&after);
        let collection = self.collection(route)?;
        let text = collection.put(place.clone(), after, version);
        if released {
            let version = self.next_version();
            self.collection(route)?.remove(&place, version);
        }
        Ok(Answer::object(200, &*text))
    }

    pub(super) fn delete(&mut self, route: &Route, body: &[u8]) -> Written {
        let options = if body.is_empty() { Value::Null } else { parse(body)? };
        if route.name.is_some() {
            return self.delete_one(route, &options);
        }
        let selector = selector(route);
        let names: Vec<Place> = self
            .collection(route)?
            .objects
            .iter()
            .filter(|(place, text)| {
                route.namespace.as_ref().is_none_or(|namespace| *namespace == place.0)
                    && selector.selects(text)
            })
            .map(|(place, _)| place.clone())
            .collect();
        for (namespace, name) in names {
            let one = Route {
                namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
                name: Some(name),
                ..route.clone()
            };
            self.delete_one(&one, &options)?;
        }
        Ok(Answer::success())
    }

    fn delete_one(&mut self, route: &Route, options: &Value) -> Written {
        let object = self.object(route)?;
        let preconditions = &options["preconditions"];
        for key in ["uid", "resourceVersion"] {
            let (wanted, got) = (&preconditions[key], &object["metadata"][key]);
            if !wanted.is_null() && wanted != got {
                let message = format!("precondition failed: {key} is {got}, not {wanted}");
                return Err(Answer::refusal(409, "Conflict", &message));
            }
        }
        let grace = options["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64())
            .unwrap_or(30);
        let bound = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let lingers = self.linger && route.plural == "pods" && bound && grace > 0;
        if lingers || is_held(&object) {
            return self.change(route, |object| {
                if !is_terminating(object) {
                    object["metadata"]["deletionTimestamp"] = now();
                    object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
                }
                Ok(())
            });
        }
        let place = named(route);
        let version = self.next_version();
        self.collection(route)?.remove(&place, version);
        Ok(Answer::object(200, object.to_string()))
    }

    fn evict(&mut self, route: &Route, eviction: &Value) -> Written {
        let pod = Route { subresource: None, ..route.clone() };
        let object = self.object(&pod)?;
        let verdict = self.evictions.as_mut().map_or(Eviction::Allow, |rule| rule(&object));
        match verdict {
            Eviction::Allow => {
                self.delete_one(&pod, &eviction["deleteOptions"])?;
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
                Ok(Answer::object(201, status.to_string()))
            }
            Eviction::Budget => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
                    "reason": "TooManyRequests",
                    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                    "details": {"causes": [{
                        "reason": "DisruptionBudget",
                        "message": "The disruption budget needs more healthy pods",
                    }]},
                });
                Err(Answer::object(429, status.to_string()))
            }
            Eviction::Refuse(code) => Err(Answer::refusal(code, "Refused", "eviction refused")),
        }
    }
}

pub(super) fn selector(route: &Route) -> Selector {
    let text = |name| route.param(name).unwrap_or_default();
    Selector::new(route.namespace.as_deref(), text("labelSelector"), text("fieldSelector"))
}

fn parse(body: &[u8]) -> Result<Value, Answer> {
    serde_json::from_slice(body)
        .map_err(|error| Answer::refusal(400, "BadRequest", &format!("body: {error}")))
}

fn place(route: &Route, name: &str) -> Place {
    (route.namespace.clone().unwrap_or_default(), name.to_owned())
}

pub(super) fn named(route: &Route) -> Place {
    place(route, route.name.as_deref().unwrap_or_default())
}

fn now() -> Value {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn expect_version(wanted: &Value, object: &Value) -> Result<(), Answer> {
    for key in ["resourceVersion", "uid"] {
        let (wanted, got) = (&wanted["metadata"][key], &object["metadata"][key]);
        if !wanted.is_null() && wanted != got {
            let message = format!("the object has been modified: {key} is {got}, not {wanted}");
            return Err(Answer::refusal(409, "Conflict", &message));
        }
    }
    Ok(())
}

/// RFC 7386.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Reading a missing field of a `Value` to write it elsewhere leaves a null.
fn drop_nulls(object: &mut Value) {
    for part in [None, Some("metadata")] {
        let part = match part {
            None => &mut *object,
            Some(name) => &mut object[name],
        };
        if let Some(fields) = part.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_as_the_rfc_says() {
        for (mut target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": 1}), json!({"a": null}), json!({"b": 1})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            merge(&mut target, &patch);
            assert_eq!(target, result, "{patch}");
        }
    }
}
