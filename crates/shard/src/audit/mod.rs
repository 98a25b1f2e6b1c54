//! The audit log (shard chapter §10): every decision, and what became of it.
//!
//! Records go into a ring for readers and, if there is a file, through a
//! bounded buffer to a thread of its own. No producer ever waits for either.

pub mod check;
mod cursor;
mod log;
mod record;
mod ring;
mod writer;

use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_engine::{Action, input::NeedKey};
use bigfleet_model::Stamp;
pub use cursor::{Cursor, Filter, Item, Lagging, MAX_BEHIND, Start};
use jiff::Timestamp;
pub use record::{Record, SET_ACTUATION};
use ring::Ring;
use tokio::sync::watch;
use writer::Writer;

use crate::{
    data_dir::SEQUENCE_BITS,
    metrics::Metrics,
    outcome::{Disposition, Outcome},
};

/// Records kept for readers.
const RING: usize = 65_536;

/// The audit of one process. Share it in an `Arc`.
#[derive(Debug)]
pub struct Audit {
    first: i64,
    path: Option<PathBuf>,
    inner: Mutex<Inner>,
    writer: Option<Writer>,
    /// The newest sequence number.
    head: watch::Sender<i64>,
}

#[derive(Debug)]
struct Inner {
    last: i64,
    ring: Ring,
    /// Decisions without a closing outcome.
    open: HashMap<i64, Arc<Record>>,
}

impl Audit {
    /// For the process of this epoch; without a path there is no file.
    pub fn open(epoch: i64, path: Option<PathBuf>, metrics: &Metrics) -> io::Result<Self> {
        let writer = match &path {
            Some(path) => {
                let (dropped, errors) = (&metrics.audit_dropped, &metrics.audit_errors);
                Some(Writer::open(path, dropped.clone(), errors.clone())?)
            }
            None => None,
        };
        let last = epoch << SEQUENCE_BITS;
        let inner = Inner { last, ring: Ring::new(RING), open: HashMap::new() };
        let inner = Mutex::new(inner);
        Ok(Self { first: last + 1, path, inner, writer, head: watch::Sender::new(last) })
    }

    /// An action was queued or withheld; `stamp` is that of the machine, as it
    /// stands. The number returned names the decision.
    pub fn decided(
        &self,
        cycle: i64,
        action: &Action,
        stamp: Option<&Stamp>,
        disposition: Disposition,
    ) -> i64 {
        let mut record = Record::decision(cycle, action, stamp);
        record.outcome = Cow::Borrowed(disposition.label());
        let mut inner = self.lock();
        let record = self.append(&mut inner, record);
        let seq = record.seq;
        if disposition == Disposition::Decided {
            inner.open.insert(seq, record);
        }
        seq
    }

    /// What became of a decision of this process. Every one is closed by
    /// exactly one outcome that [closes](Outcome::closes); a second is a bug of
    /// the caller's, logged and not recorded.
    pub fn outcome(&self, of: i64, outcome: Outcome, operation_id: &str, error: &str) {
        let mut inner = self.lock();
        let decision = match outcome.closes() {
            true => inner.open.remove(&of),
            false => inner.open.get(&of).cloned(),
        };
        let Some(decision) = decision else {
            drop(inner);
            tracing::error!(of, %outcome, "an outcome of a decision that is not open");
            return;
        };
        let record = Record {
            outcome: Cow::Borrowed(outcome.label()),
            of: Some(of),
            operation_id: operation_id.to_owned(),
            error: error.to_owned(),
            ..Record::clone(&decision)
        };
        self.append(&mut inner, record);
    }

    /// The actuation mode changed.
    pub fn actuation(&self, mode: &'static str, reason: &str, set_by: &str) {
        let record = Record::actuation(mode, reason, set_by);
        self.append(&mut self.lock(), record);
    }

    /// Up to `limit` newest records of a need, newest first, of those in memory.
    #[must_use]
    pub fn last_of_need(&self, need: &NeedKey, limit: usize) -> Vec<Arc<Record>> {
        self.lock().ring.of_need(&need.cluster, &need.fingerprint, &need.group, limit)
    }

    /// The number of the newest record; before the first, the one that it will follow.
    #[must_use]
    pub fn newest(&self) -> i64 {
        *self.head.borrow()
    }

    /// Follows the records from there on.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, start: Start, filter: Filter) -> Cursor {
        Cursor::new(self.clone(), start, filter)
    }

    /// Waits until the file has everything; false if that took too long. For
    /// the end of the process: it blocks.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.flush(timeout))
    }

    fn append(&self, inner: &mut Inner, mut record: Record) -> Arc<Record> {
        inner.last += 1;
        record.seq = inner.last;
        record.time = Timestamp::now();
        let record = Arc::new(record);
        inner.ring.push(record.clone());
        // Inside the lock, so that lines stand in the order of their numbers.
        if let Some(writer) = &self.writer {
            writer.offer(record.clone());
        }
        self.head.send_replace(inner.last);
        record
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
