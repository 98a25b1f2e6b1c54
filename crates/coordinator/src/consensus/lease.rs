//! When a leader may speak, and when a follower may vote.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    timers::Timers,
    types::{MemberId, Membership},
};

/// What a replica knows about who heard whom. All by the monotonic clock, so
/// a jump of the wall clock has no effect.
///
/// The library never steps down for want of a quorum, and all it does waits for the disk.
/// So the lease is kept here, beside it:
///
/// - An acknowledgement counts from the moment its request was *sent*, which is before the
///   follower's promise not to vote began.
/// - The promise outlasts the lease, an election timeout against four fifths of one, so
///   clocks may differ by a fifth in how fast they run.
/// - While the library has a vote to give, which it may do at any time until it answers,
///   nothing is promised to any leader; and what was promised is looked up before the
///   library is given one. So no replica both votes and promises not to.
#[derive(Debug)]
pub(crate) struct Lease {
    /// For so long a leader may rely on an acknowledgement.
    length: Duration,
    /// For so long a replica that heard a leader votes for nobody.
    promise: Duration,
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
    /// Votes that the library was given and has not answered.
    voting: usize,
    /// Parts of snapshots of which the same is true.
    installing: usize,
    /// The highest term in which this replica gave its vote.
    voted: u64,
}

impl Lease {
    /// `voted` is the term of the vote that was stored: whom this replica voted out before
    /// it started, it promises nothing.
    pub(crate) fn new(timers: &Timers, voted: u64) -> Self {
        let (acknowledged, heard) = (BTreeMap::new(), Instant::now());
        let known = Known { acknowledged, term: 0, heard, voting: 0, installing: 0, voted };
        Self { length: timers.lease, promise: timers.election, known: Mutex::new(known) }
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

    /// Whether a member took what the leader of `term` sent at `sent`, or later.
    pub(crate) fn has_answered(&self, member: MemberId, term: u64, sent: Instant) -> bool {
        let known = self.known();
        known.term == term && known.acknowledged.get(&member).is_some_and(|at| *at >= sent)
    }

    /// Whether the leader of `term` was heard by a quorum within the lease: no
    /// other leader can have been elected since.
    pub(crate) fn is_held(&self, me: MemberId, term: u64, members: &Membership) -> bool {
        let (known, now) = (self.known(), Instant::now());
        // The library says late that it votes for another.
        if known.voting > 0 || known.voted > term {
            return false;
        }
        let fresh = |member: &MemberId| {
            let at = known.acknowledged.get(member);
            *member == me || known.term == term && at.is_some_and(|at| now < *at + self.length)
        };
        let sets = members.get_joint_config();
        !sets.is_empty()
            && sets.iter().all(|set| set.iter().filter(|one| fresh(one)).count() * 2 > set.len())
    }

    /// The leader of `term` spoke: do not stand against it for a while. One whom this
    /// replica has voted out is not listened to.
    pub(crate) fn heard_leader(&self, term: u64) {
        let mut known = self.known();
        if known.voted <= term {
            known.heard = Instant::now();
        }
    }

    /// Promises the leader of `term` to vote for nobody for a while, if that can be kept.
    pub(crate) fn promise(&self, term: u64) -> bool {
        let mut known = self.known();
        let free = known.voting == 0 && known.voted <= term;
        if free {
            known.heard = Instant::now();
        }
        free
    }

    /// For how long no leader was heard.
    pub(crate) fn silence(&self) -> Duration {
        self.known().heard.elapsed()
    }

    /// Before the library is given a part of a snapshot. While it installs one it puts
    /// off whatever it is told, a vote too, and says that it is done.
    pub(crate) fn install(self: &Arc<Self>) -> Installing {
        self.known().installing += 1;
        Installing(Arc::clone(self))
    }

    /// Before the library is given a vote, for another or for this replica. None while a
    /// promise lasts; one that has just begun may have promised its vote away.
    pub(crate) fn vote(self: &Arc<Self>) -> Option<Voting> {
        let mut known = self.known();
        if known.heard.elapsed() < self.promise || known.installing > 0 {
            return None;
        }
        known.voting += 1;
        Some(Voting(Arc::clone(self)))
    }
}

/// A snapshot that the library may install until this is dropped.
pub(crate) struct Installing(Arc<Lease>);

impl Drop for Installing {
    fn drop(&mut self) {
        self.0.known().installing -= 1;
    }
}

/// A vote that the library may give until this is dropped.
pub(crate) struct Voting(Arc<Lease>);

impl Voting {
    /// It gave it, in this term.
    pub(crate) fn gave(&self, term: u64) {
        let mut known = self.0.known();
        known.voted = known.voted.max(term);
    }
}

impl Drop for Voting {
    fn drop(&mut self) {
        self.0.known().voting -= 1;
    }
}
