//! Shards, found through the coordinator.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_net::{
    grpc::connect_lazy, identity::Identity, message_limits, rule::Rule, tls::Security,
};
use bigfleet_wire::v1alpha1::{
    ExplainNeedRequest, ExplainNeedResponse, GetMachineRequest, GetMachineResponse,
    InspectNeedsRequest, ListMachinesRequest, ListMachinesResponse, ListSessionsRequest,
    SessionView, ShardRegistryEntry, shard_observe_client::ShardObserveClient,
    shard_read_client::ShardReadClient,
};
use prost::Message as _;
use tokio::sync::Semaphore;
use tonic::{Code, Request, Status, transport::Channel};

use super::{
    coalesce::{Coalesced, Outcome},
    coordinator::{Coordinator, in_words},
    decisions::{self, KEPT, Stretch, Told, Wanted},
    needs,
    places::Places,
};
use crate::{
    api::{Refusal, Source},
    metrics::Metrics,
    view::need::Rows,
};

/// Time for one call of a shard.
pub(crate) const WITHIN: Duration = Duration::from_secs(5);

/// Bytes of needs, machines and decisions that are held for who may yet ask the same.
const NEEDS_HELD: usize = 128 << 20;
const MACHINES_HELD: usize = 50_000;
const DECISIONS_HELD: usize = 2 * KEPT;

/// Long stretches of logs that are read at once: each may become tens of megabytes.
const LONG_AT_ONCE: usize = 4;

/// What was asked of which shard.
type Key<Q> = (String, Q);

/// Shards that the coordinator lists; calls are shared and bounded.
#[derive(Debug)]
pub(crate) struct Shards {
    coordinator: Arc<Coordinator>,
    security: Security,
    /// By id, with the address that each was dialled at.
    dialled: Mutex<HashMap<String, (String, Shard)>>,
    /// The last list that a coordinator gave.
    known: Mutex<Arc<[ShardRegistryEntry]>>,
    /// Needs as JSON, by shard, cluster and limit.
    needs: Coalesced<(String, String, i32), Rows>,
    machines: Coalesced<Key<Vec<u8>>, ListMachinesResponse>,
    machine: Coalesced<Key<String>, GetMachineResponse>,
    sessions: Coalesced<Key<String>, Vec<SessionView>>,
    explained: Coalesced<Key<(String, String, String)>, ExplainNeedResponse>,
    decisions: Coalesced<Key<(Stretch, Wanted)>, Told>,
    /// Places for reading much of a log, of whichever shard.
    long: Arc<Semaphore>,
}

/// One shard to call.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    /// Its id.
    pub(crate) id: String,
    channel: Channel,
    pub(super) places: Arc<Places>,
}

impl Shards {
    /// Dials nobody yet.
    #[must_use]
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        security: &Security,
        metrics: &Metrics,
    ) -> Self {
        let calls = metrics.calls(Source::Shard);
        Self {
            coordinator,
            security: security.clone(),
            dialled: Mutex::default(),
            known: Mutex::new(Arc::new([])),
            needs: Coalesced::holding(&calls, NEEDS_HELD, |rows| rows.json.len()),
            machines: Coalesced::holding(&calls, MACHINES_HELD, |page| page.machines.len()),
            machine: Coalesced::new(&calls),
            sessions: Coalesced::new(&calls),
            explained: Coalesced::new(&calls),
            decisions: Coalesced::holding(&calls, DECISIONS_HELD, |told| told.records.len()),
            long: Arc::new(Semaphore::new(LONG_AT_ONCE)),
        }
    }

    /// Every shard. While no coordinator answers, those that were last listed: the shards serve on
    /// without one, and so do their screens.
    pub(crate) async fn listed(&self) -> Result<Arc<[ShardRegistryEntry]>, Refusal> {
        let listed = self.coordinator.shards().await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match listed {
            Ok(listed) => *known = listed.value.as_slice().into(),
            Err(refusal) if known.is_empty() => return Err(refusal),
            Err(_) => {}
        }
        Ok(known.clone())
    }

    /// The shard of this id.
    pub(crate) async fn find(&self, id: &str) -> Result<Shard, Refusal> {
        let listed = self.listed().await?;
        let entry = listed.iter().find(|entry| entry.shard_id == id).ok_or_else(|| {
            Refusal::NotFound(format!("no shard is called {id:?}; /topology lists them"))
        })?;
        let mut dialled = self.dialled.lock().unwrap_or_else(PoisonError::into_inner);
        dialled.retain(|id, _| listed.iter().any(|entry| entry.shard_id == *id));
        if let Some((addr, shard)) = dialled.get(id)
            && *addr == entry.address
        {
            return Ok(shard.clone());
        }
        // An address may by now be another's.
        let expect = Rule::exactly(Identity::Shard(id.to_owned()));
        let channel = connect_lazy(&entry.address, &self.security, expect)
            .map_err(|error| Refusal::failed(Source::Shard, error))?;
        let shard = Shard { id: id.to_owned(), channel, places: Arc::default() };
        dialled.insert(id.to_owned(), (entry.address.clone(), shard.clone()));
        Ok(shard)
    }

    /// Needs of one cluster, or of all.
    pub(crate) async fn needs(&self, id: &str, request: InspectNeedsRequest) -> Outcome<Rows> {
        let shard = self.find(id).await?;
        let key = (id.to_owned(), request.cluster_id.clone(), request.limit);
        self.needs.get(key, needs::AT_MOST, || needs::read(shard, request)).await
    }

    /// One page of machines.
    pub(crate) async fn machines(
        &self,
        id: &str,
        request: ListMachinesRequest,
    ) -> Outcome<ListMachinesResponse> {
        let shard = self.find(id).await?;
        let key = (id.to_owned(), request.encode_to_vec());
        let fetch = || async move {
            let _place = shard.places.calls.acquire().await;
            let answer = shard.observe().list_machines(shard.request(request)).await;
            answer.map(tonic::Response::into_inner).map_err(|status| shard.refused(&status))
        };
        self.machines.get(key, WITHIN, fetch).await
    }

    /// One machine with its last transitions.
    pub(crate) async fn machine(&self, id: &str, machine: &str) -> Outcome<GetMachineResponse> {
        let shard = self.find(id).await?;
        let request = GetMachineRequest { machine_id: machine.to_owned() };
        let fetch = || async move {
            let _place = shard.places.calls.acquire().await;
            let answer = shard.observe().get_machine(shard.request(request)).await;
            answer.map(tonic::Response::into_inner).map_err(|status| shard.refused(&status))
        };
        self.machine.get((id.to_owned(), machine.to_owned()), WITHIN, fetch).await
    }

    /// Sessions of all clusters, or of one.
    pub(crate) async fn sessions(&self, id: &str, cluster: &str) -> Outcome<Vec<SessionView>> {
        let shard = self.find(id).await?;
        let request = ListSessionsRequest { cluster_id: cluster.to_owned() };
        let fetch = || async move {
            let _place = shard.places.calls.acquire().await;
            let answer = shard.observe().list_sessions(shard.request(request)).await;
            answer
                .map(|answer| answer.into_inner().sessions)
                .map_err(|status| shard.refused(&status))
        };
        self.sessions.get((id.to_owned(), cluster.to_owned()), WITHIN, fetch).await
    }

    /// Why one need fares as it does.
    pub(crate) async fn explain(
        &self,
        id: &str,
        request: ExplainNeedRequest,
    ) -> Outcome<ExplainNeedResponse> {
        let shard = self.find(id).await?;
        let need = (
            request.cluster_id.clone(),
            request.profile_fingerprint.clone(),
            request.group.clone(),
        );
        let fetch = || async move {
            let _place = shard.places.calls.acquire().await;
            let answer = shard.observe().explain_need(shard.request(request)).await;
            answer.map(tonic::Response::into_inner).map_err(|status| shard.refused(&status))
        };
        self.explained.get((id.to_owned(), need), WITHIN, fetch).await
    }

    /// What was decided.
    pub(crate) async fn decisions(
        &self,
        id: &str,
        stretch: Stretch,
        wanted: Wanted,
    ) -> Outcome<Told> {
        let (shard, long) = (self.find(id).await?, self.long.clone());
        let key = (id.to_owned(), (stretch, wanted.clone()));
        let fetch = || decisions::read(shard, long, stretch, wanted);
        self.decisions.get(key, decisions::AT_MOST, fetch).await
    }
}

impl Shard {
    /// Verdicts.
    #[must_use]
    pub(crate) fn read(&self) -> ShardReadClient<Channel> {
        message_limits!(ShardReadClient::new(self.channel.clone()))
    }

    /// The live view.
    #[must_use]
    pub(crate) fn observe(&self) -> ShardObserveClient<Channel> {
        message_limits!(ShardObserveClient::new(self.channel.clone()))
    }

    /// A message with the usual deadline.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(WITHIN);
        request
    }

    /// It did not answer in its time.
    #[must_use]
    pub(crate) fn late(&self) -> Refusal {
        Refusal::failed(Source::Shard, format!("{}: no answer in time", self.id))
    }

    /// What this refusal of the shard means to whoever asked the dashboard.
    #[must_use]
    pub(crate) fn refused(&self, status: &Status) -> Refusal {
        match status.code() {
            Code::NotFound => Refusal::NotFound(in_words(status)),
            Code::InvalidArgument => Refusal::BadParameter(in_words(status)),
            _ => Refusal::failed(Source::Shard, format!("{}: {}", self.id, in_words(status))),
        }
    }
}
