use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;
use tokio::sync::watch;

use super::selector::Selector;

/// Changes that are remembered for watches; who is further behind must list again.
const HISTORY: usize = 20_000;

/// Namespace (empty for objects of the cluster) and name.
pub(super) type Place = (String, String);

/// The objects of one resource, as text: a quarter of a million of them must fit.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) kind: String,
    /// Laid under every new object.
    pub(super) defaults: Option<Value>,
    pub(super) objects: BTreeMap<Place, Arc<str>>,
    log: VecDeque<Entry>,
    /// A watch from before this version has missed something.
    compacted: u64,
    pub(super) round: watch::Sender<Round>,
    /// Served no more; watches end when they have seen everything.
    pub(super) gone: bool,
}

/// What watches wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    version: u64,
    /// Watches that began under an earlier number end.
    pub(super) cuts: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    version: u64,
    place: Place,
    before: Option<Arc<str>>,
    after: Option<Arc<str>>,
    /// The object as a DELETED event shows it.
    last: Option<Arc<str>>,
}

/// A watch asked for a version that is no longer there.
#[derive(Debug)]
pub(super) struct Expired;

impl Collection {
    pub(super) fn new(kind: &str, defaults: Option<Value>, version: u64) -> Self {
        Self {
            kind: kind.to_owned(),
            defaults,
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            compacted: version,
            round: watch::Sender::new(Round { version, cuts: 0 }),
            gone: false,
        }
    }

    /// Writes an object at a version; the text it is kept as.
    pub(super) fn put(&mut self, place: Place, mut object: Value, version: u64) -> Arc<str> {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let text: Arc<str> = object.to_string().into();
        let before = self.objects.insert(place.clone(), text.clone());
        self.tell(Entry { version, place, before, after: Some(text.clone()), last: None });
        text
    }

    pub(super) fn remove(&mut self, place: &Place, version: u64) {
        let Some(before) = self.objects.remove(place) else { return };
        let last = with_version(&before, version);
        let place = place.clone();
        self.tell(Entry { version, place, before: Some(before), after: None, last: Some(last) });
    }

    fn tell(&mut self, entry: Entry) {
        let version = entry.version;
        self.log.push_back(entry);
        if self.log.len() > HISTORY
            && let Some(oldest) = self.log.pop_front()
        {
            self.compacted = oldest.version;
        }
        self.round.send_modify(|round| round.version = version);
    }

    /// Forgets all changes up to now.
    pub(super) fn compact(&mut self, version: u64) {
        self.log.clear();
        self.compacted = version;
    }

    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Ends every watch.
    pub(super) fn cut(&self) {
        self.round.send_modify(|round| round.cuts += 1);
    }

    /// All objects as a watch tells them that starts from nothing.
    pub(super) fn opening(&self, selector: &Selector) -> String {
        let elsewhere = |place: &Place| {
            selector.namespace.as_ref().is_some_and(|namespace| *namespace != place.0)
        };
        self.objects
            .iter()
            .filter(|(place, text)| !elsewhere(place) && selector.selects(text))
            .map(|(_, text)| format!("{{\"type\":\"ADDED\",\"object\":{text}}}\n"))
            .collect()
    }

    /// Watch events after a version, as lines, and the version they lead to.
    pub(super) fn since(
        &self,
        version: u64,
        selector: &Selector,
    ) -> Result<(Vec<String>, u64), Expired> {
        if version < self.compacted {
            return Err(Expired);
        }
        let start = self.log.partition_point(|entry| entry.version <= version);
        let lines = self.log.range(start..).filter_map(|entry| entry.line(selector)).collect();
        let reached = self.log.back().map_or(version, |entry| entry.version.max(version));
        Ok((lines, reached))
    }
}

impl Entry {
    /// As one who watches a selection sees it: what leaves the selection is gone for him.
    fn line(&self, selector: &Selector) -> Option<String> {
        if selector.namespace.as_ref().is_some_and(|namespace| *namespace != self.place.0) {
            return None;
        }
        let selected = |text: &&Arc<str>| selector.selects(text);
        let before = self.before.as_ref().filter(selected);
        let after = self.after.as_ref().filter(selected);
        let (kind, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => ("ADDED", after.clone()),
            (Some(_), Some(after)) => ("MODIFIED", after.clone()),
            (Some(before), None) => {
                let last = self.last.clone();
                ("DELETED", last.unwrap_or_else(|| with_version(before, self.version)))
            }
        };
        Some(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
    }
}

fn with_version(text: &Arc<str>, version: u64) -> Arc<str> {
    match serde_json::from_str::<Value>(text) {
        Ok(mut object) => {
            object["metadata"]["resourceVersion"] = version.to_string().into();
            object.to_string().into()
        }
        Err(_) => text.clone(),
    }
}
