//! Makes changes durable, many at once.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bigfleet_model::MachineId;
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::Kind,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    Book,
    draft::{Change, RecordChange, Unwritten, Work},
    health::Health,
};
use crate::{
    config::Timeouts,
    metrics::Metrics,
    record::Record,
    store::{Batch, MarkRow, OperationRow, Store},
};

/// Changes that share one commit, at most.
const GROUP: usize = 1024;
/// A store that failed is tried again so often.
const PROBE: Duration = Duration::from_secs(1);

/// The one task that writes.
pub(crate) struct Writer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) book: Arc<Book>,
    pub(crate) changes: mpsc::UnboundedReceiver<Change>,
    pub(crate) works: mpsc::UnboundedSender<Work>,
    pub(crate) timeouts: Timeouts,
    pub(crate) metrics: Metrics,
    pub(crate) health: Arc<Health>,
    /// Machines whose last commit failed: the store may hold what memory does not, so
    /// they are written again with the next commit.
    pub(crate) suspects: BTreeSet<MachineId>,
    pub(crate) failing: bool,
    /// Marks of machines that were unknown when they were called; stored with the
    /// next commit.
    pub(crate) promoted: Vec<MarkRow>,
}

impl Writer {
    /// Writes until told to stop, then tidies up the store.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut group = Vec::with_capacity(GROUP);
        loop {
            tokio::select! {
                biased;
                received = self.changes.recv_many(&mut group, GROUP) => {
                    if received == 0 {
                        break;
                    }
                    self.write(&mut group).await;
                }
                () = stop.cancelled() => break,
                () = sleep(PROBE), if self.failing => self.write(&mut group).await,
            }
        }
        self.changes.close();
        let store = self.store.clone();
        let checkpoint = tokio::task::spawn_blocking(move || store.checkpoint()).await;
        if let Ok(Err(error)) = checkpoint {
            tracing::warn!(%error, "the store was not closed in order");
        }
    }

    async fn write(&mut self, group: &mut Vec<Change>) {
        let mut accepted = Vec::with_capacity(group.len());
        for change in group.drain(..) {
            if change.is_abandoned() {
                let _ = change.reply.send(Err(Unwritten::Abandoned));
            } else {
                accepted.push(change);
            }
        }
        if accepted.is_empty() && !self.failing {
            return;
        }
        let (batch, records) = self.batch(&mut accepted);
        if active(Mutant::AckBeforeCommit) {
            self.apply(accepted, records);
            sleep(Duration::from_millis(50)).await;
            let _ = self.commit(batch).await;
            return;
        }
        match self.commit(batch).await {
            Ok(()) => {
                self.recovered();
                self.apply(accepted, records);
            }
            Err(_) if active(Mutant::CommitErrorSwallowed) => self.apply(accepted, records),
            Err(problem) => self.failed(accepted, &problem),
        }
    }

    /// Numbers the records and gathers what is to be stored.
    fn batch(&self, changes: &mut [Change]) -> (Batch, Vec<Option<Arc<Record>>>) {
        let books = self.book.read();
        let (revision, marks) = (books.index.head(), self.promoted.clone());
        let mut batch = Batch { revision, marks, ..Batch::default() };
        for id in &self.suspects {
            let record = books.machines.get(id).cloned();
            batch.operations.push((id.clone(), None));
            for kind in Kind::ALL {
                let Some(operation) = books.operations.get(id, kind).cloned() else { continue };
                batch.operations.push((id.clone(), Some(OperationRow { kind, operation })));
            }
            batch.records.push((id.clone(), record));
        }
        let mut records = Vec::with_capacity(changes.len());
        for Change { id, draft, .. } in changes {
            if let Some(advance) = &draft.advance {
                if advance.known {
                    let (machine, shard) = (advance.machine.clone(), advance.shard_id.clone());
                    batch.marks.push(MarkRow { machine, shard, mark: advance.mark });
                }
                if let Some(epoch) = advance.epoch {
                    batch.epochs.push((advance.shard_id.clone(), epoch));
                }
            }
            if let Some(operation) = &draft.operation {
                let row =
                    operation.clone().map(|(kind, operation)| OperationRow { kind, operation });
                batch.operations.push((id.clone(), row));
            }
            let record = match std::mem::take(&mut draft.record) {
                RecordChange::Keep => {
                    records.push(None);
                    continue;
                }
                RecordChange::Put(mut record) => {
                    batch.revision += 1;
                    record.revision = batch.revision;
                    Some(Arc::new(record))
                }
                RecordChange::Drop => {
                    draft.record = RecordChange::Drop;
                    None
                }
            };
            batch.records.push((id.clone(), record.clone()));
            records.push(record);
        }
        (batch, records)
    }

    async fn commit(&self, batch: Batch) -> Result<(), String> {
        let begun = Instant::now();
        let written = if self.store.blocks() {
            let store = self.store.clone();
            match tokio::task::spawn_blocking(move || store.commit(&batch)).await {
                Ok(written) => written.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        } else {
            self.store.commit(&batch).map_err(|error| error.to_string())
        };
        self.metrics.committed(begun.elapsed());
        written
    }

    fn recovered(&mut self) {
        self.suspects.clear();
        self.promoted.clear();
        if std::mem::take(&mut self.failing) {
            tracing::info!("the store works again");
            self.health.well();
        }
    }

    /// Everything is visible at once, then everybody is told.
    fn apply(&mut self, changes: Vec<Change>, records: Vec<Option<Arc<Record>>>) {
        let mut done = Vec::with_capacity(changes.len());
        let mut books = self.book.write();
        for (change, record) in changes.into_iter().zip(records) {
            let Change { id, draft, reply, _lock, .. } = change;
            if let Some(advance) = draft.advance {
                books.fence.advance(advance);
            }
            match draft.operation {
                Some(Some((kind, operation))) => {
                    books.operations.start(id.clone(), kind, operation)
                }
                Some(None) => books.operations.forget(&id),
                None => {}
            }
            match (&draft.record, record) {
                (_, Some(record)) => {
                    if !books.machines.contains_key(&id) {
                        for (shard, mark) in books.fence.promote(&id) {
                            self.promoted.push(MarkRow { machine: id.clone(), shard, mark });
                        }
                    }
                    books.put(record);
                }
                (RecordChange::Drop, None) => books.drop_record(&id),
                _ => {}
            }
            done.push((books.machines.get(&id).cloned(), draft.start, reply, _lock));
        }
        drop(books);
        for (record, start, reply, lock) in done {
            if let (Some(start), Some(record)) = (start, record.clone()) {
                let timeout = self.timeouts.of(start.kind, start.operation.grace);
                let deadline = Instant::now() + timeout;
                // Nobody works once the tracker has stopped: the next start resumes it.
                let _ = self.works.send(Work { record, start, deadline });
            }
            drop(lock);
            let _ = reply.send(Ok(record));
        }
    }

    fn failed(&mut self, changes: Vec<Change>, problem: &str) {
        self.metrics.store_errors.inc();
        if !self.failing {
            tracing::error!(problem, "the store fails: mutations are refused until it works again");
        }
        self.failing = true;
        self.health.ill(&format!("the store fails: {problem}"));
        let problem: Arc<str> = problem.into();
        for change in changes {
            self.suspects.insert(change.id.clone());
            let _ = change.reply.send(Err(Unwritten::Store(problem.clone())));
        }
    }
}
