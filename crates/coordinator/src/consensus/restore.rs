//! From a backup to a data directory, offline (§10).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use bigfleet_model::FleetId;

use super::types::{Member, MemberId, Membership, StoredMembership, log_id};
use crate::{
    backup::Backup,
    log::{
        Configuration, DataDir, Disk, HardState, LogError, Server, SnapshotMeta, StoredSnapshot,
    },
    state::MAX_KIND,
};

/// What to restore, and as whom.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The backup.
    pub backup: Backup,
    /// The only voter.
    pub node_id: String,
    /// Where its peers will dial it.
    pub raft_address: String,
    /// The new generation is above this one too.
    pub above: Option<u32>,
    /// Unix milliseconds, now.
    pub now: u64,
    /// Random.
    pub incarnation: u64,
    /// Names the fleet if the backup is from before fleets had names.
    pub uuid: String,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A group that never served has nothing to restore.
    #[error("the backup is of a fleet that had not opened; form a new one instead")]
    NotOpened,
    /// `FleetID` is none.
    #[error("the backup cannot be used: {0}")]
    FleetId(#[from] bigfleet_model::fleet::MalformedFleetId),
    /// The directory is of another fleet.
    #[error(
        "the backup is of fleet {backup}, the data directory of {dir}: it is foreign here; empty \
         the directory if this fleet is to take its place"
    )]
    Foreign {
        /// The backup's.
        backup: String,
        /// The directory's.
        dir: String,
    },
    /// There is no number left.
    #[error("no generation is above {0}")]
    LastGeneration(u32),
    /// A group that does not fit in a file.
    #[error("the members cannot be written: {0}")]
    Members(#[from] serde_json::Error),
    /// The directory cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Restore {
    /// Takes the lock, sets aside what is there and writes the backup as a single-voter
    /// fleet of a new generation. The backup was checked when it was read; whatever
    /// else can be refused is, before anything is touched.
    pub fn into_dir(self, disk: &Arc<dyn Disk>, root: &Path) -> Result<FleetId, RestoreError> {
        let past = self.past()?;
        let dir = DataDir::lock(Arc::clone(disk), root)?;
        let fleet = self.next_generation(&past, &dir)?;
        let meta = self.backup.meta();
        let mut state = self.backup.state().clone();
        // An older version did not write it; versions that are handed out go on from it.
        state.skip(meta.index);
        state.begin_recovery(&fleet, meta.made_at().unwrap_or_default());
        let payload = state.to_payload();

        let me = MemberId::new(&self.node_id, self.incarnation);
        let member = Member {
            node_id: self.node_id.clone(),
            raft_address: self.raft_address.clone(),
            grpc_address: String::new(),
            max_kind: MAX_KIND,
        };
        let alone = Membership::new(vec![BTreeSet::from([me])], BTreeMap::from([(me, member)]));
        let members = StoredMembership::new(Some(log_id(meta.term, meta.index)), alone);
        let server =
            Server { suffrage: "Voter".to_owned(), id: self.node_id, address: self.raft_address };
        let restored = SnapshotMeta {
            id: format!("{}-{}-{}", meta.term, meta.index, self.now),
            index: meta.index,
            term: meta.term,
            configuration: Configuration { servers: vec![server] },
            configuration_index: meta.index,
            fleet_id: fleet.to_string(),
            membership: Some(serde_json::to_value(&members)?),
            ..SnapshotMeta::default()
        };
        // Terms do not regress: the fleet goes on with the snapshot's.
        let hard_state = HardState { term: meta.term, ..HardState::default() };
        let snapshot = StoredSnapshot { meta: restored.describing(&payload), state: payload };
        dir.replace_with(&snapshot, &hard_state, fleet.as_str(), self.incarnation, self.now)?;
        Ok(fleet)
    }

    /// The fleet and generation of the backup.
    fn past(&self) -> Result<FleetId, RestoreError> {
        match self.backup.fleet_id() {
            Some(fleet) => Ok(fleet.parse()?),
            None if self.backup.meta().format_version == 0 => Ok(FleetId::new(&self.uuid, 0)),
            None => Err(RestoreError::NotOpened),
        }
    }

    /// By the clock, for a counter would give two restores of one backup the same
    /// number, and above every predecessor that is known here, for clocks jump.
    fn next_generation(&self, past: &FleetId, dir: &DataDir) -> Result<FleetId, RestoreError> {
        let mut before = past.generation().max(self.above.unwrap_or_default());
        for known in dir.known_fleets() {
            let Ok(known) = known.parse::<FleetId>() else { continue };
            if known.uuid() != past.uuid() {
                let (backup, dir) = (past.to_string(), known.to_string());
                return Err(RestoreError::Foreign { backup, dir });
            }
            before = before.max(known.generation());
        }
        let least = before.checked_add(1).ok_or(RestoreError::LastGeneration(before))?;
        let seconds = u32::try_from(self.now / 1000).unwrap_or(u32::MAX);
        Ok(FleetId::new(past.uuid(), seconds.max(least)))
    }
}
