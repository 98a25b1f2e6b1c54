//! The six calls, with a token of the test's own shard or a given one.

use bigfleet_net::grpc::code_name;
use bigfleet_wire::v1alpha1::{ListFilter, MachineList};
use tonic::{Code, Status};

use super::{Answer, Case, Machine, Metadata, State};
use crate::{
    fail,
    outcome::{Outcome, Stop},
    shard::Token,
};

/// What a Configure asks for.
#[derive(Debug, Clone, Default)]
pub struct Binding {
    /// The cluster.
    pub cluster: String,
    /// The metadata.
    pub metadata: Metadata,
    /// The bootstrap blob.
    pub blob: Vec<u8>,
}

impl Binding {
    /// To this cluster, with a small blob.
    #[must_use]
    pub fn to(cluster: impl Into<String>) -> Self {
        Self { cluster: cluster.into(), metadata: Metadata::new(), blob: b"#!/bin/true\n".to_vec() }
    }

    /// With this metadata.
    #[must_use]
    pub fn with(self, metadata: Metadata) -> Self {
        Self { metadata, ..self }
    }
}

/// What a List asks for.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    states: Vec<i32>,
    max: i32,
    since: Vec<u8>,
}

impl Listing {
    /// Of these states.
    #[must_use]
    pub fn of(states: &[State]) -> Self {
        Self { states: states.iter().map(|&state| state.into()).collect(), ..Self::default() }
    }

    /// At most so many.
    #[must_use]
    pub fn max(self, max: i32) -> Self {
        Self { max, ..self }
    }

    /// Changed after this cursor.
    #[must_use]
    pub fn since(self, cursor: &[u8]) -> Self {
        Self { since: cursor.to_vec(), ..self }
    }
}

impl Case {
    /// Create.
    pub async fn create(&self, machine: &str) -> Answer {
        self.create_as(machine, &self.me.next()).await
    }

    /// Create with this token.
    pub async fn create_as(&self, machine: &str, token: &Token) -> Answer {
        Answer::new("Create", machine, self.wire.create(machine, token).await)
    }

    /// Configure.
    pub async fn configure(&self, machine: &str, binding: Binding) -> Answer {
        self.configure_as(machine, binding, &self.me.next()).await
    }

    /// Configure with this token.
    pub async fn configure_as(&self, machine: &str, binding: Binding, token: &Token) -> Answer {
        let Binding { cluster, metadata, blob } = binding;
        let answer = self.wire.configure(machine, &cluster, metadata, blob, token).await;
        Answer::new("Configure", machine, answer)
    }

    /// Drain.
    pub async fn drain(&self, machine: &str, grace: i64) -> Answer {
        self.drain_as(machine, grace, &self.me.next()).await
    }

    /// Drain with this token.
    pub async fn drain_as(&self, machine: &str, grace: i64, token: &Token) -> Answer {
        Answer::new("Drain", machine, self.wire.drain(machine, grace, token).await)
    }

    /// Delete.
    pub async fn delete(&self, machine: &str) -> Answer {
        self.delete_as(machine, &self.me.next()).await
    }

    /// Delete with this token.
    pub async fn delete_as(&self, machine: &str, token: &Token) -> Answer {
        Answer::new("Delete", machine, self.wire.delete(machine, token).await)
    }

    /// A call that is harmless when repeated, to try a token: Create, or where
    /// there are no slots Configure to one fixed cluster.
    pub async fn probe(&self, machine: &str, token: &Token) -> Answer {
        if self.gates().slot {
            self.create_as(machine, token).await
        } else {
            self.configure_as(machine, Binding::to(self.cluster("probe")), token).await
        }
    }

    /// Get of a machine that is there.
    pub async fn get(&self, machine: &str) -> Outcome<Machine> {
        self.wire.get(machine).await.map_err(|status| unexpected("Get", machine, &status))
    }

    /// Get must be refused with this code.
    pub async fn get_refused(&self, machine: &str, due: Code) -> Outcome {
        match self.wire.get(machine).await {
            Err(status) if status.code() == due => Ok(()),
            Err(status) => Err(unexpected("Get", machine, &status)),
            Ok(_) => fail!("Get of {machine:?} must answer {}, not OK", code_name(due)),
        }
    }

    /// List with its revision.
    pub async fn list(&self, listing: Listing) -> Outcome<MachineList> {
        let Listing { states, max, since } = listing;
        let filter = ListFilter { states, max_results: max, since_revision: since };
        self.wire.list(filter).await.map_err(|status| unexpected("List", "", &status))
    }

    /// Every machine.
    pub async fn fleet(&self) -> Outcome<Vec<Machine>> {
        Ok(self.list(Listing::default()).await?.machines)
    }

    /// The newest cursor.
    pub async fn head(&self) -> Outcome<Vec<u8>> {
        Ok(self.list(Listing::default()).await?.revision)
    }
}

fn unexpected(rpc: &str, machine: &str, status: &Status) -> Stop {
    Stop::Failed(format!(
        "{rpc} {machine:?} answers {} ({})",
        code_name(status.code()),
        status.message()
    ))
}
