//! A client that asks every replica until one leads.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bigfleet_net::{grpc::connect_lazy, message_limits, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    ListProvidersRequest, ListShardsRequest, ProviderEntry, RaftStatusRequest, RaftStatusResponse,
    ShardRegistryEntry, ShardReport, UpsertProviderRequest, coordinator_client::CoordinatorClient,
};
use tokio::time::timeout;
use tonic::{Code, Status, transport::Channel};

/// A replica that is silent costs this much.
const PATIENCE: Duration = Duration::from_secs(2);

/// One connection to each replica.
pub(crate) struct Client {
    replicas: Vec<CoordinatorClient<Channel>>,
    last: AtomicUsize,
}

impl Client {
    pub(crate) fn new(addresses: impl Iterator<Item = String>, security: &Security) -> Self {
        let dial = |addr: String| {
            let channel = connect_lazy(&addr, security, Rule::any_certificate()).unwrap();
            message_limits!(CoordinatorClient::new(channel))
        };
        Self { replicas: addresses.map(dial).collect(), last: AtomicUsize::new(0) }
    }

    /// The connection to one replica.
    pub(crate) fn replica(&self, replica: usize) -> CoordinatorClient<Channel> {
        self.replicas[replica].clone()
    }

    /// What one replica says of itself.
    pub(crate) async fn status(&self, replica: usize) -> Result<RaftStatusResponse, Status> {
        let mut client = self.replica(replica);
        let asked = timeout(PATIENCE, client.raft_status(RaftStatusRequest {})).await;
        asked.map_err(|_| Status::unavailable("silent"))?.map(tonic::Response::into_inner)
    }

    /// Asks the last leader first, then the others. The first answer that is not
    /// "ask another" counts.
    pub(crate) async fn ask<T, F>(
        &self,
        mut call: impl FnMut(CoordinatorClient<Channel>) -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let first = self.last.load(Ordering::Relaxed);
        let mut refusal = Status::unavailable("nobody was asked");
        for turn in 0..self.replicas.len() {
            let replica = (first + turn) % self.replicas.len();
            let asked = timeout(PATIENCE, call(self.replica(replica))).await;
            match asked.unwrap_or_else(|_| Err(Status::unavailable("silent"))) {
                Err(status)
                    if matches!(status.code(), Code::FailedPrecondition | Code::Unavailable) =>
                {
                    refusal = status;
                }
                answer => {
                    self.last.store(replica, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(refusal)
    }

    /// A write: acknowledged, it must never be lost.
    pub(crate) async fn write(&self, name: &str) -> Result<(), Status> {
        let provider = ProviderEntry {
            name: name.to_owned(),
            address: "p:1".to_owned(),
            region: String::new(),
        };
        let request = UpsertProviderRequest { provider: Some(provider) };
        self.ask(|mut one| {
            let request = request.clone();
            async move { one.upsert_provider(request).await.map(drop) }
        })
        .await
    }

    /// Names that were written.
    pub(crate) async fn written(&self) -> Result<Vec<String>, Status> {
        let request = ListProvidersRequest {};
        let listed = self.ask(|mut one| async move { one.list_providers(request).await }).await?;
        Ok(listed.into_inner().providers.into_iter().map(|provider| provider.name).collect())
    }

    pub(crate) async fn shards(&self) -> Result<Vec<ShardRegistryEntry>, Status> {
        let request = ListShardsRequest {};
        let listed = self.ask(|mut one| async move { one.list_shards(request).await }).await?;
        Ok(listed.into_inner().shards)
    }

    pub(crate) async fn report(&self, report: &ShardReport) -> Result<(), Status> {
        self.ask(|mut one| {
            let report = report.clone();
            async move { one.report_shard(report).await.map(drop) }
        })
        .await
    }
}
