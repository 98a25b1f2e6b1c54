//! Where a bootstrap blob lies while a hook needs it.
//!
//! A crash leaves blobs behind, and hooks that go on without anybody to tell. Whoever
//! opens the spool next ends both: a second hook must not work on a machine beside the
//! first.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread::sleep,
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// Every hook carries the spool's directory in it, and so do its children.
pub(crate) const SPOOL_VARIABLE: &str = "BF_SPOOL";
const PREFIX: &str = "blob-";
/// Two seconds are enough for what is about to happen anyway.
const ROUNDS: usize = 200;
const ROUND: Duration = Duration::from_millis(10);

/// A private directory that one process holds.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    next: AtomicU64,
    _lock: File,
}

/// Why it cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// Of the file system.
    #[error("{}: {error}; bootstrap blobs pass through it", directory.display())]
    Io {
        /// Which.
        directory: PathBuf,
        /// What.
        error: io::Error,
    },

    /// Others could read join secrets.
    #[error("{}: must be a directory of this user with mode 0700; remove it", .0.display())]
    Open(PathBuf),

    /// One process at a time.
    #[error("{}: another provider uses it; give each its own --state", .0.display())]
    Locked(PathBuf),
}

impl Spool {
    /// Takes the directory, ends what a crash left running, and removes its blobs.
    pub fn open(directory: &Path) -> Result<Self, SpoolError> {
        let failed = |error| SpoolError::Io { directory: directory.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let found = fs::symlink_metadata(directory).map_err(failed)?;
        if !found.is_dir() || found.mode() & 0o077 != 0 || found.uid() != geteuid().as_raw() {
            return Err(SpoolError::Open(directory.to_owned()));
        }
        let directory = directory.canonicalize().map_err(failed)?;
        let lock = private().create(true).truncate(false).open(directory.join("lock"));
        let lock = lock.map_err(failed)?;
        if !take(&lock).map_err(failed)? {
            return Err(SpoolError::Locked(directory));
        }
        end_leftovers(&directory);
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
                tracing::warn!("a bootstrap blob was left by a crash: removed");
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(Self { directory, next: AtomicU64::new(0), _lock: lock })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file that only this user reads, until it is dropped.
    pub(crate) fn write(&self, blob: &[u8]) -> io::Result<BlobFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("{PREFIX}{number}"));
        let mut file = private().create_new(true).open(&path)?;
        let written = BlobFile { path };
        file.write_all(blob)?;
        Ok(written)
    }
}

/// A hook that was just forked when its provider was killed holds the lock until it is
/// executed. To wait for that is needed for [`end_leftovers`], too: before it, the hook
/// does not carry the mark.
fn take(lock: &File) -> io::Result<bool> {
    for _ in 0..ROUNDS {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => sleep(ROUND),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// A blob on disk.
#[derive(Debug)]
pub(crate) struct BlobFile {
    path: PathBuf,
}

impl BlobFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BlobFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(path = %self.path.display(), %error, "a bootstrap blob stays on disk");
        }
    }
}

/// Hooks of a provider that was killed. Found by what they carry, since the one who knew
/// their numbers is gone.
fn end_leftovers(directory: &Path) {
    let mut mark = format!("{SPOOL_VARIABLE}=").into_bytes();
    mark.extend_from_slice(directory.as_os_str().as_bytes());
    let mut killed = Vec::new();
    for _ in 0..ROUNDS {
        let found = carriers(&mark);
        for pid in &found {
            tracing::warn!(pid = pid.as_raw_nonzero(), "a hook outlived its provider: killed");
            let _ = kill_process(*pid, Signal::KILL);
        }
        killed.extend_from_slice(&found);
        killed.retain(|pid| !has_ended(*pid));
        if found.is_empty() && killed.is_empty() {
            return;
        }
        sleep(ROUND);
    }
}

/// Who is about to end carries nothing any more, but still holds what it held.
fn has_ended(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let text = fs::read_to_string(path).unwrap_or_default();
    text.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
}

fn carriers(mark: &[u8]) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    processes
        .filter_map(|entry| number(entry.ok()?))
        .filter(|number| u32::try_from(*number).is_ok_and(|number| number != std::process::id()))
        .filter(|number| {
            // Others' processes cannot be read, and those that ended carry nothing.
            let carried = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            carried.split(|byte| *byte == 0).any(|variable| variable == mark)
        })
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_blob_is_private_and_goes_with_its_holder() {
        let state = tempfile::tempdir().unwrap();
        let spool = Spool::open(&state.path().join("blobs")).unwrap();
        let blob = spool.write(b"join").unwrap();
        let path = blob.path().to_owned();
        assert_eq!(fs::read(&path).unwrap(), b"join");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(spool.directory()).unwrap().mode() & 0o777, 0o700);
        drop(blob);
        assert!(!path.exists());
    }

    #[test]
    fn the_next_holder_ends_what_a_crash_left() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("blobs");
        let spool = Spool::open(&directory).unwrap();
        std::mem::forget(spool.write(b"join").unwrap());
        let carried = spool.directory().to_owned();
        let mut hook =
            Command::new("sleep").arg("600").env(SPOOL_VARIABLE, carried).spawn().unwrap();
        let mut other = Command::new("sleep").arg("600").env(SPOOL_VARIABLE, "/x").spawn().unwrap();
        assert!(matches!(Spool::open(&directory), Err(SpoolError::Locked(_))));
        assert!(hook.try_wait().unwrap().is_none(), "a refused start leaves hooks alone");
        drop(spool);
        let spool = Spool::open(&directory).unwrap();
        let left: Vec<_> = fs::read_dir(spool.directory()).unwrap().collect();
        assert_eq!(left.len(), 1, "the lock: {left:?}");
        assert!(!hook.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "another spool's");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_directory_that_others_read_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("blobs");
        DirBuilder::new().mode(0o755).create(&directory).unwrap();
        assert!(matches!(Spool::open(&directory), Err(SpoolError::Open(_))));
        let link = state.path().join("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(matches!(Spool::open(&link), Err(SpoolError::Open(_))));
    }
}
