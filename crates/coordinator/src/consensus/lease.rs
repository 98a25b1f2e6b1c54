//! When a leader may speak, and when a follower may vote.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::types::{MemberId, Membership};

/// What a replica knows about who heard whom. All by the monotonic clock, so
/// a jump of the wall clock has no effect.
///
/// The library never steps down for want of a quorum, and its own measure of
/// the last quorum contact is only refreshed as its loop turns. So the lease
/// is kept here, from the acknowledgements themselves: an acknowledgement
/// counts from the moment its request was *sent*, which is before the
/// follower's promise not to vote began.
#[derive(Debug)]
pub(crate) struct Lease {
    length: Duration,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// When each member was sent what it acknowledged, in `term`.
    acknowledged: BTreeMap<MemberId, Instant>,
    term: u64,
    /// When a live leader was last heard; at first, when the process began: it
    /// does not know what its predecessor promised.
    heard: Instant,
    began: Instant,
}

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        let now = Instant::now();
        let known = Known { acknowledged: BTreeMap::new(), term: 0, heard: now, began: now };
        Self { length, known: Mutex::new(known) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member took what was sent to it at `sent` by the leader of `term`.
    pub(crate) fn acknowledged(&self, by: MemberId, term: u64, sent: Instant) {
        let mut known = self.known();
        if term > known.term {
            (known.term, known.acknowledged) = (term, BTreeMap::new());
        }
        if term == known.term {
            let at = known.acknowledged.entry(by).or_insert(sent);
            *at = sent.max(*at);
        }
    }

    /// Whether the leader of `term` was heard by a quorum within the lease: no
    /// other leader can have been elected since.
    pub(crate) fn is_held(&self, me: MemberId, term: u64, members: &Membership) -> bool {
        let (known, now) = (self.known(), Instant::now());
        let fresh = |member: &MemberId| {
            let at = known.acknowledged.get(member);
            *member == me || known.term == term && at.is_some_and(|at| now < *at + self.length)
        };
        let sets = members.get_joint_config();
        !sets.is_empty()
            && sets.iter().all(|set| set.iter().filter(|one| fresh(one)).count() * 2 > set.len())
    }

    /// A live leader spoke.
    pub(crate) fn heard_leader(&self) {
        self.known().heard = Instant::now();
    }

    /// For how long no leader was heard.
    pub(crate) fn silence(&self) -> Duration {
        self.known().heard.elapsed()
    }

    /// A replica that has just begun may have promised its vote away.
    pub(crate) fn may_vote(&self) -> bool {
        self.known().began.elapsed() > self.length
    }
}
