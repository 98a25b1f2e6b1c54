//! The coordinator: whoever leads, and every replica about itself.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_net::{
    grpc::check_address,
    leader::{Replicas, Resolver, Turn},
    message_limits,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{
    ListDomainAssignmentsRequest, ListDomainAssignmentsResponse, ListProvidersRequest,
    ListQuotasRequest, ListShardReportsRequest, ListShardsRequest, ProviderEntry, QuotaAllocation,
    RaftStatusRequest, RaftStatusResponse, ShardRegistryEntry, ShardReportSnapshot,
    coordinator_client::CoordinatorClient,
};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use tonic::{Code, Request, Response, Status, transport::Channel};

use super::coalesce::{Coalesced, Outcome};
use crate::{
    Error,
    api::{Refusal, Source},
    metrics::Metrics,
};

const WITHIN: Duration = Duration::from_secs(5);

/// Rows of one page of domains.
const PAGE: i32 = 2_000;

/// Ways to the replicas that wait for the next question.
const SPARE: usize = 4;

type Rpc = CoordinatorClient<Channel>;

/// What one replica says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    /// As it was dialled.
    pub(crate) address: String,
    /// Its status, or what is wrong.
    pub(crate) status: Result<RaftStatusResponse, String>,
}

/// The replicas of which the leader is asked; calls are shared and bounded.
#[derive(Debug)]
pub(crate) struct Coordinator {
    ways: Option<Arc<Ways>>,
    shards: Coalesced<(), Vec<ShardRegistryEntry>>,
    domains: Coalesced<String, ListDomainAssignmentsResponse>,
    reports: Coalesced<String, Vec<ShardReportSnapshot>>,
    quotas: Coalesced<(), Vec<QuotaAllocation>>,
    providers: Coalesced<(), Vec<ProviderEntry>>,
    replicas: Coalesced<(), Vec<Replica>>,
}

impl Coordinator {
    /// Behind these addresses, of which there may be none. Dials nothing yet.
    pub(crate) fn new(
        addresses: &[String],
        security: &Security,
        metrics: &Metrics,
    ) -> Result<Self, Error> {
        for address in addresses {
            check_address(address)?;
        }
        let ways = Ways {
            addresses: addresses.to_vec(),
            security: security.clone(),
            spare: Mutex::new(Vec::new()),
        };
        let calls = metrics.calls(Source::Coordinator);
        Ok(Self {
            ways: (!addresses.is_empty()).then(|| Arc::new(ways)),
            shards: Coalesced::new(&calls),
            domains: Coalesced::new(&calls),
            reports: Coalesced::new(&calls),
            quotas: Coalesced::new(&calls),
            providers: Coalesced::new(&calls),
            replicas: Coalesced::new(&calls),
        })
    }

    /// Whether there are addresses.
    #[must_use]
    pub(crate) fn is_wired(&self) -> bool {
        self.ways.is_some()
    }

    fn ways(&self) -> Result<Arc<Ways>, Refusal> {
        self.ways.clone().ok_or(Refusal::Unwired(Source::Coordinator))
    }

    /// Every registered shard.
    pub(crate) async fn shards(&self) -> Outcome<Vec<ShardRegistryEntry>> {
        let ways = self.ways()?;
        let call = |mut rpc: Rpc, request| async move { rpc.list_shards(request).await };
        let fetch = || async move { Ok(ways.ask(ListShardsRequest {}, call).await?.shards) };
        self.shards.get((), WITHIN, fetch).await
    }

    /// One page of domains with their owners; the empty token is the first.
    pub(crate) async fn domains(&self, page: &str) -> Outcome<ListDomainAssignmentsResponse> {
        let ways = self.ways()?;
        let request = ListDomainAssignmentsRequest { page_size: PAGE, page_token: page.to_owned() };
        let call =
            |mut rpc: Rpc, request| async move { rpc.list_domain_assignments(request).await };
        let fetch = || async move { ways.ask(request, call).await };
        self.domains.get(page.to_owned(), WITHIN, fetch).await
    }

    /// The latest report of each shard, or of one.
    pub(crate) async fn reports(&self, shard: &str) -> Outcome<Vec<ShardReportSnapshot>> {
        let ways = self.ways()?;
        let request = ListShardReportsRequest { shard_id: shard.to_owned() };
        let call = |mut rpc: Rpc, request| async move { rpc.list_shard_reports(request).await };
        let fetch = || async move { Ok(ways.ask(request, call).await?.reports) };
        self.reports.get(shard.to_owned(), WITHIN, fetch).await
    }

    /// Slices of provider accounts.
    pub(crate) async fn quotas(&self) -> Outcome<Vec<QuotaAllocation>> {
        let ways = self.ways()?;
        let call = |mut rpc: Rpc, request| async move { rpc.list_quotas(request).await };
        let fetch = || async move { Ok(ways.ask(ListQuotasRequest {}, call).await?.allocations) };
        self.quotas.get((), WITHIN, fetch).await
    }

    /// Registered providers.
    pub(crate) async fn providers(&self) -> Outcome<Vec<ProviderEntry>> {
        let ways = self.ways()?;
        let call = |mut rpc: Rpc, request| async move { rpc.list_providers(request).await };
        let fetch = || async move { Ok(ways.ask(ListProvidersRequest {}, call).await?.providers) };
        self.providers.get((), WITHIN, fetch).await
    }

    /// What every replica says of itself. One that is silent is a row, not a failure.
    pub(crate) async fn replicas(&self) -> Outcome<Vec<Replica>> {
        let ways = self.ways()?;
        self.replicas.get((), WITHIN, || async move { Ok(ways.every_status().await) }).await
    }
}

/// How the replicas are reached. A round over them is one question at a time, so each question has
/// a way of its own.
#[derive(Debug)]
struct Ways {
    addresses: Vec<String>,
    security: Security,
    spare: Mutex<Vec<Replicas>>,
}

impl Ways {
    fn take(&self) -> Replicas {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let new =
            || Replicas::new(self.addresses.clone(), self.security.clone(), Resolver::system());
        spare.unwrap_or_else(new)
    }

    fn give_back(&self, replicas: Replicas) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(replicas);
        }
    }

    async fn ask<M, R, F>(
        &self,
        message: M,
        call: impl Fn(Rpc, Request<M>) -> F + Send + Sync,
    ) -> Result<R, Refusal>
    where
        M: Clone + Send,
        F: Future<Output = Result<Response<R>, Status>> + Send,
    {
        let mut replicas = self.take();
        let mut said = Vec::new();
        let mut round = replicas.round(Instant::now() + WITHIN).await;
        while let Some(attempt) = round.next_attempt() {
            let rpc = message_limits!(CoordinatorClient::new(attempt.channel.clone()));
            let request = attempt.request(message.clone());
            match attempt.in_time(call(rpc, request)).await {
                Ok(answer) => {
                    round.found(attempt);
                    self.give_back(replicas);
                    return Ok(answer);
                }
                Err(status) => {
                    said.push(format!("{}: {}", attempt.addr(), in_words(&status)));
                    round.missed(attempt, turn(&status));
                }
            }
        }
        let nobody = || format!("{} does not resolve", self.addresses.join(", "));
        let said = if said.is_empty() { nobody() } else { said.join("; ") };
        self.give_back(replicas);
        Err(Refusal::failed(Source::Coordinator, said))
    }

    async fn every_status(&self) -> Vec<Replica> {
        let mut replicas = self.take();
        let ask = |(address, channel): (String, Channel)| async move {
            let mut rpc = message_limits!(CoordinatorClient::new(channel));
            // Less than the whole, so that a silent replica is a row.
            let within = WITHIN / 2;
            let mut request = Request::new(RaftStatusRequest {});
            request.set_timeout(within);
            let status = match timeout(within, rpc.raft_status(request)).await {
                Ok(Ok(answer)) => Ok(answer.into_inner()),
                Ok(Err(status)) => Err(in_words(&status)),
                Err(_) => Err("no answer in time".to_owned()),
            };
            Replica { address, status }
        };
        let every = replicas.every().await;
        let answers = join_all(every.into_iter().map(ask)).await;
        self.give_back(replicas);
        answers
    }
}

fn turn(status: &Status) -> Turn {
    match status.code() {
        Code::FailedPrecondition => Turn::after(status),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => Turn::Next,
        // No other replica would say otherwise.
        _ => Turn::Stop,
    }
}

/// A refusal as people read it.
pub(super) fn in_words(status: &Status) -> String {
    match status.message() {
        "" => bigfleet_net::grpc::code_name(status.code()).to_owned(),
        message => message.to_owned(),
    }
}
