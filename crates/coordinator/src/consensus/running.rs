//! One run of the consensus library as one member, from start to stop or wipe.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use openraft::{ServerState, error::RaftError};
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
    pulse::{Motion, Pulse, settled},
    state_store::StateStore,
    timers::Timers,
    types::{LogId, Member, MemberId, Membership, Raft, VoteRequest, VoteResponse},
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
    motion: Motion,
    /// Leadership is being handed away: no pulse, so that voters may turn.
    pub(crate) quiet: Arc<AtomicBool>,
    /// The disk is almost full: others should lead.
    pub(crate) abstain: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(parts: Parts) -> Result<Self, String> {
        let Parts { log, state, speaker, timers, trailing, entropy } = parts;
        let (me, config) = (speaker.me, Arc::new(timers.library(trailing)));
        let raft = Raft::new(me, config, speaker.clone(), log.clone(), state.clone());
        let raft = raft.await.map_err(|error| error.to_string())?;
        let mut tasks = JoinSet::new();
        let (quiet, abstain) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let motion = Motion::new(timers);
        let watched = (motion.clone(), raft.clone());
        tasks.spawn(async move { watched.0.watch(&watched.1).await });
        let pulse = Pulse {
            raft: raft.clone(),
            speaker: speaker.clone(),
            timers,
            motion: motion.clone(),
            quiet: Arc::clone(&quiet),
        };
        tasks.spawn(async move { pulse.beat().await });
        let mut this =
            Self { raft, log, state, me, speaker, timers, motion, quiet, abstain, tasks };
        let campaigner = this.campaigner();
        this.tasks.spawn(async move { campaigner.watch(&entropy).await });
        Ok(this)
    }

    fn campaigner(&self) -> Campaigner {
        Campaigner {
            raft: self.raft.clone(),
            log: self.log.clone(),
            speaker: self.speaker.clone(),
            timers: self.timers,
            motion: self.motion.clone(),
            abstain: Arc::clone(&self.abstain),
        }
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
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
        let term = self.leased_term()?;
        let applied = self.state.read().last.is_some_and(|at| at.leader_id.term == term);
        applied.then_some(term)
    }

    /// The term in which this replica leads and holds the lease.
    fn leased_term(&self) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let (term, members) = (metrics.current_term, metrics.membership_config.membership());
        let leads = metrics.state == ServerState::Leader && metrics.running_state.is_ok();
        (leads && self.lease().is_held(self.me, term, members)).then_some(term)
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
                // Heard now; what is sent may take its time to be written.
                self.lease().heard_leader(append.vote.leader_id().get_term());
                let answer = self.raft.append_entries(append).await;
                answer.map(Response::Append).map_err(|error| halted(error.to_string()))
            }
            Request::Snapshot(part) => {
                self.lease().heard_leader(part.vote.leader_id().get_term());
                let (raft, installing) = (self.raft.clone(), self.lease().install());
                let answer = apart(async move {
                    let answer = raft.install_snapshot(part).await;
                    drop(installing);
                    answer
                });
                match answer.await? {
                    Ok(answer) => Ok(Response::Snapshot(Ok(answer))),
                    Err(RaftError::APIError(error)) => Ok(Response::Snapshot(Err(error))),
                    Err(RaftError::Fatal(error)) => Err(halted(error.to_string())),
                }
            }
            Request::Vote(vote) => self.vote(vote).await.map(Response::Vote),
            Request::PreVote(last) => Ok(Response::PreVote(self.would_vote(last))),
            Request::Campaign => {
                let campaigner = self.campaigner();
                tokio::spawn(async move { campaigner.succeed().await });
                Ok(Response::Campaign)
            }
            Request::Pulse(term) => {
                Ok(Response::Pulse(!self.motion.hangs() && self.lease().promise(term)))
            }
        }
    }

    async fn vote(&self, vote: VoteRequest) -> Result<VoteResponse, CallError> {
        let leads = self.leased_term().is_some() && !self.quiet.load(Ordering::Relaxed);
        let Some(voting) = self.lease().vote().filter(|_| !leads && !self.motion.hangs()) else {
            let why = "leads, has promised its vote, may have done so before it started, or hangs";
            return Err(CallError::Refused(why.to_owned()));
        };
        let (raft, term) = (self.raft.clone(), vote.vote.leader_id().get_term());
        let answer = apart(async move {
            let answer = raft.vote(vote).await;
            if answer.as_ref().is_ok_and(|answer| answer.vote_granted) {
                voting.gave(term);
            }
            answer
        });
        answer.await?.map_err(|error| CallError::Unreachable(error.to_string()))
    }

    /// Pre-vote: no live leader, and the candidate's log is no shorter than mine.
    fn would_vote(&self, last: Option<LogId>) -> bool {
        self.leased_term().is_none()
            && !self.motion.hangs()
            && self.lease().silence() >= self.timers.election
            && last >= self.log.last()
    }
}

/// Does what the library does to the end, even if nobody waits for the answer any more.
async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, CallError> {
    tokio::spawn(work).await.map_err(|error| CallError::Unreachable(error.to_string()))
}

/// Stands for election.
struct Campaigner {
    raft: Raft,
    log: LogStore,
    speaker: Speaker,
    timers: Timers,
    motion: Motion,
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
        let mut patience = entropy.spread(self.timers.election);
        let (mut began, mut pause) = (Instant::now(), Duration::ZERO);
        loop {
            let alone = self.voters().len() == 1 && self.is_voter();
            let silence = self.speaker.lease.silence();
            let wait = patience.saturating_sub(silence).max(pause.saturating_sub(began.elapsed()));
            let abstains = self.motion.hangs() || self.abstain.load(Ordering::Relaxed) && !alone;
            if self.leads() || !self.is_voter() || abstains {
                sleep(self.timers.heartbeat / 4).await;
            } else if alone || wait.is_zero() {
                if self.would_win().await && !self.stand(alone).await {
                    return;
                }
                // Others were as quick, or have heard the leader a little later: one that
                // has waited once need not wait as long again.
                patience = entropy.spread(self.timers.election);
                (began, pause) = (Instant::now(), patience / 2);
                if alone {
                    sleep(self.timers.heartbeat / 4).await;
                }
            } else {
                sleep(wait.max(Duration::from_millis(1))).await;
            }
        }
    }

    /// Votes for itself and asks the others to, unless a leader was heard meanwhile. False
    /// if the library has ended.
    async fn stand(&self, alone: bool) -> bool {
        let voting = self.speaker.lease.vote();
        if voting.is_none() && !alone {
            return true;
        }
        let stood = self.raft.trigger().elect().await.is_ok() && settled(&self.raft).await;
        if let Some(voting) = voting {
            voting.gave(self.log.term());
        }
        stood
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
    /// this waits for the promises to run out, and for nothing more.
    async fn succeed(&self) {
        let end = Instant::now() + self.timers.election * 4;
        while Instant::now() < end && !self.leads() {
            let silent = self.speaker.lease.silence() >= self.timers.election;
            if silent && self.would_win().await {
                if !self.stand(false).await {
                    return;
                }
                sleep(self.timers.heartbeat / 2).await;
            } else {
                sleep(self.timers.heartbeat / 20).await;
            }
        }
    }
}
