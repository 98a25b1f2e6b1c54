//! `ShardObserve`: the live view (wire chapter §5.1). Everything is read-only and
//! holds the engine for moments only, so that no reader lengthens a cycle.

mod explain;
mod machine;
mod machines;
mod sessions;
mod watch;
mod what_if;

use std::sync::Arc;

use bigfleet_net::{
    message_limits,
    peer::{Gate, Peer},
    rule::Rule,
};
use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, ExplainNeedRequest, ExplainNeedResponse, GetMachineRequest,
    GetMachineResponse, ListMachinesRequest, ListMachinesResponse, ListSessionsRequest,
    ListSessionsResponse, WatchDecisionsRequest, WatchSummaryRequest, WhatIfRequest,
    WhatIfResponse,
    shard_observe_server::{ShardObserve, ShardObserveServer},
};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use self::what_if::Questions;
use crate::{
    audit::{Filter, Start},
    metrics::WatchMethod,
    readers::{Answers, Readers},
    shard::Shard,
};

/// The service.
pub(crate) struct Observe {
    shard: Arc<Shard>,
    readers: Arc<Readers>,
    gate: Gate,
    questions: Questions,
    /// Whoever looks at all machines in one hold of the engine does so alone: a cycle
    /// that begins meanwhile waits for one of them at most.
    looking: Arc<Semaphore>,
}

impl Observe {
    pub(crate) fn new(shard: Arc<Shard>, readers: Arc<Readers>, gate: Gate) -> Self {
        let looking = Arc::new(Semaphore::new(1));
        Self { shard, readers, gate, questions: Questions::default(), looking }
    }

    pub(crate) fn into_service(self) -> ShardObserveServer<Self> {
        message_limits!(ShardObserveServer::new(self))
    }

    fn admit<T>(&self, request: &Request<T>) -> Result<(), Status> {
        self.gate.admit(request, &Rule::readers())
    }

    /// Works off the runtime's threads, one at a time.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shard) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let closed = |error| Status::internal(format!("no turn: {error}"));
        let turn = self.looking.clone().acquire_owned().await.map_err(closed)?;
        let shard = self.shard.clone();
        let worked = tokio::task::spawn_blocking(move || {
            // A caller that goes away does not make room for the next before time.
            let _turn = turn;
            work(&shard)
        });
        worked.await.map_err(|error| Status::internal(error.to_string()))
    }
}

#[tonic::async_trait]
impl ShardObserve for Observe {
    type WatchSummaryStream = Answers<CycleSummary>;
    type WatchDecisionsStream = Answers<DecisionRecord>;

    async fn watch_summary(
        &self,
        request: Request<WatchSummaryRequest>,
    ) -> Result<Response<Self::WatchSummaryStream>, Status> {
        self.admit(&request)?;
        let place = self.readers.admit(WatchMethod::WatchSummary, &request)?;
        Ok(Response::new(place.serve(watch::Summaries::of(&self.shard))))
    }

    async fn watch_decisions(
        &self,
        request: Request<WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        self.admit(&request)?;
        let place = self.readers.admit(WatchMethod::WatchDecisions, &request)?;
        let request = request.into_inner();
        let start = Start::from_wire(request.after_sequence);
        let cursor = self.shard.audit.subscribe(start, Filter::from(&request));
        Ok(Response::new(place.serve(watch::Decisions(cursor))))
    }

    async fn list_machines(
        &self,
        request: Request<ListMachinesRequest>,
    ) -> Result<Response<ListMachinesResponse>, Status> {
        self.admit(&request)?;
        let listing = machines::Listing::of(request.into_inner())?;
        Ok(Response::new(listing.read(&self.shard).await))
    }

    async fn get_machine(
        &self,
        request: Request<GetMachineRequest>,
    ) -> Result<Response<GetMachineResponse>, Status> {
        self.admit(&request)?;
        let id = request.into_inner().machine_id;
        let desk = self.shard.desk().await;
        let known = desk.get_machine(&id.as_str().into());
        drop(desk);
        known.map(Response::new).ok_or_else(|| {
            Status::not_found(format!("machine_id: no machine {id:?} here; ask the other shards"))
        })
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        self.admit(&request)?;
        let sessions = self.shard.list_sessions(&request.into_inner().cluster_id);
        Ok(Response::new(ListSessionsResponse { sessions }))
    }

    async fn explain_need(
        &self,
        request: Request<ExplainNeedRequest>,
    ) -> Result<Response<ExplainNeedResponse>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        let answer = self.look(move |shard| shard.explain_need(&request)).await?;
        answer.map(Response::new).ok_or_else(|| {
            Status::not_found("no such need in the last cycle; InspectNeeds lists those there are")
        })
    }

    async fn what_if(
        &self,
        request: Request<WhatIfRequest>,
    ) -> Result<Response<WhatIfResponse>, Status> {
        self.admit(&request)?;
        let asker = asker(Peer::of(&request));
        let need = what_if::checked(request.into_inner(), self.shard.clock.wall())?;
        self.questions.admit(asker)?;
        let answer = self.look(move |shard| shard.what_if(&need)).await?;
        Ok(Response::new(answer))
    }
}

/// Who asks: an identity, or without one an address.
fn asker(peer: Option<&Peer>) -> String {
    peer.map_or_else(String::new, |peer| {
        peer.identity().map_or_else(|| peer.addr().ip().to_string(), ToString::to_string)
    })
}
