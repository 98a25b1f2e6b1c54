//! List, watch, list again.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures_util::StreamExt;
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event},
};
use serde::de::DeserializeOwned;

use super::{
    State, Store,
    key::{KeyRef, Namespaces},
    table::Items,
};
use crate::refusal;

/// Objects per page: their raw form is in memory only that many at a time.
const PAGE: u32 = 500;

/// The server ends each watch after this many seconds and it is resumed where it ended. A
/// connection that died unseen is noticed five seconds later.
const WATCH_SECONDS: u32 = 55;

/// How long a page of a list may take; the server itself gives up after a minute.
const PAGE_WITHIN: Duration = Duration::from_secs(90);

/// Between two looks for a resource that is not there.
const MISSING_RETRY: Duration = Duration::from_secs(5);

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Which objects of a resource a store follows.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// A label selector as `kubectl -l` takes it.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

impl Selection {
    /// All objects.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default().page_size(PAGE).timeout(WATCH_SECONDS);
        config.label_selector.clone_from(&self.labels);
        config.field_selector.clone_from(&self.fields);
        config
    }
}

pub(super) async fn follow<K, P>(
    store: &Store<P>,
    api: Api<K>,
    selection: Selection,
    mut project: impl FnMut(&K) -> Option<P> + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    P: PartialEq + Send + Sync + 'static,
{
    let mut list = List { namespaces: Namespaces::default(), fresh: None };
    let mut retry = Retry::default();
    loop {
        list.fresh = None;
        let mut events = pin!(watcher::watcher(api.clone(), selection.config()));
        loop {
            let event = if list.fresh.is_some() {
                tokio::time::timeout(PAGE_WITHIN, events.next()).await
            } else {
                Ok(events.next().await)
            };
            let error = match event {
                Ok(Some(Ok(event))) => {
                    if list.apply(store, event, &mut project) {
                        retry.reset();
                    }
                    continue;
                }
                Ok(Some(Err(error))) => Trouble::from(&error),
                Ok(None) => break,
                Err(_) => Trouble { list_again: true, ..Trouble::silence() },
            };
            let wait = retry.after(&error);
            error.tell(store, wait);
            tokio::time::sleep(wait).await;
            if error.list_again {
                break;
            }
        }
    }
}

/// What of a list has come so far.
struct List<P> {
    namespaces: Namespaces,
    fresh: Option<Items<P>>,
}

impl<P: PartialEq + Send + Sync + 'static> List<P> {
    /// Whether the server has shown that it follows.
    fn apply<K: Resource>(
        &mut self,
        store: &Store<P>,
        event: Event<K>,
        project: &mut impl FnMut(&K) -> Option<P>,
    ) -> bool {
        match event {
            Event::Init => self.fresh = Some(Items::default()),
            Event::InitApply(object) => self.collect(store, &object, project(&object)),
            Event::InitDone => {
                let Some(mut fresh) = self.fresh.take() else { return false };
                fresh.shrink_to_fit();
                drop(store.write(|table| table.swap(fresh)));
                self.namespaces.prune();
                store.stand(State::Synced, None);
                tracing::debug!(what = store.shared.what, objects = store.len(), "listed");
            }
            Event::Apply(object) => {
                let key = KeyRef::of(&object);
                match project(&object) {
                    Some(value) => {
                        let key = self.namespaces.key(key);
                        store.write(|table| table.put(key, value));
                    }
                    None => store.write(|table| table.remove(key)),
                }
                store.stand(State::Synced, None);
            }
            Event::Delete(object) => {
                store.write(|table| table.remove(KeyRef::of(&object)));
                store.stand(State::Synced, None);
            }
        }
        self.fresh.is_none()
    }

    /// Takes over what is known where it is the same: a list beside the last one then costs
    /// little more than its table.
    fn collect<K: Resource>(&mut self, store: &Store<P>, object: &K, value: Option<P>) {
        let (Some(value), Some(fresh)) = (value, &mut self.fresh) else { return };
        let key = KeyRef::of(object);
        let known = store.read(|table| {
            let (key, known) = table.entry(key)?;
            Some((key.clone(), (**known == value).then(|| known.clone())))
        });
        let (key, known) = known.unwrap_or_else(|| (self.namespaces.key(key), None));
        fresh.insert(key, known.unwrap_or_else(|| value.into()));
    }
}

/// Why the server cannot be followed just now.
struct Trouble {
    problem: String,
    missing: bool,
    list_again: bool,
    asked: Option<Duration>,
}

impl Trouble {
    fn silence() -> Self {
        let problem = "the server does not go on with a list".to_owned();
        Self { problem, missing: false, list_again: false, asked: None }
    }

    fn from(error: &watcher::Error) -> Self {
        let answer = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => refusal::code(error),
            watcher::Error::WatchError(status) => Some(status.code),
            watcher::Error::NoResourceVersion => None,
        };
        let asked = match error {
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
                refusal::retry_after(error)
            }
            _ => None,
        };
        Self {
            problem: error.to_string(),
            missing: answer == Some(404),
            // A watch that is refused for its age would be asked for again for ever.
            list_again: matches!(answer, Some(404 | 410)),
            asked,
        }
    }

    fn tell<P: PartialEq + Send + Sync + 'static>(&self, store: &Store<P>, wait: Duration) {
        let (what, problem) = (&store.shared.what, &self.problem);
        let first = store.problem().is_none();
        let state = if self.missing { State::Missing } else { store.state() };
        store.stand(state, Some(self.problem.clone()));
        if first {
            tracing::warn!(what, problem, retry_ms = wait.as_millis(), "cannot follow the server");
        } else {
            tracing::debug!(what, problem, retry_ms = wait.as_millis(), "still cannot follow");
        }
    }
}

/// How long to leave the server alone.
#[derive(Default)]
struct Retry {
    failures: u32,
}

impl Retry {
    fn reset(&mut self) {
        self.failures = 0;
    }

    fn after(&mut self, trouble: &Trouble) -> Duration {
        if trouble.missing {
            return MISSING_RETRY;
        }
        let longest = LAST_RETRY.min(FIRST_RETRY * (1 << self.failures.min(6)));
        self.failures += 1;
        let spread = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        longest.mul_f64(0.5 + spread / 2.0).max(trouble.asked.unwrap_or_default())
    }
}
