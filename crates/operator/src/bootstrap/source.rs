//! Files that are read again when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

/// A file and the newest good reading of it.
pub(super) struct Source<T> {
    path: PathBuf,
    parse: fn(Vec<u8>) -> Result<T, String>,
    current: RwLock<Arc<T>>,
    /// What the last look found, good or bad, so that each change is told once.
    seen: Mutex<Seen>,
}

#[derive(PartialEq)]
enum Seen {
    Content(Vec<u8>),
    Unreadable(io::ErrorKind),
}

/// What a look at the file found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// As it was.
    Same,
    /// Changed, and taken over.
    Taken,
    /// Changed for the worse; the last good one stays.
    Refused(String),
}

impl<T> Source<T> {
    /// Reads the file; refuses one that is missing or bad.
    pub(super) fn open(
        path: &Path,
        parse: fn(Vec<u8>) -> Result<T, String>,
    ) -> Result<Self, String> {
        let content = fs::read(path).map_err(|error| error.to_string())?;
        let current = parse(content.clone())?;
        Ok(Self {
            path: path.to_owned(),
            parse,
            current: RwLock::new(Arc::new(current)),
            seen: Mutex::new(Seen::Content(content)),
        })
    }

    pub(super) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file. Contents are compared, not times: mounted volumes swap
    /// links, and the files are small.
    pub(super) fn look(&self) -> Look {
        let read = fs::read(&self.path);
        let found = match &read {
            Ok(content) => Seen::Content(content.clone()),
            Err(error) => Seen::Unreadable(error.kind()),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == found {
            return Look::Same;
        }
        *seen = found;
        let parsed = read.map_err(|error| error.to_string()).and_then(self.parse);
        match parsed {
            Ok(parsed) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(parsed);
                Look::Taken
            }
            Err(problem) => Look::Refused(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(content: Vec<u8>) -> Result<u32, String> {
        String::from_utf8(content).ok().and_then(|text| text.parse().ok()).ok_or("no number".into())
    }

    #[test]
    fn the_last_good_one_stays_and_each_change_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        assert!(Source::open(&path, number).is_err());
        fs::write(&path, "x").unwrap();
        assert!(Source::open(&path, number).is_err());

        fs::write(&path, "1").unwrap();
        let source = Source::open(&path, number).unwrap();
        assert_eq!(source.look(), Look::Same);
        fs::write(&path, "x").unwrap();
        assert_eq!(source.look(), Look::Refused("no number".into()));
        assert_eq!(source.look(), Look::Same);
        assert_eq!(*source.current(), 1);
        fs::remove_file(&path).unwrap();
        assert!(matches!(source.look(), Look::Refused(_)));
        assert_eq!(source.look(), Look::Same);
        assert_eq!(*source.current(), 1);
        fs::write(&path, "2").unwrap();
        assert_eq!(source.look(), Look::Taken);
        assert_eq!(*source.current(), 2);
    }
}
