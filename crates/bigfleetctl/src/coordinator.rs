//! The coordinator's client: it asks whoever leads.

use std::time::Duration;

use bigfleet_net::{
    leader::{Replicas, Resolver, Turn},
    message_limits,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{DomainAssignment, ListProvidersRequest, ProviderEntry};
use bigfleet_wire::v1alpha1::{
    ListDomainAssignmentsRequest, ListShardReportsRequest, ListShardsRequest, ListShardsResponse,
    RaftStatusRequest, RaftStatusResponse, ShardRegistryEntry, ShardReportSnapshot,
    coordinator_client::CoordinatorClient,
};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use tonic::{Code, Request, Response, Status, transport::Channel};

use crate::Error;

/// The generated client.
pub type Rpc = CoordinatorClient<Channel>;

/// Where a coordinator is if nobody says.
pub const DEFAULT: &str = "127.0.0.1:7790";

/// What non-leaders say (coordinator chapter §3).
const NOT_LEADER: &str = "not leader";

/// Rows of one page of domains.
const PAGE: i32 = 10_000;

/// The replicas, of which the leader is asked.
#[derive(Debug)]
pub struct Coordinator {
    addresses: Vec<String>,
    replicas: Replicas,
    timeout: Duration,
}

/// What one replica says of itself.
#[derive(Debug)]
pub struct Replica {
    /// As it was dialled.
    pub addr: String,
    /// Its status and the clock that its answer showed, or what is wrong.
    pub status: Result<(RaftStatusResponse, Option<String>), Status>,
}

impl Coordinator {
    /// Checks the addresses and dials nothing yet.
    pub fn new(
        addresses: Vec<String>,
        security: Security,
        timeout: Duration,
    ) -> Result<Self, Error> {
        for address in &addresses {
            bigfleet_net::grpc::check_address(address)?;
        }
        let replicas = Replicas::new(addresses.clone(), security, Resolver::system());
        Ok(Self { addresses, replicas, timeout })
    }

    /// Where the replicas are, as written.
    #[must_use]
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Asks the leader, wherever it is; one round of all replicas fits the timeout.
    pub async fn ask<M: Clone, R>(
        &mut self,
        what: &str,
        message: M,
        call: impl AsyncFn(Rpc, Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<R, Error> {
        self.ask_within(self.timeout, what, message, call).await
    }

    /// [`Coordinator::ask`] within another time than the usual.
    pub async fn ask_within<M: Clone, R>(
        &mut self,
        within: Duration,
        what: &str,
        message: M,
        call: impl AsyncFn(Rpc, Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<R, Error> {
        let mut tried = Tried::default();
        let mut round = self.replicas.round(Instant::now() + within).await;
        while let Some(attempt) = round.next_attempt() {
            let rpc = message_limits!(CoordinatorClient::new(attempt.channel.clone()));
            let request = attempt.request(message.clone());
            match attempt.in_time(call(rpc, request)).await {
                Ok(answer) => {
                    round.found(attempt);
                    return Ok(answer);
                }
                Err(status) => {
                    let turn = tried.refused(what, &attempt.addr(), &status);
                    round.missed(attempt, turn);
                }
            }
        }
        Err(tried.verdict(&self.addresses))
    }

    /// A client that stays with the leader of now: for a stream.
    pub async fn leader(&mut self) -> Result<Rpc, Error> {
        let found = std::sync::Mutex::new(None);
        let call = async |mut rpc: Rpc, request| {
            let answer = rpc.list_shards(request).await?;
            if let Ok(mut found) = found.lock() {
                *found = Some(rpc);
            }
            Ok(answer)
        };
        self.ask("list-shards", ListShardsRequest {}, call).await?;
        let found = found.into_inner().ok().flatten();
        found.ok_or_else(|| Error::NoLeader("it was lost at once".to_owned()))
    }

    /// Every registered shard.
    pub async fn shards(&mut self) -> Result<Vec<ShardRegistryEntry>, Error> {
        self.shards_within(self.timeout).await
    }

    /// [`Coordinator::shards`] within another time than the usual.
    pub async fn shards_within(
        &mut self,
        within: Duration,
    ) -> Result<Vec<ShardRegistryEntry>, Error> {
        Ok(self.registry_within(within).await?.shards)
    }

    /// Every registered shard, and for how long the leader could hear them.
    pub async fn registry(&mut self) -> Result<ListShardsResponse, Error> {
        self.registry_within(self.timeout).await
    }

    async fn registry_within(&mut self, within: Duration) -> Result<ListShardsResponse, Error> {
        let call = async |mut rpc: Rpc, request| rpc.list_shards(request).await;
        self.ask_within(within, "list-shards", ListShardsRequest {}, call).await
    }

    /// Every domain with its owner, page by page.
    pub async fn domains(&mut self) -> Result<Vec<DomainAssignment>, Error> {
        let mut all = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = ListDomainAssignmentsRequest { page_size: PAGE, page_token };
            let call = async |mut rpc: Rpc, request| rpc.list_domain_assignments(request).await;
            let page = self.ask("list-domain-assignments", request, call).await?;
            all.extend(page.assignments);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// The latest report of each shard, or of one.
    pub async fn reports(&mut self, shard: &str) -> Result<Vec<ShardReportSnapshot>, Error> {
        let request = ListShardReportsRequest { shard_id: shard.to_owned() };
        let call = async |mut rpc: Rpc, request| rpc.list_shard_reports(request).await;
        Ok(self.ask("list-shard-reports", request, call).await?.reports)
    }

    /// Every registered provider.
    pub async fn providers(&mut self) -> Result<Vec<ProviderEntry>, Error> {
        let call = async |mut rpc: Rpc, request| rpc.list_providers(request).await;
        Ok(self.ask("list-providers", ListProvidersRequest {}, call).await?.providers)
    }

    /// What every replica says of itself, asked all at once.
    pub async fn every_status(&mut self) -> Vec<Replica> {
        let within = self.timeout;
        let ask = |(addr, channel): (String, Channel)| async move {
            let mut rpc = message_limits!(CoordinatorClient::new(channel));
            let mut request = Request::new(RaftStatusRequest {});
            request.set_timeout(within);
            let late = |_| Err(Status::deadline_exceeded("no answer in time"));
            let answer = timeout(within, rpc.raft_status(request)).await.unwrap_or_else(late);
            let status = answer.map(|answer| {
                let date = answer.metadata().get("date").and_then(|date| date.to_str().ok());
                let date = date.map(str::to_owned);
                (answer.into_inner(), date)
            });
            Replica { addr, status }
        };
        join_all(self.replicas.every().await.into_iter().map(ask)).await
    }
}

/// What the replicas of a round said.
#[derive(Default)]
struct Tried {
    /// No other replica would say otherwise.
    verdict: Option<Error>,
    /// A leader that may not do it now says so in the code of non-leaders.
    refused: Option<Error>,
    lines: Vec<String>,
}

impl Tried {
    fn refused(&mut self, what: &str, addr: &str, status: &Status) -> Turn {
        let message = status.message();
        match status.code() {
            Code::FailedPrecondition => {
                if message.contains(NOT_LEADER) {
                    self.lines.push(format!("{addr} does not lead"));
                } else {
                    self.lines.push(format!("{addr}: {message}"));
                    self.refused = Some(Error::refused(what, status));
                }
                Turn::after(status)
            }
            // A lost connection, none, or no quorum: the outcome is unknown, and every
            // command may be given twice.
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                self.lines.push(format!("{addr}: {}", reachable(message)));
                Turn::Next
            }
            _ => {
                self.verdict = Some(Error::refused(what, status));
                Turn::Stop
            }
        }
    }

    fn verdict(self, addresses: &[String]) -> Error {
        self.verdict.or(self.refused).unwrap_or_else(|| {
            let nobody = || format!("{} does not resolve, or took too long", addresses.join(", "));
            let lines = self.lines.join("; ");
            let lines = if lines.is_empty() { nobody() } else { lines };
            // Who named no coordinator may have meant another than this.
            let guessed = match addresses == [DEFAULT] {
                true => {
                    "; it is asked where nothing else is said: give --coordinator, or a \
                         configuration with BIGFLEET_CONFIG"
                }
                false => "",
            };
            Error::NoLeader(lines + guessed)
        })
    }
}

/// The transport's own words say little.
fn reachable(message: &str) -> &str {
    if message.is_empty() {
        "no connection"
    } else if message.contains("h2 protocol error") {
        "it does not answer as gRPC does; if it speaks TLS, give --tls-cert, --tls-key and --tls-ca"
    } else {
        message
    }
}
