//! The only durable memory of the data plane (provider chapter §7).

mod error;
mod file;
mod mem;

use std::sync::Arc;

use bigfleet_model::MachineId;
use bigfleet_provider::protocol::{Kind, Mark, Operation};

pub use error::StoreError;
pub use file::FileStore;
pub use mem::MemStore;

use crate::record::Record;

/// Where a provider keeps what must survive `kill -9`. Methods may block.
pub trait Store: Send + Sync + 'static {
    /// Everything, once, at the start.
    fn load(&self) -> Result<State, StoreError>;

    /// All of it or nothing; durable on return. Costs what the batch costs, never
    /// what the fleet costs.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// Tidies up before an orderly stop.
    fn checkpoint(&self) -> Result<(), StoreError>;

    /// Whether [`Store::commit`] waits for a disk, and so must not run on a thread
    /// that serves calls.
    fn blocks(&self) -> bool {
        true
    }
}

/// Changes that become durable together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Head after it.
    pub revision: u64,
    /// The new record; none for a slot that is dropped, with its marks and operations.
    pub records: Vec<(MachineId, Option<Arc<Record>>)>,
    /// Operations begun; none where all of a machine are forgotten. In order.
    pub operations: Vec<(MachineId, Option<OperationRow>)>,
    /// Fence marks of known machines that advanced.
    pub marks: Vec<MarkRow>,
    /// Highest epochs that rose.
    pub epochs: Vec<(Arc<str>, i64)>,
}

impl Batch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.operations.is_empty()
            && self.marks.is_empty()
            && self.epochs.is_empty()
    }
}

/// An operation on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRow {
    /// With the machine, the idempotency key.
    pub kind: Kind,
    /// What was begun; its clock counts from the unix epoch.
    pub operation: Operation,
}

/// A fence mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkRow {
    /// Of this machine,
    pub machine: MachineId,
    /// for this shard:
    pub shard: Arc<str>,
    /// the newest seen.
    pub mark: Mark,
}

/// What [`Store::load`] finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Random, made when the store was created: cursors of another life are void.
    pub life: u64,
    /// Head.
    pub revision: u64,
    /// All machines, in order of id.
    pub records: Vec<Record>,
    /// All operations on record.
    pub operations: Vec<(MachineId, OperationRow)>,
    /// All marks of known machines.
    pub marks: Vec<MarkRow>,
    /// Highest epoch per shard.
    pub epochs: Vec<(Arc<str>, i64)>,
}

/// A life for a new store.
pub(crate) fn new_life() -> u64 {
    crate::random::number() | 1
}
