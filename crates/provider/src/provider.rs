//! The six calls, in domain types.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use bigfleet_model::{ClusterId, Machine, MachineId, gate::inventory::Rejected};
use tokio::time::Instant;

use crate::{
    error::Error,
    protocol::{Binding, StateSet, Token},
    secret::Secret,
};

/// What a shard programs against. Tokens are not its business: see
/// [`Stamped`](crate::Stamped).
///
/// The four mutations are accepted and answered at once; [`Provider::get`] and
/// [`Provider::list`] tell how they went. `deadline` is when the caller stops
/// waiting; `None` leaves it to the provider's client.
pub trait Provider: Send + Sync {
    /// SPECULATIVE → CREATING → IDLE.
    fn create(
        &self,
        machine: &MachineId,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// IDLE → CONFIGURING → CONFIGURED.
    fn configure(
        &self,
        machine: &MachineId,
        request: Configure,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// CONFIGURED → DRAINING → IDLE. Grace 0 means: take it now. Whole seconds
    /// travel.
    fn drain(
        &self,
        machine: &MachineId,
        grace: Duration,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// IDLE → DELETING → SPECULATIVE.
    fn delete(
        &self,
        machine: &MachineId,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// One machine.
    fn get(
        &self,
        machine: &MachineId,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Machine, Error>> + Send;

    /// Many machines, one consistent picture.
    fn list(
        &self,
        filter: &ListFilter,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<MachineList, Error>> + Send;
}

/// The same with a token on the mutations: what a server implements, and what
/// the gRPC client is beneath its stamp.
pub trait FencedProvider: Send + Sync {
    /// See [`Provider::create`].
    fn create(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// See [`Provider::configure`].
    fn configure(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        request: Configure,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// See [`Provider::drain`].
    fn drain(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
        grace: Duration,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// See [`Provider::delete`].
    fn delete(
        &self,
        attempt: &Attempt,
        machine: &MachineId,
    ) -> impl Future<Output = Result<Ack, Error>> + Send;

    /// See [`Provider::get`]. Never fenced.
    fn get(
        &self,
        machine: &MachineId,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Machine, Error>> + Send;

    /// See [`Provider::list`]. Never fenced.
    fn list(
        &self,
        filter: &ListFilter,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<MachineList, Error>> + Send;
}

/// One try of a mutation.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Fresh for every try.
    pub token: Token,
    /// When its caller stops waiting. A call past it is not accepted any more.
    pub deadline: Option<Instant>,
    /// Where it came from, if over a network.
    pub peer: Option<SocketAddr>,
}

impl Attempt {
    /// From within the process.
    pub const fn new(token: Token, deadline: Option<Instant>) -> Self {
        Self { token, deadline, peer: None }
    }

    /// Refuses to go on after the deadline: ask it where the call is accepted.
    pub fn check_deadline(&self) -> Result<(), Error> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::DeadlineExceeded(
                "the caller's deadline has passed; nothing was done".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

/// What a machine is to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configure {
    /// Whose node.
    pub cluster: ClusterId,
    /// How it joins.
    pub blob: Secret,
    /// Echoed with the machine for as long as it is bound.
    pub metadata: BTreeMap<String, String>,
}

impl Configure {
    /// What stays on record: all but the secret.
    pub fn binding(&self) -> Binding {
        Binding { cluster: self.cluster.clone(), metadata: self.metadata.clone() }
    }
}

/// A mutation was accepted, now or when it was first sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// Equal for repeats of one operation.
    pub operation_id: String,
    /// The record at acceptance. A bad one is refused alone: the operation is
    /// accepted all the same.
    pub machine: Result<Machine, RefusedRecord>,
}

/// A record that did not pass the inventory gate (wire chapter §8.2). What was
/// known of this machine stays, and it counts as seen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("machine {id:?}: {why}")]
pub struct RefusedRecord {
    /// As sent; may be empty.
    pub id: String,
    /// Which field, and why.
    pub why: Rejected,
}

/// Which machines a List is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only those in one of these states; `None` means any.
    pub states: Option<StateSet>,
    /// At most so many; 0 means all.
    pub max_results: u32,
    /// Only those changed after this [`MachineList::revision`]; empty means all.
    pub since_revision: Vec<u8>,
}

/// What a List told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineList {
    /// In ascending order of last change, where the provider keeps one.
    pub machines: Vec<Machine>,
    /// Records that did not pass the gate.
    pub refused: Vec<RefusedRecord>,
    /// Opaque; feed it back to go on from here. May be empty.
    pub revision: Vec<u8>,
}
