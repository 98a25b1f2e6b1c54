//! A leader's pulse, and whether there is one.
//!
//! The library does one thing at a time and waits for the disk while it writes. Its
//! appends therefore say nothing about who lives: a leader that writes sends none, and a
//! follower that writes answers none. So the leader speaks beside the library, and is
//! answered beside it; but only for as long as the library moves at all, on either side.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use openraft::ServerState;
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    message::{Request, Response},
    network::Speaker,
    timers::Timers,
    types::{Member, MemberId, Membership, Raft},
};

/// Since when the library owes an answer.
#[derive(Debug, Clone)]
pub(crate) struct Motion {
    since: Arc<Mutex<Option<Instant>>>,
    timers: Timers,
}

impl Motion {
    pub(crate) fn new(timers: Timers) -> Self {
        Self { since: Arc::default(), timers }
    }

    fn set(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Whether the library has stood still for too long to take part.
    pub(crate) fn hangs(&self) -> bool {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() >= self.timers.hang())
    }

    /// Asks the library for a sign of life, one after the other, until it ends.
    pub(crate) async fn watch(&self, raft: &Raft) {
        loop {
            let begun = Instant::now();
            self.set(Some(begun));
            let mut settled = std::pin::pin!(settled(raft));
            let runs = match timeout(self.timers.hang(), &mut settled).await {
                Ok(runs) => runs,
                Err(_) => {
                    tracing::error!("nothing can be written: this replica takes no part");
                    let runs = settled.await;
                    tracing::warn!(after = ?begun.elapsed(), "this replica takes part again");
                    runs
                }
            };
            if !runs {
                return;
            }
            self.set(None);
            sleep(self.timers.heartbeat).await;
        }
    }
}

/// Waits until the library has done all that it was told before. False if it has ended.
pub(crate) async fn settled(raft: &Raft) -> bool {
    let (tell, told) = oneshot::channel();
    raft.external_request(move |_| {
        let _ = tell.send(());
    });
    told.await.is_ok()
}

/// A leader speaks every heartbeat.
pub(crate) struct Pulse {
    pub(crate) raft: Raft,
    pub(crate) speaker: Speaker,
    pub(crate) timers: Timers,
    pub(crate) motion: Motion,
    /// Leadership is being handed away: no pulse, so that voters may turn.
    pub(crate) quiet: Arc<AtomicBool>,
}

impl Pulse {
    /// The term in which this replica leads, and the members. None if it leads no longer
    /// but for telling the others so.
    fn led(&self) -> Option<(u64, Membership)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let members = metrics.membership_config.membership();
        let votes = members.voter_ids().any(|id| id == self.speaker.me);
        let leads = metrics.state == ServerState::Leader && votes;
        leads.then(|| (metrics.current_term, members.clone()))
    }

    /// Whether a leader that no quorum has answered for so long speaks. It may be heard,
    /// and not hear: then others stand only while it is silent. Nor is it silent for ever,
    /// for it may be the only one that they would vote for.
    fn speaks(&self, unheard: Duration) -> bool {
        let (election, round) = (self.timers.election, self.timers.election * 6);
        unheard.as_nanos() % round.as_nanos() < (election * 2).as_nanos()
    }

    pub(crate) async fn beat(&self) {
        let mut calls = JoinSet::new();
        let mut spoken: BTreeMap<MemberId, (u64, Instant)> = BTreeMap::new();
        let (mut committed, mut held) = (Instant::now(), (0, Instant::now()));
        loop {
            sleep(self.timers.heartbeat / 4).await;
            while calls.try_join_next().is_some() {}
            let Some((term, members)) = self.led() else { continue };
            let Speaker { me, lease, .. } = &self.speaker;
            if held.0 != term || lease.is_held(*me, term, &members) {
                held = (term, Instant::now());
            }
            let quiet = self.quiet.load(Ordering::Relaxed) || self.motion.hangs();
            if quiet || !self.speaks(held.1.elapsed()) {
                continue;
            }
            for (id, member) in members.nodes().filter(|(id, _)| *id != me) {
                if self.is_due(*id, term, spoken.get(id)) {
                    spoken.insert(*id, (term, Instant::now()));
                    let (speaker, member) = (self.speaker.clone(), member.clone());
                    calls.spawn(speak(speaker, *id, member, term, self.timers));
                }
            }
            // The library's own says how far entries are committed.
            if committed.elapsed() >= self.timers.heartbeat {
                committed = Instant::now();
                if self.raft.trigger().heartbeat().await.is_err() {
                    return;
                }
            }
        }
    }

    /// Every heartbeat; sooner if the last was not answered, for the lease lasts for two.
    fn is_due(&self, id: MemberId, term: u64, spoken: Option<&(u64, Instant)>) -> bool {
        let Some((last, sent)) = spoken.filter(|(last, _)| *last == term) else { return true };
        let pause = match self.speaker.lease.has_answered(id, *last, *sent) {
            true => self.timers.heartbeat,
            false => self.timers.heartbeat / 2,
        };
        sent.elapsed() >= pause
    }
}

async fn speak(speaker: Speaker, to: MemberId, member: Member, term: u64, timers: Timers) {
    let sent = Instant::now();
    let call = speaker.call(to, &member, Request::Pulse(term));
    if let Ok(Ok(Response::Pulse(true))) = timeout(timers.lease, call).await {
        speaker.lease.acknowledged(to, term, sent);
    }
}
