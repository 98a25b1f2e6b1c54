//! File operations behind a trait, so that tests decide what a disk does.

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::Path,
    time::Duration,
};

/// An open file that only grows.
pub trait DiskFile: Send {
    /// Writes all bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when all that was appended is on stable storage.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds the lock of a data directory until it is dropped.
pub trait LockHeld: Send + Sync + fmt::Debug {}

/// The operations that the log needs, each as the system has it: a name is
/// durable only after its directory was synced, content only after the file was.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates a file; one that exists is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Cuts a file to a length and opens it for appending.
    fn open_at(&self, path: &Path, len: u64) -> io::Result<Box<dyn DiskFile>>;
    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Replaces a name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; one that is absent is no error.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all in it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the lock, or `WouldBlock` when somebody has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockHeld>>;
    /// Bytes that this process may still write under a directory.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Reserves a file of this size.
    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()>;

    /// How long the next write of the log takes by a clock that a test moves. None for a
    /// disk that takes its time itself.
    fn latency(&self) -> Option<Duration> {
        None
    }

    /// Replaces a small file whole: temporary file, fsync, rename, fsync of
    /// the directory. A crash leaves the old content or the new.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = path.with_extension("tmp");
        let mut file = self.create(&temporary)?;
        file.append(bytes)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |parent| self.sync_dir(parent))
    }

    /// The whole file, or nothing if there is none.
    fn read_if_exists(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

#[derive(Debug)]
struct FileLock(#[expect(dead_code, reason = "held, not used")] File);

impl LockHeld for FileLock {}

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open_at(&self, path: &Path, len: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(len)?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockHeld>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(FileLock(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = File::create(path)?;
        // Blocks, not only a length: a sparse file would leave no room.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
        file.sync_all()
    }
}
