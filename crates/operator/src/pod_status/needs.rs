//! How needs stand, by what the shard said in this session.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_model::unmet;
use bigfleet_wire::v1alpha1::NeedStatusUpdate;
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap, HashSet};
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
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    needs: HashMap<NeedKey, Entry, RandomState>,
    /// When the shard had told every unmet need of this session.
    replayed: Option<Instant>,
    /// When it first accepted a roll-up of this session.
    accepted: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    standing: Standing,
    /// When it was last unmet or had machines coming.
    wanting: Instant,
    /// Since when our roll-ups do not name it. The shard forgets it without a word.
    unnamed: Option<Instant>,
}

impl Standing {
    fn is_wanting(&self) -> bool {
        self.unmet.is_some() || self.coming > 0
    }
}

impl Needs {
    fn known(&self) -> MutexGuard<'_, Known> {
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
        let needs = &mut known.needs;
        let wanting =
            standing.is_wanting() || needs.get(&key).is_some_and(|e| e.standing.is_wanting());
        match needs.get_mut(&key) {
            Some(entry) => {
                entry.standing = standing;
                if wanting {
                    entry.wanting = now;
                }
            }
            // What was never short needs no words.
            None if wanting => {
                needs.insert(key, Entry { standing, wanting: now, unnamed: None });
            }
            None => {}
        }
    }

    /// A roll-up names these needs and no others.
    pub fn named<'a>(&self, needs: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut known = self.known();
        if known.needs.is_empty() {
            return;
        }
        let named: HashSet<(&str, &str), RandomState> = needs.collect();
        let now = Instant::now();
        for (key, entry) in &mut known.needs {
            if named.contains(&(&*key.fingerprint, &*key.group)) {
                entry.unnamed = None;
            } else {
                entry.unnamed.get_or_insert(now);
            }
        }
    }

    /// The shard has replayed everything that it has to say at the begin of a session.
    pub fn replayed(&self) {
        self.known().replayed.get_or_insert_with(Instant::now);
    }

    /// The shard has accepted a roll-up, and says from then on how its needs stand.
    pub fn accepted(&self) {
        self.known().accepted.get_or_insert_with(Instant::now);
    }

    /// Whether a need that was not spoken of in this session is met for sure.
    #[must_use]
    pub fn silence_is_met(&self) -> bool {
        let known = self.known();
        let long_ago = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() >= LINGER);
        long_ago(known.replayed) && long_ago(known.accepted)
    }

    /// The session is over: nothing is known any more.
    pub fn forget(&self) {
        *self.known() = Known::default();
    }

    /// Needs that pods are to be told about: unmet, with machines coming, or so within
    /// the last minute.
    #[must_use]
    pub fn wanting(&self) -> HashMap<NeedKey, Standing, RandomState> {
        let mut known = self.known();
        known.tidy();
        known.needs.iter().map(|(key, entry)| (key.clone(), entry.standing.clone())).collect()
    }

    /// How many needs are unmet, by the name of the reason.
    #[must_use]
    pub fn unmet(&self) -> HashMap<&'static str, usize, RandomState> {
        let mut counts: HashMap<&'static str, usize, RandomState> = HashMap::default();
        let mut known = self.known();
        known.tidy();
        for frame in known.needs.values().filter_map(|entry| entry.standing.unmet.as_ref()) {
            *counts.entry(unmet::of(frame.unmet_reason, frame.unmet_detail).name).or_default() += 1;
        }
        counts
    }
}

impl Known {
    /// Forgets needs that have been met for a while, and those that are demanded no more.
    fn tidy(&mut self) {
        let now = Instant::now();
        self.needs.retain(|_, entry| {
            let wanting = entry.standing.is_wanting() || now < entry.wanting + LINGER;
            // A roll-up or two later the shard knows, too.
            wanting && entry.unnamed.is_none_or(|since| now < since + LINGER)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(needs: &Needs, group: &str, satisfied: bool) {
        let (profile_fingerprint, group) = ("p".to_owned(), group.to_owned());
        needs.heard(NeedStatusUpdate {
            profile_fingerprint,
            group,
            satisfied,
            ..Default::default()
        });
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn unmet(needs: &Needs) -> usize {
        needs.unmet().values().sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_need_that_is_demanded_no_more_is_forgotten() {
        let needs = Needs::default();
        heard(&needs, "a", false);
        heard(&needs, "b", false);
        needs.named([("p", "a"), ("p", "b")].into_iter());
        pass(600).await;
        assert_eq!((needs.wanting().len(), unmet(&needs)), (2, 2));
        needs.named([("p", "b")].into_iter());
        pass(59).await;
        assert_eq!(unmet(&needs), 2, "the shard may not know yet, and it may come back");
        needs.named([("p", "b")].into_iter());
        pass(1).await;
        assert_eq!((needs.wanting().len(), unmet(&needs)), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_need_that_was_short_is_looked_after_for_a_minute() {
        let needs = Needs::default();
        heard(&needs, "a", true);
        assert!(needs.wanting().is_empty(), "it never was short");
        heard(&needs, "a", false);
        pass(600).await;
        heard(&needs, "a", true);
        pass(59).await;
        assert_eq!((needs.wanting().len(), unmet(&needs)), (1, 0));
        pass(1).await;
        assert!(needs.wanting().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_says_something_only_after_a_replay_and_an_accepted_roll_up() {
        let needs = Needs::default();
        pass(600).await;
        assert!(!needs.silence_is_met());
        needs.replayed();
        pass(600).await;
        assert!(!needs.silence_is_met(), "the shard may know none of our needs");
        needs.accepted();
        pass(59).await;
        needs.accepted();
        assert!(!needs.silence_is_met());
        pass(1).await;
        assert!(needs.silence_is_met());
        needs.forget();
        assert!(!needs.silence_is_met());
    }
}
