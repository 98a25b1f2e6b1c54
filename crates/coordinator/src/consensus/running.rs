//! One run of the consensus library as one member, from start to stop or wipe.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use openraft::{ServerState, error::RaftError, raft::AppendEntriesResponse};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    entropy::Entropy,
    lease::Lease,
    log_store::LogStore,
    message::{CallError, Request, Response},
    network::Speaker,
    state_store::StateStore,
    timers::Timers,
    types::{LogId, Member, MemberId, Membership, Raft},
};

/// What the library needs to run as one member.
pub(crate) struct Parts {
    pub(crate) log: LogStore,
    pub(crate) state: StateStore,
    pub(crate) speaker: Speaker,
    pub(crate) timers: Timers,
    /// Entries that are kept behind a snapshot.
    pub(crate) trailing: u64,
    pub(crate) entropy: Arc<Entropy>,
}

/// A running member. Dropping it stops its timers.
pub(crate) struct Running {
    pub(crate) raft: Raft,
    pub(crate) log: LogStore,
    pub(crate) state: StateStore,
    pub(crate) me: MemberId,
    pub(crate) speaker: Speaker,
    pub(crate) timers: Timers,
    /// Leadership is being handed away: no heartbeats, so that voters may turn.
    pub(crate) quiet: Arc<AtomicBool>,
    /// The disk is almost full: others should lead.
    pub(crate) abstain: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(parts: Parts) -> Result<Self, String> {
        let Parts { log, state, speaker, timers, trailing, entropy } = parts;
        let config = timers.library(trailing).validate().map_err(|error| error.to_string())?;
        let me = speaker.me;
        let raft = Raft::new(me, Arc::new(config), speaker.clone(), log.clone(), state.clone());
        let raft = raft.await.map_err(|error| error.to_string())?;
        let mut tasks = JoinSet::new();
        let (quiet, abstain) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let pulse = (raft.clone(), Arc::clone(&quiet));
        tasks.spawn(async move { beat(&pulse.0, timers.heartbeat, &pulse.1).await });
        let campaigner = Campaigner {
            raft: raft.clone(),
            log: log.clone(),
            speaker: speaker.clone(),
            timers,
            abstain: Arc::clone(&abstain),
        };
        tasks.spawn(async move { campaigner.watch(&entropy).await });
        Ok(Self { raft, log, state, me, speaker, timers, quiet, abstain, _tasks: tasks })
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.speaker.lease
    }

    /// The members as of the last entry, committed or not.
    pub(crate) fn members(&self) -> Membership {
        self.raft.metrics().borrow().membership_config.membership().clone()
    }

    /// The consensus term of this replica's leadership, while it may serve: it
    /// leads, has applied an entry of its own term (hence everything before),
    /// and holds the lease.
    pub(crate) fn serving_term(&self) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let term = metrics.current_term;
        if metrics.state != ServerState::Leader || metrics.running_state.is_err() {
            return None;
        }
        let applied = self.state.read().last.is_some_and(|at| at.leader_id.term == term);
        let members = metrics.membership_config.membership();
        (applied && self.lease().is_held(self.me, term, members)).then_some(term)
    }

    /// Whether the library gave up, a write having failed, while this replica led:
    /// the others need not find out by themselves.
    pub(crate) fn halted_as_leader(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        metrics.running_state.is_err() && metrics.current_leader == Some(self.me)
    }

    /// Whether nobody else is known to lead yet, by a library that could know.
    pub(crate) fn awaits_successor(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let other = metrics.current_leader.is_some_and(|leader| leader != self.me);
        metrics.running_state.is_ok() && !other
    }

    /// Answers a peer whose envelope was for this member of this fleet.
    pub(crate) async fn answer(&self, request: Request) -> Result<Response, CallError> {
        let halted = |error: String| CallError::Unreachable(error);
        match request {
            Request::Append(append) => {
                let answer = self.raft.append_entries(append).await;
                let answer = answer.map_err(|error| halted(error.to_string()))?;
                if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
                    self.lease().heard_leader();
                }
                Ok(Response::Append(answer))
            }
            Request::Snapshot(part) => match self.raft.install_snapshot(part).await {
                Ok(answer) => {
                    self.lease().heard_leader();
                    Ok(Response::Snapshot(Ok(answer)))
                }
                Err(RaftError::APIError(error)) => Ok(Response::Snapshot(Err(error))),
                Err(RaftError::Fatal(error)) => Err(halted(error.to_string())),
            },
            Request::Vote(_) if !self.lease().may_vote() => {
                Err(CallError::Refused("just started, and may have promised its vote".to_owned()))
            }
            Request::Vote(vote) => {
                let answer = self.raft.vote(vote).await;
                answer.map(Response::Vote).map_err(|error| halted(error.to_string()))
            }
            Request::PreVote(last) => Ok(Response::PreVote(self.would_vote(last))),
            Request::Campaign => {
                let campaigner = Campaigner {
                    raft: self.raft.clone(),
                    log: self.log.clone(),
                    speaker: self.speaker.clone(),
                    timers: self.timers,
                    abstain: Arc::clone(&self.abstain),
                };
                tokio::spawn(async move { campaigner.succeed().await });
                Ok(Response::Campaign)
            }
        }
    }

    /// Pre-vote: no live leader, and the candidate's log is no shorter than mine.
    fn would_vote(&self, last: Option<LogId>) -> bool {
        self.serving_term().is_none()
            && self.lease().silence() >= self.timers.election
            && last >= self.log.last()
    }
}

/// A leader speaks every heartbeat.
async fn beat(raft: &Raft, interval: Duration, quiet: &AtomicBool) {
    loop {
        sleep(interval).await;
        let leads = raft.metrics().borrow().state == ServerState::Leader;
        if leads && !quiet.load(Ordering::Relaxed) && raft.trigger().heartbeat().await.is_err() {
            return;
        }
    }
}

/// Stands for election.
struct Campaigner {
    raft: Raft,
    log: LogStore,
    speaker: Speaker,
    timers: Timers,
    abstain: Arc<AtomicBool>,
}

impl Campaigner {
    fn is_voter(&self) -> bool {
        self.voters().iter().any(|(id, _)| *id == self.speaker.me)
    }

    fn voters(&self) -> Vec<(MemberId, Member)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let members = metrics.membership_config.membership();
        let node = |id| members.get_node(&id).map(|node| (id, node.clone()));
        members.voter_ids().filter_map(node).collect()
    }

    fn leads(&self) -> bool {
        self.raft.metrics().borrow().state == ServerState::Leader
    }

    /// Waits for a silence of one to two election timeouts, asks whether it
    /// would win, and only then stands.
    async fn watch(&self, entropy: &Entropy) {
        let mut began = Instant::now();
        let mut patience = entropy.spread(self.timers.election);
        loop {
            let alone = self.voters().len() == 1 && self.is_voter();
            let silent = self.speaker.lease.silence().min(began.elapsed());
            let abstains = self.abstain.load(Ordering::Relaxed) && !alone;
            if self.leads() || !self.is_voter() || abstains {
                sleep(self.timers.heartbeat / 4).await;
            } else if alone || silent >= patience {
                if self.would_win().await && self.raft.trigger().elect().await.is_err() {
                    return;
                }
                (began, patience) = (Instant::now(), entropy.spread(self.timers.election));
                if alone {
                    sleep(self.timers.heartbeat / 4).await;
                }
            } else {
                sleep((patience - silent).max(Duration::from_millis(1))).await;
            }
        }
    }

    /// The pre-vote round.
    async fn would_win(&self) -> bool {
        let metrics = self.raft.metrics().borrow().membership_config.membership().clone();
        let last = self.log.last();
        let mut asked = JoinSet::new();
        for (id, member) in self.voters().into_iter().filter(|(id, _)| *id != self.speaker.me) {
            let (speaker, limit) = (self.speaker.clone(), self.timers.lease);
            asked.spawn(async move {
                let call = speaker.call(id, &member, Request::PreVote(last));
                let yes = matches!(timeout(limit, call).await, Ok(Ok(Response::PreVote(true))));
                yes.then_some(id)
            });
        }
        let mut yes = vec![self.speaker.me];
        loop {
            let sets = metrics.get_joint_config();
            let won = |set: &std::collections::BTreeSet<MemberId>| {
                set.iter().filter(|id| yes.contains(id)).count() * 2 > set.len()
            };
            if !sets.is_empty() && sets.iter().all(won) {
                return true;
            }
            match asked.join_next().await {
                Some(Ok(Some(id))) => yes.push(id),
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// The leader wants this replica to follow it. The library has no transfer
    /// of leadership and every voter keeps its promise to the old leader, so
    /// this waits for the lease to run out, then stands without a pre-vote.
    async fn succeed(&self) {
        for _ in 0..5 {
            while self.speaker.lease.silence() <= self.timers.lease {
                sleep(self.timers.heartbeat / 10).await;
            }
            if self.leads() || self.raft.trigger().elect().await.is_err() {
                return;
            }
            sleep(self.timers.heartbeat / 2).await;
            if self.leads() {
                return;
            }
        }
    }
}
