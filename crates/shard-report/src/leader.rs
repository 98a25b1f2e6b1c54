//! Finding the leader among the replicas (coordinator chapter §3): the last known
//! one, then whom a follower names, then every address. A connection to a replica
//! that does not lead is never kept.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};

use bigfleet_net::{grpc, message_limits, rule::Rule};
use bigfleet_shard::metrics::ReportOutcome;
use bigfleet_wire::v1alpha1::{ReportAck, ShardReport, coordinator_client::CoordinatorClient};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::{Code, Request, Status, transport::Channel};

use crate::{memory::Ignored, options::Options};

/// Where a follower says the leader is.
const LEADER_ADDR: &str = "bigfleet-leader-addr";
/// Of two followers that name each other no third is expected to know better.
const HINTS: usize = 3;
/// A silent name service must leave time for the addresses that are known.
const LOOKUP: Duration = Duration::from_secs(2);
/// What the coordinator says to the older of two processes of one shard.
const STALE_EPOCH: &str = "stale shard epoch";

type Rpc = CoordinatorClient<Channel>;

/// One replica to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    /// `host:port`, whose host the certificate must carry.
    name: String,
    /// Which of the addresses behind the name.
    at: Option<SocketAddr>,
}

impl Target {
    fn is_called(&self, addr: &str) -> bool {
        self.name == addr || self.at.is_some_and(|at| at.to_string() == addr)
    }
}

/// The replicas, as far as they are known.
#[derive(Debug)]
pub(crate) struct Replicas {
    options: Options,
    leader: Option<(Target, Rpc)>,
    /// What each configured address last resolved to.
    resolved: BTreeMap<String, Vec<SocketAddr>>,
}

/// One question to all replicas in turn.
struct Round {
    /// Whom to ask, and whether it is believed to lead.
    waiting: VecDeque<(Target, bool)>,
    asked: Vec<Target>,
    hints: usize,
    /// The worst that was heard.
    heard: ReportOutcome,
}

/// A report that no leader took.
#[derive(Debug)]
pub(crate) struct Missed {
    /// For the metric.
    pub(crate) outcome: ReportOutcome,
}

impl Replicas {
    pub(crate) const fn new(options: Options) -> Self {
        Self { options, leader: None, resolved: BTreeMap::new() }
    }

    /// Sends the report to replicas in turn until `judge` takes an answer. All of
    /// it ends by the deadline; an answer that comes later is dropped unread.
    pub(crate) async fn report<T>(
        &mut self,
        report: &ShardReport,
        deadline: Instant,
        mut judge: impl FnMut(ReportAck) -> Result<T, Ignored>,
    ) -> Result<T, Missed> {
        let mut round = self.begin().await;
        while let Some((target, believed)) = round.waiting.pop_front() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let share = round.share(left, believed);
            let Some(mut rpc) = self.dial(&target) else { continue };
            let mut request = Request::new(report.clone());
            request.set_timeout(share);
            let called = timeout_at(Instant::now() + share, rpc.report_shard(request)).await;
            let late = |_| Err(Status::deadline_exceeded("no answer in time"));
            let verdict = match called.unwrap_or_else(late) {
                Ok(answer) => judge(answer.into_inner()).map_err(Deaf::Ignored),
                Err(status) => Err(Deaf::Refused(status)),
            };
            match verdict {
                Ok(taken) => {
                    self.leader = Some((target, rpc));
                    return Ok(taken);
                }
                Err(deaf) => {
                    if self.is_leader(&target) {
                        self.leader = None;
                    }
                    if round.note(target, &deaf) {
                        break;
                    }
                }
            }
        }
        Err(Missed { outcome: round.heard })
    }

    fn is_leader(&self, target: &Target) -> bool {
        self.leader.as_ref().is_some_and(|(leader, _)| leader == target)
    }

    fn dial(&self, target: &Target) -> Option<Rpc> {
        if let Some((leader, rpc)) = &self.leader
            && leader == target
        {
            return Some(rpc.clone());
        }
        let (security, expect) = (&self.options.security, Rule::coordinators());
        let channel = match target.at {
            Some(at) => grpc::connect_lazy_at(&target.name, at, security, expect),
            None => grpc::connect_lazy(&target.name, security, expect),
        };
        match channel {
            Ok(channel) => Some(message_limits!(CoordinatorClient::new(channel))),
            // Our own addresses were checked at start, so this one came as a hint.
            Err(error) => {
                tracing::warn!(%error, "coordinator named a leader that cannot be dialled");
                None
            }
        }
    }

    /// Names are looked up every time: replicas come back at other addresses.
    async fn begin(&mut self) -> Round {
        let resolver = &self.options.resolver;
        let lookups = self
            .options
            .addresses
            .iter()
            .map(|name| async move { (name, timeout(LOOKUP, resolver.lookup(name)).await) });
        for (name, found) in join_all(lookups).await {
            match found {
                Ok(Ok(found)) if !found.is_empty() => {
                    self.resolved.insert(name.clone(), found);
                }
                Ok(Err(error)) => tracing::debug!(name, %error, "coordinator's name not resolved"),
                Ok(Ok(_)) | Err(_) => tracing::debug!(name, "coordinator's name not resolved"),
            }
        }
        let leader = self.leader.as_ref().map(|(leader, _)| leader.clone());
        let mut waiting: VecDeque<_> = leader.iter().map(|leader| (leader.clone(), true)).collect();
        for name in &self.options.addresses {
            for at in self.resolved.get(name).into_iter().flatten() {
                let target = Target { name: name.clone(), at: Some(*at) };
                if leader.as_ref() != Some(&target) {
                    waiting.push_back((target, false));
                }
            }
        }
        Round { waiting, asked: Vec::new(), hints: 0, heard: ReportOutcome::Unavailable }
    }
}

/// Why an attempt was for nothing.
#[derive(Debug)]
enum Deaf {
    Refused(Status),
    Ignored(Ignored),
}

impl Round {
    /// The time for one attempt: a silent replica leaves some for the others. One
    /// that is believed to lead gets more, for it may have to commit.
    fn share(&self, left: Duration, believed: bool) -> Duration {
        let others = self.waiting.len().min(if believed { 1 } else { usize::MAX });
        left / u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Learns from a failed attempt; true if no other replica would help.
    fn note(&mut self, target: Target, deaf: &Deaf) -> bool {
        let name = target.name.clone();
        self.asked.push(target);
        match deaf {
            Deaf::Ignored(why) => {
                tracing::error!(coordinator = name, %why, "coordinator's answer ignored");
                self.heard = ReportOutcome::Error;
            }
            Deaf::Refused(status) => return self.refused(&name, status),
        }
        false
    }

    fn refused(&mut self, name: &str, status: &Status) -> bool {
        let message = status.message();
        match status.code() {
            Code::FailedPrecondition => {
                tracing::debug!(coordinator = name, message, "not the leader");
                if self.heard != ReportOutcome::Error {
                    self.heard = ReportOutcome::NotLeader;
                }
                if let Some(hint) = status.metadata().get(LEADER_ADDR) {
                    self.hinted(hint.to_str().unwrap_or_default());
                }
                false
            }
            // A lost connection, or none: the outcome is unknown.
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                tracing::debug!(coordinator = name, message, "coordinator not reached");
                false
            }
            code => {
                let code = grpc::code_name(code);
                tracing::error!(
                    coordinator = name,
                    code,
                    message,
                    "coordinator refuses the report"
                );
                self.heard = ReportOutcome::Error;
                // Every leader would say so: the epoch is replicated.
                status.code() == Code::Aborted && message.starts_with(STALE_EPOCH)
            }
        }
    }

    /// A follower names the leader: it is asked next, unless it was already.
    fn hinted(&mut self, addr: &str) {
        if addr.is_empty()
            || self.hints == HINTS
            || self.asked.iter().any(|asked| asked.is_called(addr))
        {
            return;
        }
        self.hints += 1;
        let known = self.waiting.iter().position(|(target, _)| target.is_called(addr));
        let known = known.and_then(|at| self.waiting.remove(at)).map(|(target, _)| target);
        let named = known.unwrap_or_else(|| Target { name: addr.to_owned(), at: None });
        self.waiting.push_front((named, true));
    }
}
