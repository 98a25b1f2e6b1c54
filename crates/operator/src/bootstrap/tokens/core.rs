//! How many tokens to mint, which to hand out, when to delete them.
//!
//! A token lives for twice the ttl of a blob. It is replaced in the pool when
//! it is half a ttl old, and while no replacement comes (the API server is
//! away) it is handed out until it is one ttl old: then it still outlives the
//! blob it is in.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::token::Token;

/// After a failure; doubles up to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The state of the pool. Times are those of one clock that never goes back.
#[derive(Debug)]
pub struct Core {
    size: usize,
    ttl: Duration,
    /// Oldest first.
    ready: VecDeque<Token>,
    /// Ids whose Secrets stand, and when to delete them.
    doomed: VecDeque<(Duration, Arc<str>)>,
    minting: usize,
    pause: Duration,
    paused_until: Duration,
}

/// What to do now, and when to ask again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Tokens to mint; each must end in [`Core::minted`] or [`Core::failed`].
    pub mint: usize,
    /// Ids whose Secrets to delete; each is named once, so report those that
    /// could not be deleted with [`Core::not_deleted`].
    pub delete: Vec<Arc<str>>,
    /// When to ask again if nothing happens until then.
    pub next: Option<Duration>,
}

impl Core {
    /// An empty pool of `size` tokens for blobs that live for `ttl`.
    #[must_use]
    pub fn new(size: usize, ttl: Duration) -> Self {
        Self {
            size,
            ttl,
            ready: VecDeque::new(),
            doomed: VecDeque::new(),
            minting: 0,
            pause: Duration::ZERO,
            paused_until: Duration::ZERO,
        }
    }

    /// How long a token is valid.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.ttl * 2
    }

    /// The oldest token that outlives a blob made now.
    pub fn take(&mut self, now: Duration) -> Option<Token> {
        self.retire(now);
        let token = self.ready.pop_front()?;
        self.doom(token.minted() + self.lifetime(), &token);
        Some(token)
    }

    /// Takes back a token that was shown to nobody.
    pub fn give_back(&mut self, token: Token) {
        self.doomed.retain(|(_, id)| id != token.id());
        self.insert(token);
    }

    /// Tokens that [`Core::take`] could hand out.
    #[must_use]
    pub fn ready(&self, now: Duration) -> usize {
        self.ready.iter().filter(|token| age(token, now) <= self.ttl).count()
    }

    /// What to do now.
    pub fn plan(&mut self, now: Duration) -> Plan {
        self.retire(now);
        let due = self.doomed.partition_point(|(at, _)| *at <= now);
        let delete = self.doomed.drain(..due).map(|(_, id)| id).collect();
        let fresh = self.ready.iter().filter(|token| age(token, now) < self.ttl / 2).count();
        let wanted = self.size.saturating_sub(fresh + self.minting);
        let mint = if now < self.paused_until { 0 } else { wanted };
        self.minting += mint;
        let resumes = (mint < wanted).then_some(self.paused_until);
        let stale = self.ready.iter().map(|token| token.minted() + self.ttl / 2);
        let stale = stale.filter(|at| *at > now).min();
        let deletion = self.doomed.front().map(|(at, _)| *at);
        let next = [resumes, stale, deletion].into_iter().flatten().min();
        Plan { mint, delete, next }
    }

    /// A token was minted. The ones that it replaces are deleted: nobody has them.
    pub fn minted(&mut self, token: Token) {
        self.minting = self.minting.saturating_sub(1);
        self.pause = Duration::ZERO;
        self.insert(token);
        while self.ready.len() > self.size {
            if let Some(oldest) = self.ready.pop_front() {
                self.doom(Duration::ZERO, &oldest);
            }
        }
    }

    /// A token could not be minted. `leftover` is its id, if its Secret may stand
    /// all the same.
    pub fn failed(&mut self, now: Duration, leftover: Option<&Token>) {
        self.minting = self.minting.saturating_sub(1);
        // Several that fail at once are one failure.
        if now >= self.paused_until {
            self.pause = (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            self.paused_until = now + self.pause;
        }
        if let Some(token) = leftover {
            self.doom(now + LONGEST_PAUSE, token);
        }
    }

    /// A Secret could not be deleted; it is tried again later.
    pub fn not_deleted(&mut self, now: Duration, id: Arc<str>) {
        self.doom_id(now + LONGEST_PAUSE, id);
    }

    /// Everything that nobody has, for the end of a term: what is ready, and what was replaced
    /// and not deleted yet. The pool is empty afterwards, and what was still being minted will
    /// not come.
    pub fn abandon(&mut self, now: Duration) -> Vec<Arc<str>> {
        self.minting = 0;
        let due = self.doomed.partition_point(|(at, _)| *at <= now);
        let replaced = self.doomed.drain(..due).map(|(_, id)| id);
        replaced.chain(self.ready.drain(..).map(|token| Arc::clone(token.id()))).collect()
    }

    /// Drops tokens that would not outlive a blob made now.
    fn retire(&mut self, now: Duration) {
        while let Some(token) = self.ready.pop_front_if(|token| age(token, now) > self.ttl) {
            self.doom(now, &token);
        }
    }

    fn insert(&mut self, token: Token) {
        let place = self.ready.partition_point(|other| other.minted() <= token.minted());
        self.ready.insert(place, token);
    }

    fn doom(&mut self, at: Duration, token: &Token) {
        self.doom_id(at, Arc::clone(token.id()));
    }

    fn doom_id(&mut self, at: Duration, id: Arc<str>) {
        let place = self.doomed.partition_point(|(other, _)| *other <= at);
        self.doomed.insert(place, (at, id));
    }
}

fn age(token: &Token, now: Duration) -> Duration {
    now.saturating_sub(token.minted())
}
