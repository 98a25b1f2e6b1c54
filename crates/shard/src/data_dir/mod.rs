//! The data directory: one process at a time, and the epoch (shard chapter §3).

mod atomic;
mod epoch;

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

pub use atomic::write_atomically;
pub use epoch::MAX_EPOCH;
pub(crate) use epoch::SEQUENCE_BITS;

/// The directory, locked for as long as this value lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    epoch: i64,
    _lock: File,
}

/// How to open a [`DataDir`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// `--epoch-floor`: the epoch is at least this; 0 for no floor.
    pub epoch_floor: i64,
    /// `--shared-provider`: only then may an assignment be there.
    pub shared_provider: bool,
}

/// Why a data directory cannot be used; all of them end the start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory cannot be made or its lock not taken.
    #[error(
        "{}: cannot use the data directory: {source}; give --data-dir a directory that this \
         process may write",
        path.display()
    )]
    Unusable {
        /// What could not be used.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// Another process has it.
    #[error(
        "{}: another process holds the lock of this data directory; stop it, or give this one \
         a --data-dir of its own",
        path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },

    /// An assignment without the flag.
    #[error(
        "{}: this shard has shared its provider with others; start it with --shared-provider, \
         or it would take its neighbours' machines. If it is now alone with its provider, \
         remove the file",
        path.display()
    )]
    ForeignAssignment {
        /// The assignment file.
        path: PathBuf,
    },

    /// The epoch cannot be read or written.
    #[error(
        "{}: cannot {verb} the epoch: {source}; make the file readable and writable for this \
         process and its disk not full. Do not remove it: a lower epoch is fenced",
        path.display()
    )]
    Epoch {
        /// The epoch file.
        path: PathBuf,
        /// Read or write.
        verb: &'static str,
        /// Why not.
        source: io::Error,
    },

    /// What the file says is no epoch.
    #[error(
        "{}: {text:?} is not an epoch; write the last epoch of this shard into the file, or \
         remove the file and start with --epoch-floor above every epoch this shard has had \
         (its logs and metrics tell)",
        path.display()
    )]
    NotAnEpoch {
        /// The epoch file.
        path: PathBuf,
        /// Its contents, cut short.
        text: String,
    },

    /// No number is left.
    #[error(
        "{}: epoch {epoch} is above {MAX_EPOCH}, the highest that sequence numbers can carry; \
         lower --epoch-floor, or give the shard a new --id and an empty --data-dir",
        path.display()
    )]
    EpochTooHigh {
        /// The epoch file.
        path: PathBuf,
        /// The epoch that would be next.
        epoch: i64,
    },
}

impl DataDir {
    /// Makes the directory if it is missing, locks it, takes the next epoch
    /// and writes that back.
    pub fn open(path: impl Into<PathBuf>, opening: Opening) -> Result<Self, Error> {
        let path = path.into();
        atomic::create_directory(&path)
            .map_err(|source| Error::Unusable { path: path.clone(), source })?;
        let lock = lock(&path.join("lock"))?;
        let assignment = path.join(ASSIGNMENT);
        // Only a plain "no" will do: what cannot be looked at may be there.
        let assigned = assignment.try_exists().unwrap_or(true);
        if assigned && !opening.shared_provider {
            return Err(Error::ForeignAssignment { path: assignment });
        }
        let epoch = epoch::advance(&path.join("epoch"), opening.epoch_floor)?;
        Ok(Self { path, epoch, _lock: lock })
    }

    /// The epoch of this process: above that of every earlier one.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the mode set by `SetActuation` is kept.
    #[must_use]
    pub fn actuation_file(&self) -> PathBuf {
        self.path.join("actuation")
    }

    /// Where a shard with `--shared-provider` keeps what it owns.
    #[must_use]
    pub fn assignment_file(&self) -> PathBuf {
        self.path.join(ASSIGNMENT)
    }
}

const ASSIGNMENT: &str = "assignment";

fn lock(path: &Path) -> Result<File, Error> {
    let unusable = |source| Error::Unusable { path: path.to_owned(), source };
    // The file stays behind: removing it would let two processes lock two files.
    let file =
        File::options().create(true).truncate(false).write(true).open(path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(path: &Path) -> Result<DataDir, Error> {
        DataDir::open(path, Opening::default())
    }

    #[test]
    fn one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let first = open(&path).unwrap();
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, Error::Locked { .. }));
        let text = refused.to_string();
        assert!(text.contains(path.join("lock").to_str().unwrap()), "{text}");
        drop(first);
        assert_eq!(open(&path).unwrap().epoch(), 2, "the refused one took no epoch");
    }

    #[test]
    fn an_assignment_needs_its_flag() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("assignment"), "{}").unwrap();
        let refused = open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("--shared-provider"), "{refused}");
        assert!(!dir.path().join("epoch").exists(), "nothing was touched");
        let shared = Opening { shared_provider: true, ..Opening::default() };
        assert_eq!(DataDir::open(dir.path(), shared).unwrap().epoch(), 1);
    }

    #[test]
    fn a_file_in_the_way_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let refused = open(&path).unwrap_err().to_string();
        assert!(refused.contains("--data-dir"), "{refused}");
    }
}
