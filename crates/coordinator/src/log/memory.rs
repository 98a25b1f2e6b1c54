//! A disk in memory that forgets what was not synced, and fails when told to.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{Disk, DiskFile, LockHeld};
use crate::consensus::Entropy;

/// What goes wrong at one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Only this many bytes of an append are taken, then an error.
    ShortWrite(usize),
    /// The operation fails and has no effect.
    Error,
}

#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    /// How many of them survive a crash.
    synced: usize,
}

type FileId = u64;

#[derive(Debug, Default)]
struct Inner {
    contents: BTreeMap<FileId, Content>,
    /// Names as the process sees them, and as a crash leaves them.
    names: BTreeMap<PathBuf, FileId>,
    durable: BTreeMap<PathBuf, FileId>,
    dirs: Vec<PathBuf>,
    next: FileId,
    /// Operations until the fault; every later operation fails too.
    fault: Option<(u64, Fault)>,
    broken: bool,
    operations: u64,
    free: u64,
    /// Shortest and longest time of a write of the log, drawn from this.
    latency: Option<(Duration, Duration, Arc<Entropy>)>,
}

impl Inner {
    fn step(&mut self) -> io::Result<Option<Fault>> {
        if self.broken {
            return Err(io::Error::other("the disk is gone"));
        }
        self.operations += 1;
        match &mut self.fault {
            Some((0, fault)) => {
                self.broken = true;
                match *fault {
                    Fault::Error => Err(io::Error::other("injected")),
                    short => Ok(Some(short)),
                }
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn id(&self, path: &Path) -> io::Result<FileId> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
    locked: Arc<AtomicBool>,
}

impl MemoryDisk {
    pub(crate) fn new() -> Self {
        let disk = Self::default();
        disk.inner.lock().unwrap().free = u64::MAX;
        disk
    }

    /// Lets `after` more operations through, then fails for good.
    pub(crate) fn fail_after(&self, after: u64, fault: Fault) {
        self.inner.lock().unwrap().fault = Some((after, fault));
    }

    /// Every write of the log takes this long, by a seed. To be set before the log opens;
    /// it may be changed after.
    pub(crate) fn slow(&self, shortest: Duration, longest: Duration, seed: u64) {
        let latency = (shortest, longest, Arc::new(Entropy::seeded(seed)));
        self.inner.lock().unwrap().latency = Some(latency);
    }

    pub(crate) fn set_free(&self, free: u64) {
        self.inner.lock().unwrap().free = free;
    }

    /// The disk after power was lost: names and contents as last synced, but
    /// for a part of each unsynced tail, `keep` of it in 256ths, that happened
    /// to be written already.
    pub(crate) fn after_crash(&self, keep: u8) -> Self {
        let inner = self.inner.lock().unwrap();
        let contents = inner.contents.iter().map(|(id, content)| {
            let tail = content.bytes.len() - content.synced;
            let kept = content.synced + tail * usize::from(keep) / 256;
            let bytes = content.bytes[..kept].to_vec();
            (*id, Content { synced: bytes.len(), bytes })
        });
        let after = Inner {
            contents: contents.collect(),
            names: inner.durable.clone(),
            durable: inner.durable.clone(),
            dirs: inner.dirs.clone(),
            next: inner.next,
            free: inner.free,
            latency: inner.latency.clone(),
            ..Inner::default()
        };
        Self { inner: Arc::new(Mutex::new(after)), locked: Arc::default() }
    }

    /// The bytes of a file, to damage them.
    pub(crate) fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut inner = self.inner.lock().unwrap();
        let id = inner.id(path).unwrap();
        let content = inner.contents.get_mut(&id).unwrap();
        edit(&mut content.bytes);
        content.synced = content.bytes.len();
    }
}

struct MemoryFile {
    inner: Arc<Mutex<Inner>>,
    id: FileId,
}

impl DiskFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        let fault = inner.step()?;
        let content = inner.contents.entry(self.id).or_default();
        if let Some(Fault::ShortWrite(len)) = fault {
            content.bytes.extend_from_slice(&bytes[..len.min(bytes.len())]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        let content = inner.contents.entry(self.id).or_default();
        content.synced = content.bytes.len();
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryLock(Arc<AtomicBool>);

impl LockHeld for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Disk for MemoryDisk {
    fn latency(&self) -> Option<Duration> {
        let (shortest, longest, random) = self.inner.lock().unwrap().latency.clone()?;
        let spread = u64::try_from((longest - shortest).as_micros()).unwrap() + 1;
        Some(shortest + Duration::from_micros(random.next() % spread))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if !inner.dirs.iter().any(|dir| dir == path) {
            inner.dirs.push(path.to_owned());
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        inner.next += 1;
        let id = inner.next;
        inner.contents.insert(id, Content::default());
        inner.names.insert(path.to_owned(), id);
        Ok(Box::new(MemoryFile { inner: self.inner.clone(), id }))
    }

    fn open_at(&self, path: &Path, len: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut inner = self.inner.lock().unwrap();
        let id = inner.id(path)?;
        let content = inner.contents.entry(id).or_default();
        content.bytes.truncate(usize::try_from(len).unwrap());
        content.synced = content.synced.min(content.bytes.len());
        Ok(Box::new(MemoryFile { inner: self.inner.clone(), id }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inner = self.inner.lock().unwrap();
        let id = inner.id(path)?;
        Ok(inner.contents.get(&id).map(|content| content.bytes.clone()).unwrap_or_default())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let inner = self.inner.lock().unwrap();
        let below = |name: &PathBuf| {
            let first = name.strip_prefix(path).ok()?.components().next()?;
            Some(first.as_os_str().to_string_lossy().into_owned())
        };
        let mut names: Vec<String> = inner.names.keys().filter_map(below).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        let moved: Vec<_> = inner
            .names
            .iter()
            .filter_map(|(name, id)| {
                Some((name.clone(), *id, name.strip_prefix(from).ok()?.to_owned()))
            })
            .collect();
        if moved.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for (old, id, rest) in moved {
            let new = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(&rest) };
            inner.names.remove(&old);
            inner.names.insert(new.clone(), id);
            // Files of a directory that is renamed go with its name: they are
            // durable where the directory was synced before.
            if !rest.as_os_str().is_empty() && inner.durable.remove(&old).is_some() {
                inner.durable.insert(new, id);
            }
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        inner.names.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        inner.names.retain(|name, _| !name.starts_with(path));
        inner.durable.retain(|name, _| !name.starts_with(path));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if inner.step()?.is_some() {
            return Err(io::Error::other("injected"));
        }
        let inside = |name: &PathBuf| name.parent() == Some(path);
        let inner = &mut *inner;
        inner.durable.retain(|name, _| !inside(name));
        let now = inner.names.iter().filter(|(name, _)| inside(name));
        inner.durable.extend(now.map(|(name, id)| (name.clone(), *id)));
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn LockHeld>> {
        if self.locked.swap(true, Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemoryLock(self.locked.clone())))
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.inner.lock().unwrap().free)
    }

    fn reserve(&self, _path: &Path, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}
