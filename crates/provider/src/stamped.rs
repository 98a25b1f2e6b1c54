//! The one place where tokens are made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bigfleet_model::{Machine, MachineId};
use tokio::time::Instant;

use crate::{
    error::Error,
    protocol::Token,
    provider::{Ack, Attempt, Configure, FencedProvider, ListFilter, MachineList, Provider},
};

/// Who calls: one process of one shard. Clones share the sequence, so that one
/// process never stamps a number twice.
#[derive(Clone, Debug)]
pub struct Identity {
    shard_id: Arc<str>,
    epoch: i64,
    sequence: Arc<AtomicI64>,
}

impl Identity {
    /// `epoch` must be greater than that of every earlier process of the shard.
    pub fn new(shard_id: &str, epoch: i64) -> Self {
        Self { shard_id: shard_id.into(), epoch, sequence: Arc::default() }
    }

    /// The shard.
    pub fn shard_id(&self) -> &str {
        &self.shard_id
    }

    /// The process.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }

    fn token(&self) -> Token {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        Token { shard_id: self.shard_id.clone(), epoch: self.epoch, sequence }
    }
}

/// A provider as one shard process sees it: every attempt of a mutation gets a
/// fresh token, reads get none, and callers cannot make their own.
#[derive(Clone, Debug)]
pub struct Stamped<P> {
    provider: P,
    identity: Identity,
}

impl<P> Stamped<P> {
    /// Calls `provider` as `identity`.
    pub const fn new(provider: P, identity: Identity) -> Self {
        Self { provider, identity }
    }

    /// Who calls.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is called.
    pub const fn inner(&self) -> &P {
        &self.provider
    }

    fn attempt(&self, deadline: Option<Instant>) -> Attempt {
        Attempt::new(self.identity.token(), deadline)
    }
}

impl<P: FencedProvider> Provider for Stamped<P> {
    async fn create(&self, machine: &MachineId, deadline: Option<Instant>) -> Result<Ack, Error> {
        self.provider.create(&self.attempt(deadline), machine).await
    }

    async fn configure(
        &self,
        machine: &MachineId,
        request: Configure,
        deadline: Option<Instant>,
    ) -> Result<Ack, Error> {
        self.provider.configure(&self.attempt(deadline), machine, request).await
    }

    async fn drain(
        &self,
        machine: &MachineId,
        grace: Duration,
        deadline: Option<Instant>,
    ) -> Result<Ack, Error> {
        self.provider.drain(&self.attempt(deadline), machine, grace).await
    }

    async fn delete(&self, machine: &MachineId, deadline: Option<Instant>) -> Result<Ack, Error> {
        self.provider.delete(&self.attempt(deadline), machine).await
    }

    async fn get(&self, machine: &MachineId, deadline: Option<Instant>) -> Result<Machine, Error> {
        self.provider.get(machine, deadline).await
    }

    async fn list(
        &self,
        filter: &ListFilter,
        deadline: Option<Instant>,
    ) -> Result<MachineList, Error> {
        self.provider.list(filter, deadline).await
    }
}
