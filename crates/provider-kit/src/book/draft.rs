//! What a decision wants written.

use std::{fmt, sync::Arc};

use bigfleet_model::MachineId;
use bigfleet_provider::protocol::{Advance, Kind, Operation};
use tokio::{
    sync::{OwnedMutexGuard, oneshot},
    time::Instant,
};

use crate::{inflight::Inflight, record::Record};

/// All of it or nothing.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// A mark that moves.
    pub(crate) advance: Option<Advance>,
    /// The machine's next record.
    pub(crate) record: RecordChange,
    /// An operation that begins; `Some(None)` forgets all of the machine.
    pub(crate) operation: Option<Option<(Kind, Operation)>>,
    /// Work to begin once it is written.
    pub(crate) start: Option<Start>,
}

/// What becomes of a record.
#[derive(Debug, Default)]
pub(crate) enum RecordChange {
    #[default]
    Keep,
    /// Visible: it gets the next revision.
    Put(Record),
    /// With its marks and operations.
    Drop,
}

impl Draft {
    pub(crate) fn put(record: Record) -> Self {
        Self { record: RecordChange::Put(record), ..Self::default() }
    }

    pub(crate) fn drop_record() -> Self {
        Self { record: RecordChange::Drop, ..Self::default() }
    }

    /// Whether there is anything to store. Marks of unknown machines are not.
    pub(super) fn is_durable(&self) -> bool {
        let mark =
            self.advance.as_ref().is_some_and(|advance| advance.known || advance.epoch.is_some());
        mark || self.operation.is_some() || !matches!(self.record, RecordChange::Keep)
    }
}

/// The part of a [`Work`] that is known before it is written.
pub(crate) struct Start {
    pub(crate) kind: Kind,
    pub(crate) operation: Operation,
    /// A join secret: never stored, never printed.
    pub(crate) blob: Vec<u8>,
    pub(crate) inflight: Inflight,
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("kind", &self.kind)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// A transition to carry out.
#[derive(Debug)]
pub(crate) struct Work {
    /// As it was written.
    pub(crate) record: Arc<Record>,
    pub(crate) start: Start,
    /// When it fails.
    pub(crate) deadline: Instant,
}

/// Whether anybody waits for the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// A caller: once it is gone, or its deadline over, nothing is accepted any more.
    Caller { deadline: Option<Instant> },
    /// A task of ours: what happened has happened.
    Kit,
}

/// A draft on its way.
#[derive(Debug)]
pub(crate) struct Change {
    pub(super) id: MachineId,
    pub(super) draft: Draft,
    pub(super) patience: Patience,
    pub(super) reply: oneshot::Sender<Result<Option<Arc<Record>>, Unwritten>>,
    /// Released when the change is applied or given up.
    pub(super) _lock: OwnedMutexGuard<()>,
}

impl Change {
    /// Its caller has stopped waiting and decides anew.
    pub(super) fn is_abandoned(&self) -> bool {
        match self.patience {
            Patience::Kit => false,
            Patience::Caller { deadline } => {
                self.reply.is_closed() || deadline.is_some_and(|at| at <= Instant::now())
            }
        }
    }
}

/// Why nothing was written, and nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritten {
    #[error("state cannot be stored, nothing was changed; try again: {0}")]
    Store(Arc<str>),
    #[error("the provider is stopping; try again")]
    Stopping,
    #[error("the caller's deadline has passed, nothing was changed")]
    Abandoned,
}
