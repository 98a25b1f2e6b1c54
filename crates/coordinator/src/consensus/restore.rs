//! From a backup to a data directory, offline (§10).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use bigfleet_model::FleetId;

use super::types::{Member, MemberId, Membership, StoredMembership, log_id};
use crate::{
    log::{
        Configuration, DataDir, Disk, HardState, LogError, Server, SnapshotMeta, StoredSnapshot,
    },
    state::{MAX_KIND, State},
};

/// What to restore, and as whom.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The backup.
    pub backup: StoredSnapshot,
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
    /// A human's word that the backup is to be taken as it is.
    pub skip_integrity_check: bool,
}

/// Why nothing was restored. The data directory is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup is not one.
    #[error("the backup cannot be used: {0}")]
    Backup(String),
    /// The directory cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Restore {
    /// Checks everything, then takes the lock, sets aside what is there and
    /// writes the backup as a single-voter fleet of a new generation, by the
    /// clock: a counter would give two restores of one backup the same number.
    pub fn into_dir(self, disk: &Arc<dyn Disk>, root: &Path) -> Result<FleetId, RestoreError> {
        let unusable = |why: String| RestoreError::Backup(why);
        let StoredSnapshot { meta, state } = &self.backup;
        if !self.skip_integrity_check {
            meta.check(state).map_err(unusable)?;
        }
        if meta.index == 0 {
            return Err(unusable("index is 0".to_owned()));
        }
        let mut state = State::from_payload(state).map_err(|error| unusable(error.to_string()))?;
        let known = state.fleet_id().unwrap_or(&meta.fleet_id).to_owned();
        let known: FleetId =
            known.parse().map_err(|_| unusable("it is of no fleet that had opened".to_owned()))?;
        let seconds = u32::try_from(self.now / 1000).unwrap_or(u32::MAX);
        let next = |generation: u32| generation.saturating_add(1);
        let least = next(known.generation()).max(self.above.map_or(0, next));
        let fleet = FleetId::new(known.uuid(), seconds.max(least));
        state.begin_recovery(&fleet);
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
        let membership =
            serde_json::to_value(&members).map_err(|error| unusable(error.to_string()))?;
        let server =
            Server { suffrage: "Voter".to_owned(), id: self.node_id, address: self.raft_address };
        let restored = SnapshotMeta {
            id: format!("{}-{}-{}", meta.term, meta.index, self.now),
            index: meta.index,
            term: meta.term,
            configuration: Configuration { servers: vec![server] },
            configuration_index: meta.index,
            fleet_id: fleet.to_string(),
            membership: Some(membership),
            ..SnapshotMeta::default()
        };
        // Terms do not regress: the fleet goes on with the snapshot's.
        let hard_state = HardState { term: meta.term, ..HardState::default() };
        let snapshot = StoredSnapshot { meta: restored.describing(&payload), state: payload };
        let dir = DataDir::lock(Arc::clone(disk), root)?;
        dir.replace_with(&snapshot, &hard_state, fleet.as_str(), self.incarnation, self.now)?;
        Ok(fleet)
    }
}
