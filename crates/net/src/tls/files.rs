//! Reading files that somebody may be replacing meanwhile.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::Error;

/// File times advance in steps, so a second write within one step leaves the
/// stamp as it was. A stamp is trusted only when it is older than this.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// What tells one version of a file from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: SystemTime,
    len: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, Error> {
        let named = |error: io::Error| problem(path, error.to_string());
        let metadata = fs::metadata(path).map_err(named)?;
        Ok(Self {
            modified: metadata.modified().map_err(named)?,
            len: metadata.len(),
            inode: metadata.ino(),
        })
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        now.duration_since(self.modified).is_ok_and(|age| age > SETTLED_AFTER)
    }
}

/// The stamps of several files, taken one after the other.
pub(super) fn stamps(paths: &[PathBuf]) -> Result<Vec<Stamp>, Error> {
    paths.iter().map(|path| Stamp::of(path)).collect()
}

/// One consistent reading of several files.
pub(super) struct Reading<const N: usize> {
    pub(super) contents: [Vec<u8>; N],
    /// Equal for equal contents; keeps no key material.
    pub(super) digest: u64,
    /// The stamps, unless a file is so new that they cannot be trusted yet.
    pub(super) settled: Option<Vec<Stamp>>,
}

/// Reads the files whose stamps were `before`, and fails if any changed since.
pub(super) fn read<const N: usize>(
    paths: &[PathBuf; N],
    before: &[Stamp],
) -> Result<Reading<N>, Error> {
    let now = SystemTime::now();
    let mut contents = [const { Vec::new() }; N];
    for (content, path) in contents.iter_mut().zip(paths) {
        *content = fs::read(path).map_err(|error| problem(path, error.to_string()))?;
    }
    let after = stamps(paths)?;
    if let Some((path, _)) =
        paths.iter().zip(before.iter().zip(&after)).find(|(_, (before, after))| before != after)
    {
        return Err(problem(path, "it changed while it was read"));
    }
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    let settled = after.iter().all(|stamp| stamp.is_settled(now)).then_some(after);
    Ok(Reading { contents, digest: hasher.finish(), settled })
}

pub(super) fn problem(path: &Path, problem: impl Into<String>) -> Error {
    Error::Material { path: path.to_owned(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, [PathBuf; 1]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, text).unwrap();
        (dir, [path])
    }

    fn age(path: &Path, age: Duration) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_change_during_reading_is_seen() {
        let (_dir, paths) = file("old");
        let before = stamps(&paths).unwrap();
        fs::write(&paths[0], "newer").unwrap();
        let error = read(&paths, &before).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("changed while it was read"), "{error}");
    }

    #[test]
    fn a_fresh_stamp_is_not_trusted() {
        let (_dir, paths) = file("text");
        let fresh = read(&paths, &stamps(&paths).unwrap()).unwrap();
        assert_eq!(fresh.settled, None);
        age(&paths[0], SETTLED_AFTER * 2);
        let before = stamps(&paths).unwrap();
        let old = read(&paths, &before).unwrap();
        assert_eq!(old.settled, Some(before));
        assert_eq!(old.digest, fresh.digest);
    }

    #[test]
    fn a_stamp_from_the_future_is_not_trusted() {
        let (_dir, paths) = file("text");
        let file = fs::File::options().append(true).open(&paths[0]).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
        assert_eq!(read(&paths, &stamps(&paths).unwrap()).unwrap().settled, None);
    }

    #[test]
    fn a_rename_changes_the_stamp_even_at_equal_time_and_size() {
        let (dir, paths) = file("text");
        let before = stamps(&paths).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "TEXT").unwrap();
        fs::File::options()
            .append(true)
            .open(&other)
            .unwrap()
            .set_modified(before[0].modified)
            .unwrap();
        fs::rename(other, &paths[0]).unwrap();
        assert_ne!(stamps(&paths).unwrap(), before);
    }
}
