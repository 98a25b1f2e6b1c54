//! The directory as a whole: its lock, its markers, and what it takes to wipe it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Disk, HardState, LockHeld, LogError, Recovered, Snapshots, StoredSnapshot, Wal,
    snapshots::TEMPORARY,
};

/// With less than this free, a replica hands leadership away and is unready.
pub const LOW_SPACE: u64 = 128 << 20;

/// Kept so that compaction has room on a full disk.
const BALLAST: u64 = 64 << 20;

/// What a restore takes the place of.
const CONSENSUS: [&str; 6] =
    ["incarnation", "fleet", "superseded", "hardstate", "wal", "snapshots"];

/// Marks a directory in which a restore has begun to move files.
const RESTORING: &str = "restoring";

/// A locked data directory.
#[derive(Debug)]
pub struct DataDir {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    _lock: Box<dyn LockHeld>,
}

/// What a data directory held when it was opened.
pub struct Contents {
    /// The log's files.
    pub wal: Wal,
    /// The log's entries.
    pub recovered: Recovered,
    /// Term and vote.
    pub hard_state: Option<HardState>,
    /// The directory of snapshots.
    pub snapshots: Snapshots,
    /// The newest good snapshot.
    pub snapshot: Option<StoredSnapshot>,
    /// Random, made with the directory: tells a wiped replica from the one it was.
    pub incarnation: u64,
    /// The fleet this replica is in.
    pub fleet: Option<String>,
    /// The newer fleet that this replica has seen.
    pub superseded: Option<String>,
}

impl Contents {
    /// No log, no hard state, no snapshot, no fleet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recovered == Recovered::default()
            && self.hard_state.is_none()
            && self.snapshot.is_none()
            && self.fleet.is_none()
    }
}

impl DataDir {
    /// Creates the directory if absent and takes its lock.
    pub fn lock(disk: Arc<dyn Disk>, root: &Path) -> Result<Self, LogError> {
        disk.create_dir_all(root).map_err(LogError::io("creating", root))?;
        let path = root.join("LOCK");
        let lock = disk.lock(&path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => LogError::Locked { path: path.display().to_string() },
            _ => LogError::io("locking", &path)(error),
        })?;
        Ok(Self { disk, root: root.to_owned(), _lock: lock })
    }

    /// Reads everything. `new_incarnation` is used if the directory has none.
    pub fn open(&self, new_incarnation: u64) -> Result<Contents, LogError> {
        if self.marker(RESTORING)?.is_some() {
            let path = self.root.join(RESTORING).display().to_string();
            return Err(LogError::HalfRestored { path });
        }
        let snapshots = Snapshots::open(self.disk.clone(), &self.root.join("snapshots"))?;
        let snapshot = snapshots.load()?;
        let (wal, recovered) = Wal::open(self.disk.clone(), &self.root.join("wal"))?;
        let hard_state = HardState::load(&*self.disk, &self.hard_state_path())?;
        let wal_dir = self.root.join("wal");
        // The first entry of a fleet, of term 0, is written before any vote.
        let used = recovered.entries.values().any(|(at, _)| at.term > 0);
        if hard_state.is_none() && (used || recovered.purged.is_some()) {
            let problem = "it is missing, and the log has been used";
            return Err(LogError::corrupt(&self.hard_state_path(), problem));
        }
        let covered = snapshot.as_ref().map(|snapshot| snapshot.meta.index);
        if recovered.purged.is_some_and(|purged| covered.is_none_or(|index| index < purged.index)) {
            let problem = "entries before it were purged, and no snapshot has them";
            return Err(LogError::corrupt(&wal_dir, problem));
        }
        let incarnation = match self.marker("incarnation")? {
            Some(text) => u64::from_str_radix(&text, 16).map_err(|_| {
                LogError::corrupt(&self.root.join("incarnation"), "not 16 hex digits")
            })?,
            None => {
                self.mark("incarnation", &format!("{new_incarnation:016x}"))?;
                new_incarnation
            }
        };
        let (fleet, superseded) = (self.marker("fleet")?, self.marker("superseded")?);
        self.hold_ballast();
        Ok(Contents {
            wal,
            recovered,
            hard_state,
            snapshots,
            snapshot,
            incarnation,
            fleet,
            superseded,
        })
    }

    /// Forgets everything, the incarnation too: who opens it next is a new
    /// member. The incarnation is durably gone before anything else: no crash may
    /// leave a member that has forgotten its votes or its log.
    pub fn wipe(&self) -> Result<(), LogError> {
        self.disk
            .remove_file(&self.root.join("incarnation"))
            .map_err(LogError::io("removing", &self.root.join("incarnation")))?;
        self.disk.sync_dir(&self.root).map_err(LogError::io("syncing", &self.root))?;
        for name in ["wal", "snapshots"] {
            let path = self.root.join(name);
            match self.disk.remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LogError::io("removing", &path)(error));
                }
                _ => {}
            }
        }
        for name in ["hardstate", "fleet"] {
            let path = self.root.join(name);
            self.disk.remove_file(&path).map_err(LogError::io("removing", &path))?;
        }
        self.disk.sync_dir(&self.root).map_err(LogError::io("syncing", &self.root))
    }

    /// Puts a snapshot in the place of everything. What was there is moved to
    /// `replaced-<unix_ms>/`, not deleted.
    ///
    /// All is written beside it first, so that a disk without room changes nothing.
    /// Then names change; cut off there, the directory refuses to open.
    pub fn replace_with(
        &self,
        snapshot: &StoredSnapshot,
        hard_state: &HardState,
        fleet_id: &str,
        incarnation: u64,
        unix_ms: u64,
    ) -> Result<(), LogError> {
        let staged = format!("{TEMPORARY}restore-");
        let names = self.disk.list(&self.root).map_err(LogError::io("listing", &self.root))?;
        for left in names.iter().filter(|name| name.starts_with(&staged)) {
            let path = self.root.join(left);
            self.disk.remove_dir_all(&path).map_err(LogError::io("removing", &path))?;
        }
        let staged = self.root.join(format!("{staged}{unix_ms}"));
        let written = self.stage(&staged, snapshot, hard_state, fleet_id, incarnation);
        if let Err(error) = written {
            // Nobody reads it, and the next restore takes it away.
            let _ = self.disk.remove_dir_all(&staged);
            return Err(error);
        }
        self.mark(RESTORING, &unix_ms.to_string())?;
        self.move_all(&self.root, &self.root.join(format!("replaced-{unix_ms}")))?;
        self.move_all(&staged, &self.root)?;
        self.disk.remove_dir_all(&staged).map_err(LogError::io("removing", &staged))?;
        let marker = self.root.join(RESTORING);
        self.disk.remove_file(&marker).map_err(LogError::io("removing", &marker))?;
        self.disk.sync_dir(&self.root).map_err(LogError::io("syncing", &self.root))
    }

    fn stage(
        &self,
        staged: &Path,
        snapshot: &StoredSnapshot,
        hard_state: &HardState,
        fleet_id: &str,
        incarnation: u64,
    ) -> Result<(), LogError> {
        self.disk.create_dir_all(staged).map_err(LogError::io("creating", staged))?;
        for (name, text) in
            [("incarnation", format!("{incarnation:016x}")), ("fleet", fleet_id.to_owned())]
        {
            write_marker(&*self.disk, &staged.join(name), &text)?;
        }
        hard_state.store(&*self.disk, &staged.join("hardstate"))?;
        Snapshots::open(self.disk.clone(), &staged.join("snapshots"))?.save(snapshot)
    }

    /// Moves all that consensus has from one directory to another.
    fn move_all(&self, from: &Path, to: &Path) -> Result<(), LogError> {
        let names = self.disk.list(from).map_err(LogError::io("listing", from))?;
        let ours: Vec<&&str> =
            CONSENSUS.iter().filter(|name| names.iter().any(|there| there == **name)).collect();
        if ours.is_empty() {
            return Ok(());
        }
        self.disk.create_dir_all(to).map_err(LogError::io("creating", to))?;
        for name in ours {
            let path = from.join(name);
            self.disk.rename(&path, &to.join(name)).map_err(LogError::io("moving", &path))?;
        }
        // What is here must not be lost from there: the new names first.
        for dir in [to, from] {
            self.disk.sync_dir(dir).map_err(LogError::io("syncing", dir))?;
        }
        Ok(())
    }

    /// The fleets that this directory knows of: its own, and the one that superseded
    /// it. What cannot be read is not known.
    pub fn known_fleets(&self) -> impl Iterator<Item = String> {
        ["fleet", "superseded"].into_iter().filter_map(|name| self.marker(name).ok().flatten())
    }

    /// Writes the fleet that this replica is in from now on.
    pub fn set_fleet(&self, fleet_id: &str) -> Result<(), LogError> {
        self.mark("fleet", fleet_id)
    }

    /// Writes that a newer fleet has taken this one's place.
    pub fn set_superseded(&self, by: &str) -> Result<(), LogError> {
        self.mark("superseded", by)
    }

    /// Where term and vote are.
    pub(crate) fn hard_state_path(&self) -> PathBuf {
        self.root.join("hardstate")
    }

    /// The disk under this directory.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Whether less than [`LOW_SPACE`] is left, ballast not counted. The
    /// ballast is given up while that is so, and taken back when there is room.
    pub fn is_low(&self) -> Result<bool, LogError> {
        let free = self.disk.free_bytes(&self.root).map_err(LogError::io("asking", &self.root))?;
        let low = free < LOW_SPACE;
        if low {
            let path = self.root.join("ballast");
            self.disk.remove_file(&path).map_err(LogError::io("removing", &path))?;
        } else if free >= LOW_SPACE + BALLAST {
            self.hold_ballast();
        }
        Ok(low)
    }

    fn hold_ballast(&self) {
        let held =
            self.disk.list(&self.root).is_ok_and(|names| names.iter().any(|n| n == "ballast"));
        if !held && let Err(error) = self.disk.reserve(&self.root.join("ballast"), BALLAST) {
            tracing::warn!(%error, "no room for the ballast file");
        }
    }

    fn marker(&self, name: &str) -> Result<Option<String>, LogError> {
        let path = self.root.join(name);
        let bytes = self.disk.read_if_exists(&path).map_err(LogError::io("reading", &path))?;
        let Some(bytes) = bytes else { return Ok(None) };
        match String::from_utf8(bytes) {
            Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            _ => Err(LogError::corrupt(&path, "it is empty or not text")),
        }
    }

    fn mark(&self, name: &str, text: &str) -> Result<(), LogError> {
        write_marker(&*self.disk, &self.root.join(name), text)
    }
}

fn write_marker(disk: &dyn Disk, path: &Path, text: &str) -> Result<(), LogError> {
    disk.replace(path, format!("{text}\n").as_bytes()).map_err(LogError::io("writing", path))
}
