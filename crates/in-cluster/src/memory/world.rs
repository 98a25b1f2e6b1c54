use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{
    Call, Eviction,
    answer::Answer,
    collection::{Collection, Place},
    fault::{Fault, Verb},
    route::Route,
    write::{named, selector},
};

/// Decides over the eviction of a pod.
pub(super) type EvictionRule = Box<dyn FnMut(&Value) -> Eviction + Send>;

/// Every object there is.
pub(super) struct World {
    version: u64,
    uids: u64,
    /// By API version and plural name.
    pub(super) collections: HashMap<(String, String), Collection>,
    pub(super) faults: Vec<Fault>,
    pub(super) away: bool,
    /// Deleted pods stay until they are deleted without grace, as under a kubelet.
    pub(super) linger: bool,
    pub(super) evictions: Option<EvictionRule>,
    pub(super) counts: BTreeMap<(Verb, String), u64>,
    pub(super) calls: Option<Vec<Call>>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            version: 1,
            uids: 0,
            collections: HashMap::new(),
            faults: Vec::new(),
            away: false,
            linger: false,
            evictions: None,
            counts: BTreeMap::new(),
            calls: None,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub(super) fn next_uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    pub(super) fn collection(&mut self, route: &Route) -> Result<&mut Collection, Answer> {
        let key = (route.api_version.clone(), route.plural.clone());
        let known = self.collections.get_mut(&key).filter(|collection| !collection.gone);
        known.ok_or_else(|| Answer::object(404, "404 page not found\n"))
    }

    pub(super) fn object(&mut self, route: &Route) -> Result<Value, Answer> {
        let place = named(route);
        let text = self.collection(route)?.objects.get(&place).cloned();
        let text = text.ok_or_else(|| {
            let message = format!("{} \"{}\" not found", route.plural, place.1);
            Answer::refusal(404, "NotFound", &message)
        })?;
        serde_json::from_str(&text)
            .map_err(|error| Answer::refusal(500, "InternalError", &error.to_string()))
    }

    /// A page of a list. Later pages show what is there now, under the version of the first: who
    /// watches from it sees every change that a page has missed or shown early.
    pub(super) fn list(&mut self, route: &Route) -> Result<Answer, Answer> {
        let limit = route.param("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
        let (mut version, mut after) = (self.version, None::<Place>);
        if let Some((first, place)) = route.param("continue").and_then(token) {
            (version, after) = (first, Some(place));
        }
        let selector = selector(route);
        let collection = self.collection(route)?;
        if version < collection.compacted() {
            return Err(Answer::refusal(410, "Expired", "the continue token has expired"));
        }
        let mut items = Vec::new();
        let mut token = String::new();
        let range = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let mut last: Option<&Place> = None;
        for (place, text) in collection.objects.range((range, std::ops::Bound::Unbounded)) {
            let elsewhere =
                selector.namespace.as_ref().is_some_and(|namespace| *namespace != place.0);
            if elsewhere || !selector.selects(text) {
                continue;
            }
            if let Some((namespace, name)) = last.filter(|_| items.len() == limit) {
                token = format!("{version}/{namespace}/{name}");
                break;
            }
            last = Some(place);
            items.push(&**text);
        }
        let body = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\
             \"metadata\":{{\"resourceVersion\":\"{version}\",\"continue\":\"{token}\"}},\
             \"items\":[{}]}}",
            collection.kind,
            route.api_version,
            items.join(",")
        );
        Ok(Answer::object(200, body))
    }
}

fn token(text: &str) -> Option<(u64, Place)> {
    let mut parts = text.splitn(3, '/');
    let version = parts.next()?.parse().ok()?;
    Some((version, (parts.next()?.to_owned(), parts.next()?.to_owned())))
}
