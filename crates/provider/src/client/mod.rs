//! The only code that speaks to a real provider.

mod decode;

use std::time::Duration;

use bigfleet_model::{Machine, MachineId};
use bigfleet_net::{
    grpc, identity::Identity as PeerIdentity, message_limits, rule::Rule, tls::Security,
};
use bigfleet_wire::v1alpha1::{self as wire, capacity_provider_client::CapacityProviderClient};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Request, Response, Status, transport::Channel};

use crate::{
    error::Error,
    protocol::Token,
    provider::{Ack, Attempt, Configure, FencedProvider, ListFilter, MachineList},
};

/// Of a mutation and of Get, where the caller sets no deadline.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Of List.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);

/// A provider at the other end of a connection. Wrap it in
/// [`Stamped`](crate::Stamped).
#[derive(Clone, Debug)]
pub struct Client {
    rpc: CapacityProviderClient<Channel>,
}

impl Client {
    /// Dials `host:port` at the first call, and again whenever the connection is
    /// lost. Under mTLS a server that does not carry `identity` is refused, if
    /// one is given: `bigfleet://provider/<name>`.
    pub fn dial(
        addr: &str,
        security: &Security,
        identity: Option<PeerIdentity>,
    ) -> Result<Self, bigfleet_net::Error> {
        let expect = identity.map_or_else(Rule::any_certificate, Rule::exactly);
        Ok(Self::over(grpc::connect_lazy(addr, security, expect)?))
    }

    /// Over a connection that is there already.
    pub fn over(channel: Channel) -> Self {
        Self { rpc: message_limits!(CapacityProviderClient::new(channel)) }
    }
}

/// Sends one call under its deadline, which travels with it.
async fn send<M, A, F>(
    message: M,
    deadline: Option<Instant>,
    timeout: Duration,
    call: impl FnOnce(Request<M>) -> F + Send,
) -> Result<A, Error>
where
    M: Send,
    A: Send,
    F: Future<Output = Result<Response<A>, Status>> + Send,
{
    let now = Instant::now();
    let deadline = deadline.unwrap_or(now + timeout);
    let mut request = Request::new(message);
    request.set_timeout(deadline.saturating_duration_since(now));
    match timeout_at(deadline, call(request)).await {
        // The transport keeps the deadline, too, and calls it a cancel.
        Ok(Err(status)) if status.code() == Code::Cancelled && Instant::now() >= deadline => {
            Err(Error::DeadlineExceeded(status.message().to_owned()))
        }
        Ok(answer) => Ok(answer?.into_inner()),
        Err(_) => Err(Error::DeadlineExceeded("no answer in time".to_owned())),
    }
}

fn stamp(token: &Token) -> (String, i64, i64) {
    (token.shard_id.to_string(), token.epoch, token.sequence)
}

impl FencedProvider for Client {
    async fn create(&self, attempt: &Attempt, machine: &MachineId) -> Result<Ack, Error> {
        let (shard_id, shard_epoch, sequence_number) = stamp(&attempt.token);
        let machine_id = machine.to_string();
        let message = wire::CreateRequest { machine_id, shard_id, shard_epoch, sequence_number };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.create(request).await;
        let ack = send(message, attempt.deadline, CALL_TIMEOUT, call).await?;
        Ok(decode::ack(machine, ack))
    }

    async fn configure(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        request: Configure,
    ) -> Result<Ack, Error> {
        let (shard_id, shard_epoch, sequence_number) = stamp(&attempt.token);
        let message = wire::ConfigureRequest {
            machine_id: machine.to_string(),
            cluster_id: request.cluster.to_string(),
            bootstrap_blob: request.blob.expose().to_vec(),
            shard_id,
            shard_epoch,
            sequence_number,
            shard_metadata: request.metadata,
        };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.configure(request).await;
        let ack = send(message, attempt.deadline, CALL_TIMEOUT, call).await?;
        Ok(decode::ack(machine, ack))
    }

    async fn drain(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        grace: Duration,
    ) -> Result<Ack, Error> {
        let (shard_id, shard_epoch, sequence_number) = stamp(&attempt.token);
        let message = wire::DrainRequest {
            machine_id: machine.to_string(),
            grace_period_seconds: i64::try_from(grace.as_secs()).unwrap_or(i64::MAX),
            shard_id,
            shard_epoch,
            sequence_number,
        };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.drain(request).await;
        let ack = send(message, attempt.deadline, CALL_TIMEOUT, call).await?;
        Ok(decode::ack(machine, ack))
    }

    async fn delete(&self, attempt: &Attempt, machine: &MachineId) -> Result<Ack, Error> {
        let (shard_id, shard_epoch, sequence_number) = stamp(&attempt.token);
        let machine_id = machine.to_string();
        let message = wire::DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.delete(request).await;
        let ack = send(message, attempt.deadline, CALL_TIMEOUT, call).await?;
        Ok(decode::ack(machine, ack))
    }

    async fn get(&self, machine: &MachineId, deadline: Option<Instant>) -> Result<Machine, Error> {
        let message = wire::MachineRef { id: machine.to_string() };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.get(request).await;
        let answer = send(message, deadline, CALL_TIMEOUT, call).await?;
        // What a bad record says of its machine is nothing.
        decode::answer_about(machine, answer)
            .map_err(|refused| Error::Internal(refused.to_string()))
    }

    async fn list(
        &self,
        filter: &ListFilter,
        deadline: Option<Instant>,
    ) -> Result<MachineList, Error> {
        let Some(message) = decode::filter(filter) else {
            return Ok(MachineList {
                revision: filter.since_revision.clone(),
                ..Default::default()
            });
        };
        let mut rpc = self.rpc.clone();
        let call = async move |request| rpc.list(request).await;
        Ok(decode::list(send(message, deadline, LIST_TIMEOUT, call).await?))
    }
}
