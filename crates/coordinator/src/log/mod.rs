//! The data directory of a replica.
//!
//! ```text
//! LOCK                                    one holder: the process, or an offline restore
//! incarnation                             random, made with the directory
//! fleet                                   the fleet this replica is in, once it is in one
//! superseded                              the newer fleet that this replica has seen
//! hardstate                               term and vote
//! wal/<first frame>.seg                   what was appended, cut and purged, in frames
//! snapshots/<term>-<index>-<unix_ms>/     meta.json, state
//! ballast                                 64 MiB that compaction may use on a full disk
//! replaced-<unix_ms>/                     what was here before a restore
//! restoring                               a restore was cut off in the middle
//! ```
//!
//! Nothing here knows of consensus or of the state machine: entries are bytes
//! with a term and an index. What is acknowledged has been fsynced; what
//! cannot be read back is refused with the file's name and never reset, since
//! a replica that forgets silently can lose what others count on.

mod data_dir;
mod disk;
mod frame;
mod hard_state;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod snapshots;
#[cfg(test)]
mod tests;
mod wal;
mod writer;

use std::{io, path::Path};

pub use data_dir::{Contents, DataDir, LOW_SPACE};
pub use disk::{Disk, DiskFile, LockHeld, RealDisk};
pub use hard_state::HardState;
pub use snapshots::{
    Configuration, SNAPSHOT_FORMAT, Server, SnapshotMeta, Snapshots, StoredSnapshot,
};
pub use wal::{Position, Record, Recovered, Wal};
pub use writer::{Fatal, Observer, Writer};

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file operation failed.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process holds the directory.
    #[error("{path} is locked: another process uses this data directory")]
    Locked {
        /// The lock file.
        path: String,
    },
    /// A restore ended in the middle.
    #[error("{path}: a restore was cut off half way; run snapshot restore again")]
    HalfRestored {
        /// The marker.
        path: String,
    },
    /// A file does not hold what was written to it.
    #[error("{path} is damaged: {problem}; wipe this replica's data directory and let it rejoin")]
    Corrupt {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl LogError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn corrupt(path: &Path, problem: impl Into<String>) -> Self {
        Self::Corrupt { path: path.display().to_string(), problem: problem.into() }
    }
}
