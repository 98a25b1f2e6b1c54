//! Serves a [`FencedProvider`] on the wire.

#[cfg(feature = "mutants")]
mod distort;
mod guarded;
mod show;

use std::time::Duration;

use bigfleet_net::{
    grpc::{Deadline, MAX_MESSAGE_BYTES},
    identity::Identity,
    peer::{Gate, Peer},
    rule::Rule,
};
use bigfleet_wire::v1alpha1::{
    self as wire,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use prometheus_client::metrics::counter::Counter;
use tonic::{Request, Response, Status};

#[cfg(feature = "mutants")]
pub use self::distort::distort;
use self::guarded::guarded;
use crate::{
    error::Error,
    mutant::{Mutant, active},
    protocol::{BadArgument, Caps, Cursor, StateSet, Token},
    provider::{Ack, Attempt, Configure, FencedProvider, ListFilter},
};

/// Largest request that a provider's server takes, in bytes.
const MAX_REQUEST_BYTES: usize = 8 << 20;

/// The first steps of every call (provider chapter §1): who calls, are the
/// arguments sound, does the caller still wait. Then the provider is asked, and
/// its answer goes out.
#[derive(Clone, Debug)]
pub struct Adapter<P> {
    provider: P,
    caps: Caps,
    gate: Gate,
    panics: Counter,
}

impl<P: FencedProvider + 'static> Adapter<P> {
    /// With the usual caps.
    pub fn new(provider: P) -> Self {
        Self { provider, caps: Caps::default(), gate: Gate::default(), panics: Counter::default() }
    }

    /// With other caps on Configure.
    #[must_use]
    pub fn caps(self, caps: Caps) -> Self {
        Self { caps, ..self }
    }

    /// Counts callers that were not who they said, and handlers that panicked.
    #[must_use]
    pub fn counters(self, rejected: Counter, panics: Counter) -> Self {
        Self { gate: Gate::new(rejected), panics, ..self }
    }

    /// As a service of a [`GrpcServer`](bigfleet_net::grpc::GrpcServer), with its
    /// message limits.
    pub fn into_service(self) -> CapacityProviderServer<Self> {
        CapacityProviderServer::new(self)
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Steps 1 and 2 for a mutation.
    fn attempt<T>(
        &self,
        request: &Request<T>,
        machine: &str,
        token: Token,
    ) -> Result<Attempt, Status> {
        let shard = Rule::exactly(Identity::Shard(token.shard_id.to_string()));
        let caller = if active(Mutant::CallerIgnored) { Rule::any_certificate() } else { shard };
        self.gate.admit(request, &caller)?;
        BadArgument::check_id("machine_id", machine).map_err(refused)?;
        BadArgument::check_token(&token).map_err(refused)?;
        let peer = Peer::of(request).map(Peer::addr);
        let attempt = Attempt { token, deadline: Deadline::of(request), peer };
        attempt.check_deadline()?;
        Ok(attempt)
    }

    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Status> {
        Ok(guarded(&self.panics, call).await?)
    }
}

fn refused(bad: BadArgument) -> Status {
    Error::from(bad).into()
}

fn acknowledged(ack: Ack) -> Result<Response<wire::TransitionAck>, Status> {
    // A provider knows its own records, so there is none that its own gate refused.
    let machine = ack.machine.map_err(|refused| Status::internal(refused.to_string()))?;
    let machine = Some(show::machine(&machine));
    Ok(Response::new(wire::TransitionAck { operation_id: ack.operation_id, machine }))
}

#[tonic::async_trait]
impl<P: FencedProvider + 'static> CapacityProvider for Adapter<P> {
    async fn create(
        &self,
        request: Request<wire::CreateRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let message = request.get_ref();
        let token = Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
        let attempt = self.attempt(&request, &message.machine_id, token)?;
        if active(Mutant::CreateBlocks) {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let machine = request.into_inner().machine_id.into();
        acknowledged(self.answer(self.provider.create(&attempt, &machine)).await?)
    }

    async fn configure(
        &self,
        request: Request<wire::ConfigureRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let message = request.get_ref();
        let token = Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
        let attempt = self.attempt(&request, &message.machine_id, token)?;
        BadArgument::check_configure(
            self.caps,
            &message.cluster_id,
            &message.bootstrap_blob,
            &message.shard_metadata,
        )
        .map_err(refused)?;
        let message = request.into_inner();
        let machine = message.machine_id.into();
        let configure = Configure {
            cluster: message.cluster_id.into(),
            blob: message.bootstrap_blob.into(),
            metadata: message.shard_metadata,
        };
        acknowledged(self.answer(self.provider.configure(&attempt, &machine, configure)).await?)
    }

    async fn drain(
        &self,
        request: Request<wire::DrainRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let message = request.get_ref();
        let token = Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
        let attempt = self.attempt(&request, &message.machine_id, token)?;
        BadArgument::check_grace(message.grace_period_seconds).map_err(refused)?;
        let message = request.into_inner();
        let machine = message.machine_id.into();
        let grace = Duration::from_secs(message.grace_period_seconds.unsigned_abs());
        acknowledged(self.answer(self.provider.drain(&attempt, &machine, grace)).await?)
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<wire::TransitionAck>, Status> {
        let message = request.get_ref();
        let token = Token::new(&*message.shard_id, message.shard_epoch, message.sequence_number);
        let attempt = self.attempt(&request, &message.machine_id, token)?;
        let machine = request.into_inner().machine_id.into();
        acknowledged(self.answer(self.provider.delete(&attempt, &machine)).await?)
    }

    async fn get(
        &self,
        request: Request<wire::MachineRef>,
    ) -> Result<Response<wire::Machine>, Status> {
        self.gate.admit(&request, &Rule::any_certificate())?;
        let deadline = Deadline::of(&request);
        let machine = request.into_inner().id;
        BadArgument::check_id("id", &machine).map_err(refused)?;
        let machine = self.answer(self.provider.get(&machine.into(), deadline)).await?;
        Ok(Response::new(show::machine(&machine)))
    }

    async fn list(
        &self,
        request: Request<wire::ListFilter>,
    ) -> Result<Response<wire::MachineList>, Status> {
        self.gate.admit(&request, &Rule::any_certificate())?;
        let deadline = Deadline::of(&request);
        let message = request.into_inner();
        BadArgument::check_max_results(message.max_results).map_err(refused)?;
        let junk = !message.since_revision.is_empty()
            && active(Mutant::JunkCursorErrors)
            && Cursor::parse(&message.since_revision).is_err();
        if junk {
            return Err(Status::invalid_argument("since_revision: junk"));
        }
        let any = message.states.is_empty() || active(Mutant::FilterIgnored);
        let filter = ListFilter {
            states: (!any).then(|| StateSet::from_wire(&message.states)),
            max_results: message.max_results.unsigned_abs(),
            since_revision: message.since_revision,
        };
        let list = self.answer(self.provider.list(&filter, deadline)).await?;
        let machines = list.machines.iter().map(show::machine).collect();
        Ok(Response::new(wire::MachineList { machines, revision: list.revision }))
    }
}
