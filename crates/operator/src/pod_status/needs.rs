//! How needs stand, by what the shard said in this session.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_model::unmet;
use bigfleet_wire::v1alpha1::NeedStatusUpdate;
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use tokio::time::Instant;

/// A need that was short is looked after for this long when it no longer is.
const LINGER: Duration = Duration::from_secs(60);

/// How one need stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Why it is unmet, in the words of the wire; none if it is met.
    pub unmet: Option<NeedStatusUpdate>,
    /// Machines on their way to it.
    pub coming: i32,
}

/// A need: fingerprint and group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NeedKey {
    /// Of the profile.
    pub fingerprint: Box<str>,
    /// The gang, or empty.
    pub group: Box<str>,
}

/// A need by borrowed texts; hashes alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NeedRef<'a> {
    pub(super) fingerprint: &'a str,
    pub(super) group: &'a str,
}

impl Equivalent<NeedKey> for NeedRef<'_> {
    fn equivalent(&self, key: &NeedKey) -> bool {
        self.fingerprint == &*key.fingerprint && self.group == &*key.group
    }
}

/// All needs that the shard spoke of. Memory only; forgotten at disconnect.
#[derive(Debug, Default)]
pub struct Needs {
    known: Mutex<HashMap<NeedKey, Entry, RandomState>>,
}

#[derive(Debug)]
struct Entry {
    standing: Standing,
    /// When it was last unmet or had machines coming.
    wanting: Instant,
}

impl Standing {
    fn is_wanting(&self) -> bool {
        self.unmet.is_some() || self.coming > 0
    }
}

impl Needs {
    fn known(&self) -> MutexGuard<'_, HashMap<NeedKey, Entry, RandomState>> {
        // Every change is complete, so a poisoned lock guards good data.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard spoke of a need.
    pub fn heard(&self, frame: NeedStatusUpdate) {
        let key = NeedKey {
            fingerprint: frame.profile_fingerprint.as_str().into(),
            group: frame.group.as_str().into(),
        };
        let coming = frame.machines_coming.max(0);
        let unmet = (!frame.satisfied).then_some(frame);
        let standing = Standing { unmet, coming };
        let (now, mut known) = (Instant::now(), self.known());
        let wanting =
            standing.is_wanting() || known.get(&key).is_some_and(|e| e.standing.is_wanting());
        match known.get_mut(&key) {
            Some(entry) => {
                entry.standing = standing;
                if wanting {
                    entry.wanting = now;
                }
            }
            // What was never short needs no words.
            None if wanting => drop(known.insert(key, Entry { standing, wanting: now })),
            None => {}
        }
    }

    /// The session is over: nothing is known any more.
    pub fn forget(&self) {
        self.known().clear();
    }

    /// Needs that pods are to be told about: unmet, with machines coming, or so within
    /// the last minute.
    #[must_use]
    pub fn wanting(&self) -> HashMap<NeedKey, Standing, RandomState> {
        let now = Instant::now();
        let mut known = self.known();
        known.retain(|_, entry| entry.standing.is_wanting() || now < entry.wanting + LINGER);
        known.iter().map(|(key, entry)| (key.clone(), entry.standing.clone())).collect()
    }

    /// How many needs are unmet, by the name of the reason.
    #[must_use]
    pub fn unmet(&self) -> HashMap<&'static str, usize, RandomState> {
        let mut counts: HashMap<&'static str, usize, RandomState> = HashMap::default();
        for frame in self.known().values().filter_map(|entry| entry.standing.unmet.as_ref()) {
            *counts.entry(unmet::of(frame.unmet_reason, frame.unmet_detail).name).or_default() += 1;
        }
        counts
    }
}
