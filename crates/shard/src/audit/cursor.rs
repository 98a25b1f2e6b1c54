//! A reader's place in the records: from the file, through the ring, to what
//! happens now.

use std::{collections::VecDeque, sync::Arc};

use bigfleet_wire::v1alpha1::WatchDecisionsRequest;
use tokio::sync::watch;

use super::{Audit, log::Log, record::Record};
use crate::data_dir::SEQUENCE_BITS;

/// A reader of live records may be this many behind.
pub const MAX_BEHIND: i64 = 1_000;
/// Records taken at once.
const BATCH: usize = 256;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next record.
    Now,
    /// With the oldest that is kept.
    Oldest,
    /// With the first after that one.
    After(i64),
}

impl Start {
    /// As `after_sequence` says it: 0 from now, −1 from the oldest kept.
    #[must_use]
    pub const fn from_wire(after_sequence: i64) -> Self {
        match after_sequence {
            0 => Self::Now,
            ..0 => Self::Oldest,
            after => Self::After(after),
        }
    }
}

/// Which records are wanted; empty fields want all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Kinds of actions.
    pub kinds: Vec<String>,
    /// Of one cluster.
    pub cluster: String,
    /// Of one machine.
    pub machine: String,
    /// With one outcome.
    pub outcome: String,
    /// At least; 0 means any.
    pub min_priority: i32,
}

impl From<&WatchDecisionsRequest> for Filter {
    fn from(request: &WatchDecisionsRequest) -> Self {
        Self {
            kinds: request.kinds.clone(),
            cluster: request.cluster_id.clone(),
            machine: request.machine_id.clone(),
            outcome: request.outcome.clone(),
            min_priority: request.min_priority,
        }
    }
}

impl Filter {
    fn admits(&self, record: &Record) -> bool {
        let wanted = |filter: &str, value: &str| filter.is_empty() || filter == value;
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| *kind == record.kind))
            && wanted(&self.cluster, &record.cluster)
            && wanted(&self.machine, &record.machine)
            && wanted(&self.outcome, &record.outcome)
            && (self.min_priority == 0 || record.priority >= self.min_priority)
    }
}

/// A record for a reader.
#[derive(Clone, Debug)]
pub struct Item {
    /// The record.
    pub record: Arc<Record>,
    /// Older ones than this were lost to this reader.
    pub gap: bool,
}

/// The reader had caught up and then fell more than [`MAX_BEHIND`] records
/// behind: end its stream with `RESOURCE_EXHAUSTED`. It may come back with
/// the number of the last record it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "reader is {behind} records behind, more than {MAX_BEHIND}; read faster, or filter, and \
     resume with after_sequence={after}"
)]
pub struct Lagging {
    /// So many.
    pub behind: i64,
    /// The last record that was looked at for it.
    pub after: i64,
}

/// A place that moves on.
#[derive(Debug)]
pub struct Cursor {
    audit: Arc<Audit>,
    filter: Filter,
    /// The last record seen, wanted or not.
    at: i64,
    /// Whether records before the next were lost.
    gap: bool,
    /// Whether `at` is a place in the sequence, so that a jump is a loss.
    placed: bool,
    /// The file, while it is read.
    log: Option<Box<Log>>,
    batch: VecDeque<Arc<Record>>,
    head: watch::Receiver<i64>,
    /// Whether it has been at the head: history is read at the reader's pace.
    live: bool,
}

impl Cursor {
    pub(super) fn new(audit: Arc<Audit>, start: Start, filter: Filter) -> Self {
        let head = audit.head.subscribe();
        let newest = *head.borrow();
        let mut cursor = Self {
            audit,
            filter,
            at: newest,
            gap: false,
            placed: true,
            log: None,
            batch: VecDeque::new(),
            head,
            live: false,
        };
        match start {
            Start::Now => {}
            Start::Oldest => (cursor.at, cursor.placed) = (0, false),
            Start::After(after) if after <= newest => cursor.at = after,
            // A number of another shard's, or of an epoch that was lost.
            Start::After(_) => cursor.gap = true,
        }
        cursor
    }

    /// The next record that is wanted; waits for it.
    ///
    /// Cancel-safe: no record is lost if the caller stops waiting.
    pub async fn next(&mut self) -> Result<Item, Lagging> {
        loop {
            let behind = *self.head.borrow_and_update() - self.at;
            if self.live && behind > MAX_BEHIND {
                return Err(Lagging { behind, after: self.at });
            }
            if self.batch.is_empty() {
                self.fill().await;
            }
            let Some(record) = self.batch.pop_front() else {
                self.live = true;
                self.leave_earlier_epochs();
                // The sender lives in the audit that this cursor holds.
                drop(self.head.changed().await);
                continue;
            };
            self.gap |= self.placed && self.jumps_to(record.seq);
            (self.at, self.placed) = (record.seq, true);
            if self.filter.admits(&record) {
                let gap = std::mem::take(&mut self.gap);
                return Ok(Item { record, gap });
            }
        }
    }

    /// Whether something lay between: within an epoch numbers have no holes, and
    /// each epoch begins at 1. The end of an earlier epoch is known to the file only.
    fn jumps_to(&self, seq: i64) -> bool {
        let same_epoch = self.at >> SEQUENCE_BITS == seq >> SEQUENCE_BITS;
        if same_epoch {
            return seq != self.at + 1;
        }
        let first = (seq >> SEQUENCE_BITS << SEQUENCE_BITS) + 1;
        seq != first || self.audit.path.is_none()
    }

    /// Nothing is left of them: the next record is the first of this process.
    fn leave_earlier_epochs(&mut self) {
        let start = self.audit.first - 1;
        if self.at < start {
            self.gap |= self.placed && self.audit.path.is_none();
            (self.at, self.placed) = (start, true);
        }
    }

    /// The next records: from the ring where it has them, else from the file, as
    /// far as that goes. A slow reader of old records may go back to the file.
    async fn fill(&mut self) {
        if self.before_the_ring() {
            self.fill_from_file().await;
        }
        if self.batch.is_empty() {
            self.batch = self.audit.lock().ring.after(self.at, BATCH).into();
        }
    }

    /// Whether the ring begins after the next record.
    fn before_the_ring(&self) -> bool {
        let oldest = self.audit.lock().ring.oldest().unwrap_or(self.audit.first);
        self.at + 1 < oldest
    }

    async fn fill_from_file(&mut self) {
        let Some(path) = self.audit.path.clone() else { return };
        let (log, after) = (self.log.take(), self.at);
        let read = tokio::task::spawn_blocking(move || {
            let mut log = log.map_or_else(|| Log::open(&path, after).map(Box::new), Ok)?;
            let records = log.read(BATCH)?;
            Ok::<_, std::io::Error>((log, records))
        });
        match read.await {
            Ok(Ok((log, records))) if !records.is_empty() => {
                self.batch = records.into_iter().map(Arc::new).collect();
                self.log = Some(log);
            }
            Ok(Ok(_)) => {}
            // What cannot be read is lost to this reader, and it is told so by `gap`.
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the audit log back"),
            Err(error) => tracing::warn!(%error, "reading the audit log back ended"),
        }
    }
}
