//! Demand as it stands, one step of the cache at a time.

use std::sync::Arc;

use bigfleet_crds::conditions;
use bigfleet_in_cluster::{Change, ObjectKey};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::{
    fold::Fold,
    identity::NeedIdentity,
    message::RollUp,
    request::{Phase, Request},
    skipped::Untranslatable,
    uid::Uid,
};

/// A request that waits to be acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name.
    pub uid: Uid,
}

/// A generation of a request that cannot be translated, met for the first time.
#[derive(Clone, Debug)]
pub struct News {
    /// Where it is.
    pub key: ObjectKey,
    /// Of the spec at fault.
    pub generation: i64,
    /// What is wrong with it.
    pub why: Arc<Untranslatable>,
}

/// Follows the cache of requests: the fold of all, and which of them are to be told
/// something.
#[derive(Debug)]
pub struct Ledger {
    fold: Fold,
    /// Whether a whole list has been taken in. Before that there is no telling demand
    /// from nothing.
    synced: bool,
    /// Those in roll-ups whose phase is Pending.
    pending: HashMap<ObjectKey, Uid, RandomState>,
    candidates: Option<Arc<[Candidate]>>,
    /// Those whose condition `Translatable` does not tell the truth.
    misfits: HashSet<ObjectKey, RandomState>,
    /// Of each the newest: on a standby nobody takes them.
    news: HashMap<ObjectKey, News, RandomState>,
    acknowledged: usize,
    departures: u64,
}

impl Ledger {
    /// Nothing known yet.
    #[must_use]
    pub fn new(cluster: &str) -> Self {
        Self {
            fold: Fold::new(cluster),
            synced: false,
            pending: HashMap::default(),
            candidates: None,
            misfits: HashSet::default(),
            news: HashMap::default(),
            acknowledged: 0,
            departures: 0,
        }
    }

    /// Takes in one step of the cache, whole.
    pub fn apply(&mut self, change: &Change<Request>) {
        match change {
            Change::Put { key, before, after } => self.put(key, before.as_deref(), after),
            Change::Gone { key, before } => self.gone(key, before),
            Change::Swapped(changes) => {
                changes.iter().for_each(|change| self.apply(change));
                self.synced = true;
            }
        }
    }

    fn put(&mut self, key: &ObjectKey, before: Option<&Request>, after: &Request) {
        match before {
            Some(before) => {
                self.fold.replace(before, after);
                self.acknowledged -= usize::from(before.phase == Phase::Acknowledged);
                self.departures += u64::from(!before.counts_as(after));
            }
            None => self.fold.add(after),
        }
        self.acknowledged += usize::from(after.phase == Phase::Acknowledged);
        let pending = after.phase == Phase::Pending && after.demand.is_ok();
        let known = if pending {
            self.pending.insert(key.clone(), after.uid) == Some(after.uid)
        } else {
            self.pending.remove(key).is_none()
        };
        if !known {
            self.candidates = None;
        }
        if is_misfit(after) {
            self.misfits.insert(key.clone());
        } else {
            self.misfits.remove(key);
        }
        if let Err(why) = &after.demand {
            let known = before.is_some_and(|before| {
                before.uid == after.uid
                    && before.generation == after.generation
                    && before.demand.is_err()
            });
            if !known {
                let (key, why) = (key.clone(), why.clone());
                let news = News { key: key.clone(), generation: after.generation, why };
                self.news.insert(key, news);
            }
        } else {
            self.news.remove(key);
        }
    }

    fn gone(&mut self, key: &ObjectKey, before: &Request) {
        self.fold.remove(before);
        self.departures += 1;
        self.acknowledged -= usize::from(before.phase == Phase::Acknowledged);
        if self.pending.remove(key).is_some() {
            self.candidates = None;
        }
        self.misfits.remove(key);
        self.news.remove(key);
    }

    /// Whether a whole list has been taken in.
    #[must_use]
    pub const fn is_synced(&self) -> bool {
        self.synced
    }

    /// All requests.
    #[must_use]
    pub const fn requests(&self) -> usize {
        self.fold.requests()
    }

    /// Requests that are acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// Rises whenever a request is taken back or changed.
    #[must_use]
    pub const fn departures(&self) -> u64 {
        self.departures
    }

    /// The whole demand as of now.
    pub fn build(&mut self, timestamp: i64) -> RollUp {
        self.fold.build(timestamp)
    }

    /// The identities that a roll-up of now names.
    pub fn identities(&self) -> impl Iterator<Item = &Arc<NeedIdentity>> {
        self.fold.identities()
    }

    /// Differs when [`Ledger::identities`] may differ.
    #[must_use]
    pub const fn shape(&self) -> (u64, bool) {
        self.fold.shape()
    }

    /// The requests in a roll-up of now that wait to be acknowledged.
    pub fn candidates(&mut self) -> Arc<[Candidate]> {
        if self.fold.is_daemonsets_only() {
            return Arc::new([]);
        }
        let pending = &self.pending;
        self.candidates
            .get_or_insert_with(|| {
                let candidate =
                    |(key, uid): (&ObjectKey, &Uid)| Candidate { key: key.clone(), uid: *uid };
                pending.iter().map(candidate).collect()
            })
            .clone()
    }

    /// The requests whose condition `Translatable` is to be written.
    pub fn misfits(&self) -> impl Iterator<Item = &ObjectKey> {
        self.misfits.iter()
    }

    /// What could not be translated, each generation once.
    pub fn take_news(&mut self) -> Vec<News> {
        self.news.drain().map(|(_, news)| news).collect()
    }
}

/// A condition that says False while the request is understood, or none that says so
/// of this generation while it is not.
fn is_misfit(request: &Request) -> bool {
    let told = request.condition(conditions::TRANSLATABLE);
    match &request.demand {
        Ok(_) => told.is_some_and(|told| !told.is_true()),
        Err(why) => !told.is_some_and(|told| {
            !told.is_true()
                && told.observed_generation == Some(request.generation)
                && *told.message == *why.to_string()
        }),
    }
}
