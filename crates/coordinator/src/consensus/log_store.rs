//! The log as the consensus library uses it.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    ops::RangeBounds,
    sync::{Arc, Mutex, PoisonError},
};

use openraft::{
    EntryPayload, LogState, OptionalSend, RaftLogReader, StorageIOError,
    storage::{LogFlushed, RaftLogStorage},
};
use tokio::sync::{oneshot, watch};

use super::{
    codec,
    state_store::Reach,
    types::{Entry, LogId, MemberId, StorageError, Types, Vote, log_id},
};
use crate::{
    log::{HardState, LogError, Position, Record, Recovered, Writer},
    state::Command,
};

#[derive(Default)]
struct Index {
    /// Live entries. Compaction keeps 10,240 behind the snapshot, and fewer when they
    /// are large.
    entries: BTreeMap<u64, Entry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    /// Highest command kind in an entry that is or was here, committed or not.
    kind: u32,
    /// Entries that hold an InitFleet: while there is one, the fleet is open.
    init_fleet: Vec<u64>,
}

impl Index {
    fn last(&self) -> Option<LogId> {
        self.entries.last_key_value().map(|(_, entry)| entry.log_id).or(self.purged)
    }

    fn insert(&mut self, entry: Entry) {
        if let EntryPayload::Normal(proposal) = &entry.payload {
            // What cannot be decoded halts the replica when it is applied.
            let commands = proposal.commands.iter().filter_map(|one| Command::decode(one).ok());
            for command in commands {
                self.kind = self.kind.max(command.kind());
                if matches!(command, Command::InitFleet { .. }) {
                    self.init_fleet.push(entry.log_id.index);
                }
            }
        }
        self.entries.insert(entry.log_id.index, entry);
    }
}

/// The log: entries in memory, written through to the disk.
#[derive(Clone)]
pub(crate) struct LogStore {
    index: Arc<Mutex<Index>>,
    writer: Writer,
    reach: watch::Receiver<Reach>,
}

impl LogStore {
    /// Takes over what was recovered.
    pub(crate) fn new(
        recovered: Recovered,
        hard_state: Option<&HardState>,
        writer: Writer,
        reach: watch::Receiver<Reach>,
        file: &std::path::Path,
    ) -> Result<Self, LogError> {
        let mut index = Index {
            purged: recovered.purged.map(|at| log_id(at.term, at.index)),
            // Never as a committed vote: a replica that restarts follows until
            // it hears from a leader, and one that led needs a new term, so
            // that no two leaderships share one.
            vote: hard_state.map(to_vote),
            ..Index::default()
        };
        for (at, bytes) in recovered.entries.into_values() {
            let entry = codec::decode(at, &bytes);
            index.insert(entry.map_err(|error| LogError::corrupt(file, error.to_string()))?);
        }
        Ok(Self { index: Arc::new(Mutex::new(index)), writer, reach })
    }

    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        // Nothing in here panics half way.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Highest command kind that was ever appended here.
    pub(crate) fn kind(&self) -> u32 {
        self.index().kind
    }

    /// Whether an InitFleet is in the log.
    pub(crate) fn has_init_fleet(&self) -> bool {
        !self.index().init_fleet.is_empty()
    }

    /// Bytes in memory of entries after this one.
    pub(crate) fn weight_after(&self, index: Option<u64>) -> usize {
        let from = index.map_or(0, |index| index + 1);
        self.index().entries.range(from..).map(|(_, entry)| weight(entry)).sum()
    }

    /// The last entry that must go for those after it to weigh no more than this.
    pub(crate) fn surplus(&self, bytes: usize) -> Option<u64> {
        let (index, mut sum) = (self.index(), 0);
        let mut newest_first = index.entries.iter().rev();
        newest_first
            .find(|(_, entry)| {
                sum += weight(entry);
                sum > bytes
            })
            .map(|(at, _)| *at)
    }

    /// The term of the vote that is stored.
    pub(crate) fn term(&self) -> u64 {
        self.index().vote.map_or(0, |vote| vote.leader_id().get_term())
    }

    /// Last entry, or the last purged one.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.index().last()
    }
}

/// What an entry takes in memory, about.
fn weight(entry: &Entry) -> usize {
    let commands = match &entry.payload {
        EntryPayload::Normal(proposal) => proposal.commands.as_slice(),
        EntryPayload::Blank | EntryPayload::Membership(_) => &[],
    };
    let bytes = commands.iter().map(|command| size_of_val(command) + command.len());
    size_of_val(entry) + bytes.sum::<usize>()
}

fn to_vote(state: &HardState) -> Vote {
    if state.voted {
        Vote::new(state.term, MemberId { node: state.node, incarnation: state.incarnation })
    } else {
        let mut vote = Vote::default();
        vote.leader_id.term = state.term;
        vote
    }
}

fn from_vote(vote: &Vote) -> HardState {
    let leader = vote.leader_id();
    let member = leader.voted_for().unwrap_or_default();
    HardState {
        term: leader.get_term(),
        voted: leader.voted_for().is_some(),
        node: member.node,
        incarnation: member.incarnation,
    }
}

async fn durable(told: oneshot::Receiver<Result<(), String>>) -> Result<(), std::io::Error> {
    match told.await {
        Ok(outcome) => outcome.map_err(std::io::Error::other),
        Err(_) => Err(std::io::Error::other("the log's writer has ended")),
    }
}

fn failed(error: &std::io::Error) -> StorageError {
    StorageIOError::write_logs(openraft::AnyError::new(error)).into()
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.index().entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let index = self.index();
        Ok(LogState { last_purged_log_id: index.purged, last_log_id: index.last() })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let (old, new) = (self.index().vote.as_ref().map(from_vote), from_vote(vote));
        // A vote that becomes a leader's only says again what is stored.
        if old.as_ref() != Some(&new) {
            durable(self.writer.hard_state(new)).await.map_err(|error| {
                StorageError::from(StorageIOError::write_vote(openraft::AnyError::new(&error)))
            })?;
        }
        self.index().vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.index().vote)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut records = Vec::new();
        for entry in entries {
            let bytes = codec::encode(&entry)
                .map_err(|error| failed(&std::io::Error::other(error.to_string())))?;
            records.push(Record::Entry(codec::position(&entry), bytes));
            self.index().insert(entry);
        }
        callback.log_io_completed(durable(self.writer.log(records)).await);
        Ok(())
    }

    async fn truncate(&mut self, since: LogId) -> Result<(), StorageError> {
        durable(self.writer.log(vec![Record::Cut(since.index)]))
            .await
            .map_err(|error| failed(&error))?;
        let mut index = self.index();
        index.entries.split_off(&since.index);
        index.init_fleet.retain(|at| *at < since.index);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), StorageError> {
        let reaches = |reach: &Reach| match reach {
            Reach::Upto(index) => *index >= Some(upto.index),
            Reach::Failed => true,
        };
        let reached = match self.reach.wait_for(reaches).await {
            Ok(reach) => *reach != Reach::Failed,
            Err(_) => false,
        };
        if !reached {
            return Err(failed(&std::io::Error::other("no snapshot has what is to be purged")));
        }
        let at = Position { term: upto.leader_id.term, index: upto.index };
        durable(self.writer.log(vec![Record::Purge(at)])).await.map_err(|error| failed(&error))?;
        let mut index = self.index();
        index.entries = index.entries.split_off(&(upto.index + 1));
        index.purged = index.purged.max(Some(upto));
        Ok(())
    }
}
