//! Files that are old or new, never torn.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Replaces the file: temporary file, fsync, rename, fsync directory. After a
/// crash at any point the old or the new contents are there, whole; when this
/// returns, the new ones are, whatever happens to the machine.
///
/// Two writers of one path must take turns: the temporary file is one.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_stepwise(path, bytes, |_| Ok(()))
}

/// What is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Write,
    SyncFile,
    Rename,
    SyncDirectory,
    Return,
}

#[cfg(test)]
impl Step {
    pub(super) const ALL: [Self; 6] = [
        Self::Create,
        Self::Write,
        Self::SyncFile,
        Self::Rename,
        Self::SyncDirectory,
        Self::Return,
    ];
}

/// [`write_atomically`] that asks before each step; an error is a crash there.
pub(super) fn write_stepwise(
    path: &Path,
    bytes: &[u8],
    mut before: impl FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = temporary(path);
    before(Step::Create)?;
    let mut file = File::create(&temporary)?;
    before(Step::Write)?;
    file.write_all(bytes)?;
    before(Step::SyncFile)?;
    file.sync_all()?;
    before(Step::Rename)?;
    fs::rename(&temporary, path)?;
    before(Step::SyncDirectory)?;
    sync_directory(path)?;
    before(Step::Return)
}

/// Makes the directory and what leads to it, each durable in its parent: an
/// epoch must not vanish with the directory it was written to.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    create_directory(directory(path))?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    sync_directory(path)
}

/// Makes the name of this file durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Beside the file, so that the rename stays inside one file system.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_or_new_at_every_crash() {
        for crash in Step::ALL {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            write_atomically(&path, b"old").unwrap();
            write_stepwise(&path, b"new contents", |step| match step == crash {
                true => Err(io::Error::other("crash")),
                false => Ok(()),
            })
            .unwrap_err();
            let renamed = matches!(crash, Step::SyncDirectory | Step::Return);
            let expected: &[u8] = if renamed { b"new contents" } else { b"old" };
            assert_eq!(fs::read(&path).unwrap(), expected, "{crash:?}");
            // What the crash left over is in nobody's way.
            write_atomically(&path, b"x").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"x");
            assert!(!temporary(&path).exists());
        }
    }

    #[test]
    fn a_bare_name_lies_in_the_working_directory() {
        assert_eq!(directory(Path::new("epoch")), Path::new("."));
        assert_eq!(directory(Path::new("data/epoch")), Path::new("data"));
    }
}
