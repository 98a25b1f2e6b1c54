//! Snapshots on disk: `snapshots/<term>-<index>-<unix_ms>/{meta.json,state}`.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Disk, LogError, Position};

/// Layout of `meta.json` and `state` that this version writes. A higher one is
/// refused: to ignore what one does not know would fork the state.
pub const SNAPSHOT_FORMAT: u32 = 1;

/// Snapshots that are kept.
const KEPT: usize = 2;

/// One member in `meta.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Server {
    /// `Voter` or `Nonvoter`.
    pub suffrage: String,
    /// Node id.
    #[serde(rename = "ID")]
    pub id: String,
    /// Address of its consensus transport.
    pub address: String,
}

/// All members in `meta.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Configuration {
    /// One row per member.
    pub servers: Vec<Server>,
}

/// `meta.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SnapshotMeta {
    /// Name of the snapshot, and of its directory.
    #[serde(rename = "ID")]
    pub id: String,
    /// Last entry it contains.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// Bytes of `state`.
    pub size: u64,
    /// The members, for people and tools.
    pub configuration: Configuration,
    /// Entry that set the members.
    pub configuration_index: u64,
    /// Kind of this file in the base contract.
    pub version: u32,
    /// [`SNAPSHOT_FORMAT`] of its writer.
    pub format_version: u32,
    /// The fleet, with its generation; empty before it opened.
    #[serde(rename = "FleetID")]
    pub fleet_id: String,
    /// Hex digest of `state`.
    #[serde(rename = "SHA256")]
    pub sha256: String,
    /// The members as consensus has them, with incarnations and, in the middle
    /// of a change, both sets. Absent: a single-voter group is made of the
    /// configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<serde_json::Value>,
}

impl SnapshotMeta {
    /// Where the snapshot stands in the log.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { term: self.term, index: self.index }
    }

    /// Sets what describes `state`.
    #[must_use]
    pub fn describing(mut self, state: &[u8]) -> Self {
        self.size = state.len() as u64;
        self.sha256 = digest(state);
        (self.version, self.format_version) = (1, SNAPSHOT_FORMAT);
        self
    }

    /// When it was made, in unix milliseconds, as its name says.
    #[must_use]
    pub fn made_at(&self) -> Option<u64> {
        parse(&self.id).map(|(_, _, unix_ms)| unix_ms)
    }

    /// Whether it is of this format and `state` is the one described.
    pub fn check(&self, state: &[u8]) -> Result<(), String> {
        self.check_format()?;
        self.check_state(state)
    }

    /// Whether this version can know what it says.
    pub(crate) fn check_format(&self) -> Result<(), String> {
        if self.format_version > SNAPSHOT_FORMAT {
            return Err(format!(
                "format {} is newer than {SNAPSHOT_FORMAT}, which this version reads",
                self.format_version
            ));
        }
        if self.index == 0 {
            return Err("index is 0".to_owned());
        }
        Ok(())
    }

    /// Whether `state` is the one described.
    pub(crate) fn check_state(&self, state: &[u8]) -> Result<(), String> {
        if self.size != state.len() as u64 {
            return Err(format!("state has {} bytes, meta.json says {}", state.len(), self.size));
        }
        if self.sha256 != digest(state) {
            return Err("state fails its SHA-256".to_owned());
        }
        Ok(())
    }
}

fn digest(state: &[u8]) -> String {
    Sha256::digest(state).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A snapshot that was read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// Its description.
    pub meta: SnapshotMeta,
    /// The state's payload.
    pub state: Vec<u8>,
}

/// The directory of snapshots.
#[derive(Debug, Clone)]
pub struct Snapshots {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Size of the newest state that was read or written; clones share it.
    newest: Arc<AtomicU64>,
}

impl Snapshots {
    /// Creates the directory if absent and clears away what a crash left.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, LogError> {
        disk.create_dir_all(dir).map_err(LogError::io("creating", dir))?;
        let this = Self { disk, dir: dir.to_owned(), newest: Arc::default() };
        for name in this.names(TEMPORARY)? {
            this.remove(&name)?;
        }
        Ok(this)
    }

    /// Size of the newest state; 0 while there is none.
    #[must_use]
    pub fn newest_bytes(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// The newest snapshot that passes its checksum; none if there never was
    /// one; an error if there are some and all fail.
    pub fn load(&self) -> Result<Option<StoredSnapshot>, LogError> {
        let mut failure = None;
        for (_, name) in self.newest_first()? {
            match self.read(&name) {
                Ok(snapshot) => {
                    self.newest.store(snapshot.meta.size, Ordering::Relaxed);
                    return Ok(Some(snapshot));
                }
                Err(error) => {
                    tracing::error!(%error, "a snapshot cannot be used");
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(None), Err)
    }

    fn read(&self, name: &str) -> Result<StoredSnapshot, LogError> {
        let (meta_path, state_path) =
            (self.dir.join(name).join("meta.json"), self.dir.join(name).join("state"));
        let meta = self.disk.read(&meta_path).map_err(LogError::io("reading", &meta_path))?;
        let meta: SnapshotMeta = serde_json::from_slice(&meta)
            .map_err(|error| LogError::corrupt(&meta_path, error.to_string()))?;
        let state = self.disk.read(&state_path).map_err(LogError::io("reading", &state_path))?;
        meta.check(&state).map_err(|problem| LogError::corrupt(&state_path, problem))?;
        Ok(StoredSnapshot { meta, state })
    }

    /// Writes a snapshot under a temporary name, syncs it, renames it, then
    /// prunes all but the newest two.
    pub fn save(&self, snapshot: &StoredSnapshot) -> Result<(), LogError> {
        let (name, disk) = (&snapshot.meta.id, &self.disk);
        if parse(name).is_none() {
            let path = self.dir.join(name);
            return Err(LogError::corrupt(&path, "its name is not <term>-<index>-<unix_ms>"));
        }
        let meta = serde_json::to_vec(&snapshot.meta)
            .map_err(|error| LogError::corrupt(&self.dir.join(name), error.to_string()))?;
        write_artefacts(&**disk, &self.dir, name, &meta, &snapshot.state)?;
        self.newest.store(snapshot.meta.size, Ordering::Relaxed);
        for (_, old) in self.newest_first()?.into_iter().skip(KEPT) {
            self.remove(&old)?;
        }
        Ok(())
    }

    fn newest_first(&self) -> Result<Vec<(Age, String)>, LogError> {
        let names = self.names("")?.into_iter();
        let mut found: Vec<_> = names.filter_map(|name| Some((parse(&name)?, name))).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found)
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>, LogError> {
        let mut names = self.disk.list(&self.dir).map_err(LogError::io("listing", &self.dir))?;
        names.retain(|name| name.starts_with(prefix));
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), LogError> {
        let path = self.dir.join(name);
        self.disk.remove_dir_all(&path).map_err(LogError::io("removing", &path))
    }
}

/// What directories are called until they are complete.
pub(crate) const TEMPORARY: &str = "tmp-";

/// Writes `<dir>/<name>/{state,meta.json}` under a temporary name, syncs it, renames it.
pub(crate) fn write_artefacts(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    meta: &[u8],
    state: &[u8],
) -> Result<(), LogError> {
    let temporary = dir.join(format!("{TEMPORARY}{name}"));
    disk.create_dir_all(&temporary).map_err(LogError::io("creating", &temporary))?;
    for (file, bytes) in [("state", state), ("meta.json", meta)] {
        let path = temporary.join(file);
        let mut file = disk.create(&path).map_err(LogError::io("creating", &path))?;
        file.append(bytes).map_err(LogError::io("writing", &path))?;
        file.sync().map_err(LogError::io("syncing", &path))?;
    }
    disk.sync_dir(&temporary).map_err(LogError::io("syncing", &temporary))?;
    let path = dir.join(name);
    disk.rename(&temporary, &path).map_err(LogError::io("renaming", &path))?;
    disk.sync_dir(dir).map_err(LogError::io("syncing", dir))
}

/// Index, term and time of a snapshot's name.
type Age = (u64, u64, u64);

fn parse(name: &str) -> Option<Age> {
    let mut parts = name.split('-').map(str::parse::<u64>);
    let (term, index, time) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    parts.next().is_none().then_some((index, term, time))
}
