//! Requests that bear the label of a pod under another name than theirs.
//!
//! Almost every request is found by its name. The few that are not (an older version's, or
//! made by hand) must be found by the label, or their pod would get a second one.

use std::{collections::HashMap, sync::Arc};

use bigfleet_in_cluster::ObjectKey;

use crate::{existing::Existing, name::request_name};

/// By the UID of the pod.
#[derive(Debug, Default)]
pub(crate) struct Strays(HashMap<Arc<str>, Vec<ObjectKey>>);

impl Strays {
    /// A request came, changed or went.
    pub(crate) fn update(
        &mut self,
        namespace: &Arc<str>,
        before: Option<&Existing>,
        after: Option<&Existing>,
    ) {
        let key =
            |name: &Arc<str>| ObjectKey { namespace: Some(namespace.clone()), name: name.clone() };
        if let Some((uid, name)) = before.and_then(stray)
            && let Some(all) = self.0.get_mut(uid)
        {
            let gone = key(name);
            all.retain(|known| *known != gone);
            if all.is_empty() {
                self.0.remove(uid);
            }
        }
        if let Some((uid, name)) = after.and_then(stray) {
            let all = self.0.entry(uid.clone()).or_default();
            all.push(key(name));
            all.sort_unstable();
        }
    }

    /// Names of those in this namespace, sorted.
    pub(crate) fn of<'a>(
        &'a self,
        namespace: &'a str,
        pod_uid: &str,
    ) -> impl Iterator<Item = &'a str> {
        let all = self.0.get(pod_uid).into_iter().flatten();
        all.filter(move |key| key.namespace.as_deref() == Some(namespace)).map(|key| &*key.name)
    }
}

fn stray(request: &Existing) -> Option<(&Arc<str>, &Arc<str>)> {
    let uid = request.pod_uid.as_ref()?;
    let right = request.pod_name.as_ref().map(|pod| request_name(pod, uid));
    (right.as_deref() != Some(&*request.name)).then_some((uid, &request.name))
}

#[cfg(test)]
mod tests {
    use bigfleet_crds::CapacityRequest;

    use super::*;

    fn request(name: &str) -> Existing {
        let request: CapacityRequest = serde_json::from_value(serde_json::json!({
            "metadata": {
                "name": name,
                "labels": {"bigfleet.lucy.sh/owned-by-pod": "abc"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "abc"},
                ],
            },
            "spec": {"priority": 0, "resources": {}},
        }))
        .unwrap();
        Existing::of(&request).unwrap()
    }

    #[test]
    fn only_those_under_another_name_are_kept() {
        let mut strays = Strays::default();
        let here: Arc<str> = "apps".into();
        for name in ["cr-pod-web-0-ba7816bf8f", "z", "a"] {
            strays.update(&here, None, Some(&request(name)));
            strays.update(&here, Some(&request(name)), Some(&request(name)));
        }
        assert_eq!(strays.of("apps", "abc").collect::<Vec<_>>(), ["a", "z"]);
        assert_eq!(strays.of("other", "abc").count(), 0);
        strays.update(&here, Some(&request("a")), None);
        strays.update(&here, Some(&request("z")), None);
        assert!(strays.0.is_empty());
    }
}
