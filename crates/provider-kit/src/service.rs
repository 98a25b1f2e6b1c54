//! `bigfleet.v1alpha1.CapacityProvider` on the wire.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bigfleet_net::{
    grpc::{MAX_MESSAGE_BYTES, code_name},
    identity::Identity,
    peer::Gate,
    rule::Rule,
};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{BadArgument, Cursor, FenceRefusal, Kind, Refused, Reject, StateSet, Token},
};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status};

use crate::{
    book::{Listing, Unwritten},
    calls::{Ack, Calls, Mutation, Refusal},
    cloud::Caps,
    config::Config,
    defects,
};

/// A mutation carries a blob of 4 MiB at most; List is the large one, and goes out.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

/// Serves the six calls.
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    calls: Calls,
    config: Arc<Config>,
    caps: Caps,
    gate: Gate,
}

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    pub(crate) fn new(calls: Calls, config: Arc<Config>, caps: Caps) -> Self {
        let gate = Gate::new(calls.metrics.denied.clone());
        Self { shared: Arc::new(Shared { calls, config, caps, gate }) }
    }

    /// For a gRPC server, with the limits of the provider chapter.
    #[must_use]
    pub fn into_server(self) -> CapacityProviderServer<Self> {
        CapacityProviderServer::new(self)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Counts the call, and turns a panic into INTERNAL: the process lives on.
    async fn observed<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Answer<T> {
        let metrics = &self.shared.calls.metrics;
        let begun = Instant::now();
        let mut call = pin!(call);
        let answer = std::future::poll_fn(|context| {
            catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))).unwrap_or_else(|_| {
                metrics.panics.inc();
                tracing::error!(method, "a handler panicked");
                Poll::Ready(Err(Status::internal("the provider has a defect; see its log")))
            })
        })
        .await;
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        metrics.rpc(method, code_name(code), begun.elapsed());
        answer.map(Response::new)
    }

    /// Steps 1 and 2 for what all mutations share.
    fn admit<T>(&self, request: &Request<T>, machine: &str, token: &Token) -> Result<(), Status> {
        let caller = Identity::Shard(token.shard_id.to_string());
        if !active(Mutant::CallerIgnored) {
            self.shared.gate.admit(request, &Rule::exactly(caller))?;
        }
        BadArgument::check_id("machine_id", machine).map_err(invalid)?;
        BadArgument::check_token(token).map_err(invalid)
    }

    async fn mutate(&self, mutation: Mutation) -> Result<TransitionAck, Status> {
        let Ack { operation, record } =
            self.shared.calls.mutate(mutation).await.map_err(|refusal| status(&refusal))?;
        Ok(TransitionAck { operation_id: operation.to_string(), machine: Some(record.to_wire()) })
    }
}

#[tonic::async_trait]
impl CapacityProvider for Service {
    async fn create(&self, request: Request<CreateRequest>) -> Answer<TransitionAck> {
        let call = async {
            let message = request.get_ref();
            let token =
                Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
            self.admit(&request, &message.machine_id, &token)?;
            if active(Mutant::CreateBlocks) {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            self.mutate(Mutation::new(Kind::Create, &message.machine_id, token).of(&request)).await
        };
        self.observed("Create", call).await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<TransitionAck> {
        let call = async {
            let message = request.get_ref();
            let token =
                Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
            self.admit(&request, &message.machine_id, &token)?;
            let caps = self.shared.config.arguments;
            let (cluster, blob) = (&message.cluster_id, &message.bootstrap_blob);
            BadArgument::check_configure(caps, cluster, blob, &message.shard_metadata)
                .map_err(invalid)?;
            if active(Mutant::BigBlobFenced) && blob.len() > defects::BIG_BLOB {
                return Err(Status::failed_precondition("a large blob"));
            }
            let mutation = Mutation::new(Kind::Configure, &message.machine_id, token).of(&request);
            let message = request.into_inner();
            self.mutate(Mutation {
                cluster: Some(message.cluster_id),
                metadata: message.shard_metadata,
                blob: message.bootstrap_blob,
                ..mutation
            })
            .await
        };
        self.observed("Configure", call).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Answer<TransitionAck> {
        let call = async {
            let message = request.get_ref();
            let token =
                Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
            self.admit(&request, &message.machine_id, &token)?;
            BadArgument::check_grace(message.grace_period_seconds).map_err(invalid)?;
            let grace = u64::try_from(message.grace_period_seconds).unwrap_or_default();
            let mutation = Mutation::new(Kind::Drain, &message.machine_id, token).of(&request);
            self.mutate(Mutation { grace: Duration::from_secs(grace), ..mutation }).await
        };
        self.observed("Drain", call).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<TransitionAck> {
        let call = async {
            let message = request.get_ref();
            let token =
                Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
            self.admit(&request, &message.machine_id, &token)?;
            if !self.shared.caps.destroy {
                return Err(Status::unimplemented("this provider has fixed capacity: no Delete"));
            }
            let mutation = Mutation::new(Kind::Delete, &message.machine_id, token).of(&request);
            match self.mutate(mutation).await {
                Err(status)
                    if status.code() == Code::NotFound && active(Mutant::DeleteUnknownOk) =>
                {
                    Ok(TransitionAck { operation_id: "op".to_owned(), machine: None })
                }
                answer => answer,
            }
        };
        self.observed("Delete", call).await
    }

    async fn get(&self, request: Request<MachineRef>) -> Answer<Machine> {
        let call = async {
            self.shared.gate.admit(&request, &Rule::any_certificate())?;
            let id = request.into_inner().id;
            BadArgument::check_id("id", &id).map_err(invalid)?;
            if defects::is_read_fenced(&id) {
                return Err(Status::failed_precondition("a stale call named it"));
            }
            let mut record = self.shared.calls.book.get(&id);
            if record.is_none() && active(Mutant::GetMakesUnknown) {
                let made_up = defects::invent(&self.shared.calls.book.read(), &id.as_str().into());
                record = made_up.map(Arc::new);
            }
            let unknown = || status(&Refused::NotFound(id).into());
            record.map(|record| record.to_wire()).ok_or_else(unknown)
        };
        self.observed("Get", call).await
    }

    async fn list(&self, request: Request<ListFilter>) -> Answer<MachineList> {
        let call = async {
            self.shared.gate.admit(&request, &Rule::any_certificate())?;
            let filter = request.into_inner();
            BadArgument::check_max_results(filter.max_results).map_err(invalid)?;
            let max = usize::try_from(filter.max_results).unwrap_or_default();
            // No state known to us is not the same as no filter.
            let filtered = !filter.states.is_empty() && !active(Mutant::FilterIgnored);
            let states = filtered.then(|| StateSet::from_wire(&filter.states));
            let since = &filter.since_revision;
            if active(Mutant::JunkCursorErrors) && !since.is_empty() {
                Cursor::parse(since)
                    .map_err(|garbled| Status::invalid_argument(garbled.to_string()))?;
            }
            let Listing { records, revision } = self.shared.calls.book.list(states, max, since);
            let encode = move || {
                defects::square(&records);
                records.iter().map(|record| record.to_wire()).collect()
            };
            // A whole fleet takes long enough to hold up other calls.
            let machines = tokio::task::spawn_blocking(encode)
                .await
                .map_err(|_| Status::internal("the list could not be encoded"))?;
            Ok(MachineList { machines, revision: revision.into_bytes() })
        };
        self.observed("List", call).await
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn invalid(argument: BadArgument) -> Status {
    Status::new(defects::argument_code(&argument), argument.to_string())
}

/// FAILED_PRECONDITION means fenced, and nothing else does.
fn status(refusal: &Refusal) -> Status {
    let code = match refusal {
        Refusal::Protocol(Refused::Fence(FenceRefusal::Stale(_))) => Code::FailedPrecondition,
        Refusal::Protocol(Refused::Fence(FenceRefusal::TokenRequired)) => Code::InvalidArgument,
        Refusal::Protocol(Refused::NotFound(_)) if active(Mutant::UnknownIsFenced) => {
            Code::FailedPrecondition
        }
        Refusal::Protocol(Refused::NotFound(_)) if active(Mutant::UnknownIsInternal) => {
            Code::Internal
        }
        Refusal::Protocol(Refused::NotFound(_)) => Code::NotFound,
        Refusal::Protocol(Refused::Lifecycle(_)) if active(Mutant::PositionIsFenced) => {
            Code::FailedPrecondition
        }
        Refusal::Protocol(Refused::Lifecycle(Reject::Position { .. })) => Code::Internal,
        Refusal::Protocol(Refused::Lifecycle(Reject::OtherCluster)) => Code::AlreadyExists,
        Refusal::Busy(_) => Code::ResourceExhausted,
        Refusal::Unwritten(Unwritten::Abandoned) => Code::DeadlineExceeded,
        Refusal::Unwritten(Unwritten::Store(_) | Unwritten::Stopping) => Code::Unavailable,
    };
    Status::new(code, refusal.to_string())
}
