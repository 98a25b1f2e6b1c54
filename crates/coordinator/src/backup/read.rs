//! From a file or a directory to a backup that can be restored.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path},
};

use crate::{
    log::{SnapshotMeta, StoredSnapshot},
    state::{PayloadError, State},
};

const META: &str = "meta.json";
const STATE: &str = "state";

/// More than any group's `meta.json`, less than what hurts to read.
const META_LIMIT: u64 = 1 << 20;

/// Whether size and digest of the state must be those that `meta.json` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrity {
    /// They must.
    Checked,
    /// A human's word that the backup is to be taken as it is. It must load all the same.
    Skipped,
}

/// A backup that this version can restore: its parts belong together and its state loads.
#[derive(Debug, Clone)]
pub struct Backup {
    meta: SnapshotMeta,
    state: State,
}

/// Why something is no backup that can be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It cannot be opened or read.
    #[error("reading {path}: {source}")]
    Io {
        /// The file or directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file is of another kind, or cut.
    #[error("not a tar of meta.json and state, or cut off: {0}")]
    NotATar(io::Error),
    /// The archive holds something else.
    #[error("it holds {0:?}, which is no part of a backup")]
    Stranger(String),
    /// Two of a kind.
    #[error("{0} is there twice")]
    Twice(&'static str),
    /// Not in the order in which it is written.
    #[error("state is before meta.json; a backup is meta.json, then state")]
    StateFirst,
    /// Half a backup.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The end of it is gone.
    #[error("{part} is cut off: {found} of {wanted} bytes")]
    CutOff {
        /// Of which part.
        part: &'static str,
        /// What is there.
        found: u64,
        /// What should be.
        wanted: u64,
    },
    /// `meta.json` is not one.
    #[error("meta.json cannot be read: {0}")]
    Meta(String),
    /// `meta.json` has no digest, so that nothing can be verified.
    #[error(
        "meta.json has no SHA256, an older version wrote it; --skip-integrity-check takes it \
         unverified"
    )]
    NoDigest,
    /// The state is not the one that `meta.json` describes, or is of a newer format.
    #[error("{0}")]
    Unfit(String),
    /// The state does not load.
    #[error(transparent)]
    State(#[from] PayloadError),
}

impl Backup {
    /// A tar, an export, the directory of exports, or `latest` in it.
    pub fn read(path: &Path, integrity: Integrity) -> Result<Self, BackupError> {
        let unreadable = |source| BackupError::Io { path: path.display().to_string(), source };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Self::from_dir(path, integrity);
        }
        Self::from_tar(File::open(path).map_err(unreadable)?, integrity)
    }

    fn from_dir(path: &Path, integrity: Integrity) -> Result<Self, BackupError> {
        let (latest, bare) = (path.join("latest"), !path.join(META).exists());
        let dir = if bare && latest.is_dir() { latest.as_path() } else { path };
        let part = |name: &'static str| {
            let path = dir.join(name);
            fs::read(&path).map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => BackupError::Missing(name),
                _ => BackupError::Io { path: path.display().to_string(), source },
            })
        };
        Self::from_parts(&part(META)?, &part(STATE)?, integrity)
    }

    /// The bytes of a tar.
    pub fn from_tar(tar: impl Read, integrity: Integrity) -> Result<Self, BackupError> {
        let (mut meta, mut state) = (None, None);
        let mut archive = tar::Archive::new(tar);
        for entry in archive.entries().map_err(BackupError::NotATar)? {
            let mut entry = entry.map_err(BackupError::NotATar)?;
            let (kind, name) = (entry.header().entry_type(), name_of(&entry)?);
            if kind.is_dir() && name.is_empty() {
                continue;
            }
            let (part, limit) = match name.as_str() {
                META if kind.is_file() => (META, META_LIMIT),
                STATE if kind.is_file() => (STATE, u64::MAX),
                _ => return Err(BackupError::Stranger(name)),
            };
            match (part, &meta, &state) {
                (META, Some(_), _) | (STATE, _, Some(_)) => return Err(BackupError::Twice(part)),
                (STATE, None, _) => return Err(BackupError::StateFirst),
                _ => {}
            }
            let wanted = entry.size();
            let mut bytes = Vec::new();
            let mut limited = (&mut entry).take(limit);
            limited.read_to_end(&mut bytes).map_err(BackupError::NotATar)?;
            let found = bytes.len() as u64;
            if found != wanted {
                return Err(BackupError::CutOff { part, found, wanted });
            }
            *(if part == META { &mut meta } else { &mut state }) = Some(bytes);
        }
        let meta = meta.ok_or(BackupError::Missing(META))?;
        Self::from_parts(&meta, &state.ok_or(BackupError::Missing(STATE))?, integrity)
    }

    /// The two artefacts.
    pub fn from_parts(
        meta: &[u8],
        state: &[u8],
        integrity: Integrity,
    ) -> Result<Self, BackupError> {
        let meta: SnapshotMeta =
            serde_json::from_slice(meta).map_err(|error| BackupError::Meta(error.to_string()))?;
        Self::new(meta, state, integrity)
    }

    /// What a replica cut.
    pub fn from_snapshot(snapshot: StoredSnapshot) -> Result<Self, BackupError> {
        Self::new(snapshot.meta, &snapshot.state, Integrity::Checked)
    }

    fn new(meta: SnapshotMeta, state: &[u8], integrity: Integrity) -> Result<Self, BackupError> {
        // Also unchecked: to ignore what one does not know would fork the state.
        meta.check_format().map_err(BackupError::Unfit)?;
        if integrity == Integrity::Checked {
            if meta.sha256.is_empty() {
                return Err(BackupError::NoDigest);
            }
            meta.check_state(state).map_err(BackupError::Unfit)?;
        }
        let state = State::from_payload(state)?;
        // The log goes on from meta's index: versions that shards know must not repeat.
        if state.applied_index() > meta.index {
            return Err(BackupError::Unfit(format!(
                "meta.json is at index {}, state at {}: they are of two backups",
                meta.index,
                state.applied_index()
            )));
        }
        match state.fleet_id() {
            Some(fleet) if !meta.fleet_id.is_empty() && fleet != meta.fleet_id => {
                Err(BackupError::Unfit(format!(
                    "meta.json is of fleet {}, state of {fleet}: they are of two backups",
                    meta.fleet_id
                )))
            }
            _ => Ok(Self { meta, state }),
        }
    }

    /// What `meta.json` says.
    #[must_use]
    pub const fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    /// The state, loaded.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Its fleet, with the generation; none if it had not opened, or an older version,
    /// which knew of no fleets, wrote it.
    #[must_use]
    pub fn fleet_id(&self) -> Option<&str> {
        let said = Some(self.meta.fleet_id.as_str()).filter(|fleet| !fleet.is_empty());
        self.state.fleet_id().or(said)
    }
}

/// The entry's path without `./`.
fn name_of<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String, BackupError> {
    let path = entry.path().map_err(BackupError::NotATar)?;
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let name = parts.collect::<std::path::PathBuf>();
    Ok(name.to_string_lossy().into_owned())
}
