//! All machines, and the one way to change them.
//!
//! A change is decided under its machine's lock, made durable by the
//! [writer](writer), and only then applied and answered. The lock is handed to the
//! writer with the change: a caller that goes away cannot leave a decision behind
//! that another call does not see.

mod draft;
mod health;
mod locks;
mod writer;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bigfleet_model::MachineId;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{FenceBook, FencePolicy, OpBook, Page, RevIndex, StateSet},
};
use tokio::sync::{mpsc, oneshot};

use self::{draft::Change, locks::Locks};
pub(crate) use self::{
    draft::{Draft, Patience, RecordChange, Start, Unwritten, Work},
    health::Health,
    writer::Writer,
};
use crate::{record::Record, store::State};

/// What is known of all machines at one moment.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) machines: HashMap<MachineId, Arc<Record>>,
    pub(crate) fence: FenceBook,
    pub(crate) operations: OpBook,
    pub(crate) index: RevIndex,
}

impl Books {
    /// What a store holds.
    pub(crate) fn load(state: State, policy: FencePolicy) -> Self {
        let mut books = Self {
            machines: HashMap::with_capacity(state.records.len()),
            fence: FenceBook::new(policy),
            operations: OpBook::default(),
            index: RevIndex::new(state.life, state.revision),
        };
        for (shard, epoch) in &state.epochs {
            books.fence.load_epoch(shard, *epoch);
        }
        for row in state.marks {
            books.fence.load(row.machine, &row.shard, row.mark);
        }
        for (machine, row) in state.operations {
            books.operations.start(machine, row.kind, row.operation);
        }
        for record in state.records {
            books.put(Arc::new(record));
        }
        books
    }

    fn put(&mut self, record: Arc<Record>) {
        let id = record.machine.id.clone();
        self.index.load(id.clone(), record.revision);
        self.machines.insert(id, record);
    }

    fn drop_record(&mut self, id: &MachineId) {
        self.machines.remove(id);
        self.index.remove(id);
        self.fence.forget(id);
        self.operations.forget(id);
    }
}

/// One answer to List, before it is encoded.
pub(crate) struct Listing {
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) revision: String,
}

/// Shared by all calls and tasks of a provider.
#[derive(Debug)]
pub(crate) struct Book {
    books: RwLock<Books>,
    locks: Locks,
    changes: mpsc::UnboundedSender<Change>,
}

impl Book {
    pub(crate) fn new(books: Books) -> (Arc<Self>, mpsc::UnboundedReceiver<Change>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let book = Self { books: RwLock::new(books), locks: Locks::default(), changes };
        (Arc::new(book), receiver)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Books> {
        self.books.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Books> {
        self.books.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// One machine as it is now.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Record>> {
        self.read().machines.get(id).cloned()
    }

    /// All machines of one moment.
    pub(crate) fn all(&self) -> Vec<Arc<Record>> {
        self.read().machines.values().cloned().collect()
    }

    /// Looks at all machines of one moment.
    pub(crate) fn for_each(&self, look: impl FnMut(&Arc<Record>)) {
        self.read().machines.values().for_each(look);
    }

    /// One consistent answer. Only pointers are copied while others wait.
    pub(crate) fn list(&self, states: Option<StateSet>, max: usize, since: &[u8]) -> Listing {
        if active(Mutant::RevisionOnRead) {
            self.bump_any();
        }
        let books = self.read();
        let wanted = |id: &MachineId| {
            let Some(states) = states else { return true };
            books.machines.get(id).is_some_and(|record| states.contains(record.machine.state))
        };
        let Page { machines, cursor } = books.index.page(since, max, wanted);
        let records = machines.iter().filter_map(|id| books.machines.get(id).cloned()).collect();
        Listing { records, revision: cursor.to_string() }
    }

    /// Changes one machine: `decide` sees everything as it is, and what it drafts is
    /// durable and visible when this returns, with the record that came of it.
    pub(crate) async fn change<T>(
        &self,
        id: &MachineId,
        patience: Patience,
        decide: impl FnOnce(&Books) -> (T, Draft),
    ) -> Result<(T, Option<Arc<Record>>), Unwritten> {
        let mut lock = self.locks.lock(id).await;
        let (answer, draft) = decide(&self.read());
        if active(Mutant::CheckThenAct) {
            drop(lock);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            lock = Locks::default().lock(id).await;
        }
        if !draft.is_durable() {
            if let Some(advance) = draft.advance {
                self.write().fence.advance(advance);
            }
            return Ok((answer, self.get(id)));
        }
        let (reply, written) = oneshot::channel();
        let change = Change { id: id.clone(), draft, patience, reply, _lock: lock };
        self.changes.send(change).map_err(|_| Unwritten::Stopping)?;
        let record = written.await.map_err(|_| Unwritten::Stopping)??;
        Ok((answer, record))
    }

    /// A deliberate defect's doing.
    pub(crate) fn bump_any(&self) {
        let mut books = self.write();
        if let Some(id) = books.machines.keys().next().cloned() {
            books.index.bump(&id);
        }
    }
}
