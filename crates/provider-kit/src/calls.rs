//! The four mutations, from sound arguments to the durable answer (provider chapter
//! §1, steps 3 to 7).

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use bigfleet_model::{ClusterId, MachineId};
use bigfleet_net::{grpc::Deadline, peer::Peer};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{
        Binding, Call, Effects, Kind, Known, News, Operation, OperationId, Refused, Step, Token,
        admit,
    },
};
use tokio::time::Instant;

use crate::{
    book::{Book, Books, Draft, Health, Patience, RecordChange, Start, Unwritten},
    clock::Clock,
    defects,
    inflight::InflightCap,
    metrics::Metrics,
    random::OperationIds,
    record::Record,
};

/// A mutation whose arguments are sound.
pub(crate) struct Mutation {
    pub(crate) kind: Kind,
    pub(crate) machine: MachineId,
    pub(crate) token: Token,
    /// Of a Configure.
    pub(crate) cluster: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) blob: Vec<u8>,
    /// Of a Drain.
    pub(crate) grace: Duration,
    /// When the caller stops waiting.
    pub(crate) deadline: Option<Instant>,
    /// Whence it came.
    pub(crate) peer: Option<SocketAddr>,
}

impl Mutation {
    /// Without what only some kinds have.
    pub(crate) fn new(kind: Kind, machine: &str, token: Token) -> Self {
        Self {
            kind,
            machine: machine.into(),
            token,
            cluster: None,
            metadata: BTreeMap::new(),
            blob: Vec::new(),
            grace: Duration::ZERO,
            deadline: None,
            peer: None,
        }
    }

    /// With what the request itself tells.
    pub(crate) fn of<T>(self, request: &tonic::Request<T>) -> Self {
        let peer = Peer::of(request).map(Peer::addr);
        Self { deadline: Deadline::of(request), peer, ..self }
    }
}

/// Why a mutation was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Protocol(#[from] Refused),
    #[error("{0} transitions are under way, which is the cap; try again later")]
    Busy(usize),
    #[error(transparent)]
    Unwritten(#[from] Unwritten),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Ack {
    pub(crate) operation: OperationId,
    pub(crate) record: Arc<Record>,
}

/// What accepting a call needs.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) book: Arc<Book>,
    pub(crate) ids: Arc<OperationIds>,
    pub(crate) clock: Clock,
    pub(crate) inflight: InflightCap,
    pub(crate) metrics: Metrics,
    pub(crate) health: Arc<Health>,
}

impl Calls {
    /// Fence, existence, replay, position, acceptance: one step per machine, and its
    /// mark is durable before any answer but a fenced one.
    pub(crate) async fn mutate(&self, mutation: Mutation) -> Result<Ack, Refusal> {
        if self.health.is_stopping() {
            return Err(Unwritten::Stopping.into());
        }
        let machine = mutation.machine.clone();
        let patience = Patience::Caller { deadline: mutation.deadline };
        let decide = |books: &Books| self.decide(books, mutation);
        let (outcome, record) = self.book.change(&machine, patience, decide).await?;
        let operation = outcome?;
        let record = record.ok_or_else(|| Refused::NotFound(machine.to_string()))?;
        Ok(Ack { operation, record })
    }

    fn decide(&self, books: &Books, mutation: Mutation) -> (Result<OperationId, Refusal>, Draft) {
        let Mutation { kind, ref machine, .. } = mutation;
        let record = books.machines.get(machine);
        let recorded = books.operations.get(machine, kind);
        let known = record.map(|record| Known {
            state: record.machine.state,
            cluster: record.machine.cluster.as_deref(),
            recorded: recorded.is_some(),
        });
        let call =
            Call { kind, machine, cluster: mutation.cluster.as_deref(), token: &mutation.token };
        let admission = admit(&books.fence, call, known);
        let draft = Draft { advance: admission.advance, ..Draft::default() };
        match (admission.outcome, record, recorded) {
            (Ok(Step::Start(effects)), Some(record), _) => {
                let Some(inflight) = self.inflight.enter() else {
                    return (Err(Refusal::Busy(self.inflight.cap())), draft);
                };
                let operation = Operation {
                    id: self.ids.mint(),
                    started: self.clock.now(),
                    grace: mutation.grace,
                };
                let id = operation.id.clone();
                defects::connected(machine, kind, mutation.peer);
                if active(Mutant::BigBlobHalfBound) && mutation.blob.len() > defects::BIG_BLOB {
                    let cap = self.inflight.cap();
                    let half = accept(record, effects, mutation, operation, inflight, draft);
                    return (Err(Refusal::Busy(cap)), Draft { start: None, ..half });
                }
                (Ok(id), accept(record, effects, mutation, operation, inflight, draft))
            }
            (Ok(_), _, Some(_)) if defects::forgets(machine, kind, mutation.peer) => {
                (Ok(self.ids.mint()), draft)
            }
            (Ok(_), _, Some(operation)) => (Ok(operation.id.clone()), draft),
            (Ok(_), ..) => (Err(Refused::NotFound(machine.to_string()).into()), draft),
            (Err(Refused::NotFound(_)), ..) if active(Mutant::UnknownIsCreated) => {
                let invented = defects::invent(books, machine);
                (Ok(self.ids.mint()), invented.map_or_else(Draft::default, Draft::put))
            }
            (Err(refused), record, _) => {
                if matches!(refused, Refused::Fence(_)) {
                    self.metrics.fenced.inc();
                    defects::fenced(machine);
                }
                let lifecycle = matches!(refused, Refused::Lifecycle(_));
                let draft = match record.filter(|_| lifecycle) {
                    Some(record) => defects::rejected(record, draft),
                    None => draft,
                };
                (Err(refused.into()), draft)
            }
        }
    }
}

fn accept(
    record: &Record,
    effects: Effects,
    mutation: Mutation,
    operation: Operation,
    inflight: crate::inflight::Inflight,
    draft: Draft,
) -> Draft {
    let Mutation { kind, cluster, metadata, blob, .. } = mutation;
    let binding = cluster.map(|cluster| Binding { cluster: ClusterId::from(cluster), metadata });
    let mut next = record.clone();
    next.since = operation.started;
    effects.apply(&mut next.machine, News { binding, ..News::default() });
    let start = Start { kind, operation: operation.clone(), blob, inflight };
    Draft {
        record: RecordChange::Put(next),
        operation: Some(Some((kind, operation))),
        start: Some(start),
        ..draft
    }
}
