//! The state machine and its snapshots, as the consensus library uses them.

use std::{
    io::Cursor,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use openraft::{
    AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta,
    StorageIOError, storage::RaftStateMachine,
};

use tokio::sync::watch;

use super::types::{
    Entry, LogId, Member, MemberId, Outcome, Outcomes, StorageError, StoredMembership, Types,
    log_id,
};
use crate::{
    log::{self, Configuration, LogError, Server, Snapshots, StoredSnapshot},
    state::{Command, State},
    wall,
};

/// What has been applied, all at one index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Applied {
    pub(crate) state: State,
    pub(crate) last: Option<LogId>,
    pub(crate) members: StoredMembership,
}

/// How far snapshots on disk reach. The library tells the log to forget what a
/// snapshot that it is still installing contains; a crash in between would
/// leave neither, and a voter that forgot what it acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing, or up to this entry.
    Upto(Option<u64>),
    /// A snapshot could not be written: this replica cannot go on.
    Failed,
}

/// Clones are the same state machine.
#[derive(Clone)]
pub(crate) struct StateStore {
    applied: Arc<RwLock<Applied>>,
    snapshots: Snapshots,
    reach: Arc<watch::Sender<Reach>>,
}

impl StateStore {
    /// Starts from the newest snapshot.
    pub(crate) fn new(
        snapshots: Snapshots,
        snapshot: Option<&StoredSnapshot>,
    ) -> Result<Self, LogError> {
        let applied = snapshot.map(load).transpose()?.unwrap_or_default();
        let reach = watch::Sender::new(Reach::Upto(applied.last.map(|at| at.index)));
        Ok(Self { applied: Arc::new(RwLock::new(applied)), snapshots, reach: Arc::new(reach) })
    }

    /// How far snapshots on disk reach, now and later.
    pub(crate) fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    /// Size of the newest snapshot's state on disk.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.snapshots.newest_bytes()
    }

    /// What has been applied. Apply waits while this is held: keep it short.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Applied> {
        self.applied.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Applied> {
        self.applied.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the state at one index, to be written as a snapshot.
    pub(crate) fn cut(&self) -> Option<Cut> {
        let applied = self.read();
        let last = applied.last?;
        Some(Cut { applied: applied.clone(), last })
    }
}

/// A state that no longer changes.
pub(crate) struct Cut {
    applied: Applied,
    last: LogId,
}

impl Cut {
    /// The two artefacts of a snapshot.
    pub(crate) fn into_snapshot(self) -> Result<StoredSnapshot, serde_json::Error> {
        let Applied { state, members, .. } = &self.applied;
        let payload = state.to_payload();
        let unix_ms = wall::since_epoch().as_millis();
        let (term, index) = (self.last.leader_id.term, self.last.index);
        let meta = log::SnapshotMeta {
            id: format!("{term}-{index}-{unix_ms}"),
            index,
            term,
            configuration: configuration(members),
            configuration_index: members.log_id().map_or(0, |at| at.index),
            fleet_id: state.fleet_id().unwrap_or_default().to_owned(),
            membership: Some(serde_json::to_value(members)?),
            ..log::SnapshotMeta::default()
        };
        Ok(StoredSnapshot { meta: meta.describing(&payload), state: payload })
    }
}

fn configuration(members: &StoredMembership) -> Configuration {
    let voters: Vec<MemberId> = members.voter_ids().collect();
    let servers = members.nodes().map(|(id, member)| Server {
        suffrage: if voters.contains(id) { "Voter" } else { "Nonvoter" }.to_owned(),
        id: member.node_id.clone(),
        address: member.raft_address.clone(),
    });
    Configuration { servers: servers.collect() }
}

fn load(snapshot: &StoredSnapshot) -> Result<Applied, LogError> {
    let corrupt = |problem: String| {
        LogError::corrupt(
            std::path::Path::new("snapshots").join(&snapshot.meta.id).as_ref(),
            problem,
        )
    };
    let state = State::from_payload(&snapshot.state).map_err(|error| corrupt(error.to_string()))?;
    let members = snapshot.meta.membership.clone();
    let members = members.ok_or_else(|| corrupt("meta.json has no Membership".to_owned()))?;
    let members = serde_json::from_value(members).map_err(|error| corrupt(error.to_string()))?;
    Ok(Applied { state, last: Some(log_id(snapshot.meta.term, snapshot.meta.index)), members })
}

fn snapshot_meta(
    snapshot: &StoredSnapshot,
    members: StoredMembership,
) -> SnapshotMeta<MemberId, Member> {
    SnapshotMeta {
        last_log_id: Some(log_id(snapshot.meta.term, snapshot.meta.index)),
        last_membership: members,
        snapshot_id: snapshot.meta.id.clone(),
    }
}

/// The whole snapshot as one stream of bytes: the length of `meta.json`, it, the state.
fn to_stream(snapshot: &StoredSnapshot) -> Result<Vec<u8>, serde_json::Error> {
    let meta = serde_json::to_vec(&snapshot.meta)?;
    let mut bytes = (meta.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&meta);
    bytes.extend_from_slice(&snapshot.state);
    Ok(bytes)
}

fn from_stream(bytes: &[u8]) -> Option<StoredSnapshot> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (meta, state) = rest.split_at_checked(len)?;
    let meta: log::SnapshotMeta = serde_json::from_slice(meta).ok()?;
    meta.check(state).ok()?;
    Some(StoredSnapshot { meta, state: state.to_vec() })
}

/// Writes a snapshot and tells the log how far it reaches.
fn save(
    snapshots: &Snapshots,
    reach: &watch::Sender<Reach>,
    stored: &StoredSnapshot,
) -> Result<(), LogError> {
    let saved = snapshots.save(stored);
    reach.send_modify(|reach| {
        *reach = match (&saved, *reach) {
            (Ok(()), Reach::Upto(before)) => Reach::Upto(before.max(Some(stored.meta.index))),
            _ => Reach::Failed,
        };
    });
    saved
}

/// Work that would hold up a thread of the runtime, given to it as such where
/// it has several.
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn write_failed(error: impl std::error::Error + 'static) -> StorageError {
    StorageIOError::write_snapshot(None, AnyError::new(&error)).into()
}

impl RaftStateMachine<Types> for StateStore {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let applied = self.read();
        Ok((applied.last, applied.members.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Outcomes>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut applied = self.write();
        let mut all = Vec::new();
        for entry in entries {
            let (id, mut outcomes) = (entry.log_id, Vec::<Outcome>::new());
            match entry.payload {
                EntryPayload::Blank => applied.state.skip(id.index),
                EntryPayload::Membership(members) => {
                    applied.members = StoredMembership::new(Some(id), members);
                    applied.state.skip(id.index);
                }
                EntryPayload::Normal(proposal) => {
                    for bytes in &proposal.commands {
                        // To skip it would fork the state: the replica halts.
                        let command = Command::decode(bytes)
                            .map_err(|error| StorageIOError::apply(id, AnyError::new(&error)))?;
                        outcomes.push(applied.state.apply(id.index, &command));
                    }
                }
            }
            applied.last = Some(id);
            all.push(Outcomes(outcomes));
        }
        Ok(all)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { cut: self.cut(), snapshots: self.snapshots.clone(), reach: self.reach.clone() }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<MemberId, Member>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let refused = |problem: &str| {
            StorageError::from(StorageIOError::read_snapshot(
                Some(meta.signature()),
                AnyError::error(problem),
            ))
        };
        let Some(stored) = from_stream(snapshot.get_ref()) else {
            self.reach.send_replace(Reach::Failed);
            return Err(refused("it fails its checks"));
        };
        // Durable before it is in force: the log before it goes next.
        let applied = blocking(|| {
            let applied = load(&stored)?;
            save(&self.snapshots, &self.reach, &stored).map(|()| applied)
        });
        let applied = applied.map_err(write_failed)?;
        *self.write() = applied;
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let loaded = blocking(|| self.snapshots.load());
        let Some(stored) = loaded.map_err(write_failed)? else { return Ok(None) };
        let members = load(&stored).map_err(write_failed)?.members;
        let bytes = to_stream(&stored).map_err(write_failed)?;
        let (meta, snapshot) = (snapshot_meta(&stored, members), Box::new(Cursor::new(bytes)));
        Ok(Some(Snapshot { meta, snapshot }))
    }
}

/// Writes one snapshot from a copy, while entries go on being applied.
pub(crate) struct Builder {
    cut: Option<Cut>,
    snapshots: Snapshots,
    reach: Arc<watch::Sender<Reach>>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let nothing = || write_failed(std::io::Error::other("nothing has been applied"));
        let cut = self.cut.take().ok_or_else(nothing)?;
        let members = cut.applied.members.clone();
        let stored = blocking(|| cut.into_snapshot()).map_err(write_failed)?;
        blocking(|| save(&self.snapshots, &self.reach, &stored)).map_err(write_failed)?;
        let bytes = to_stream(&stored).map_err(write_failed)?;
        let (meta, snapshot) = (snapshot_meta(&stored, members), Box::new(Cursor::new(bytes)));
        Ok(Snapshot { meta, snapshot })
    }
}
