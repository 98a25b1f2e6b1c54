//! The cloud's own memory: it outlives the provider's process.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::Error;

/// One line a change, the last word on a slot wins.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
}

/// What became of a slot's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: String,
    /// How many hosts the slot has had.
    pub(crate) generation: u64,
    pub(crate) up: bool,
    /// Which operation brought it; empty for one that was there from the beginning.
    pub(crate) operation: String,
}

impl Entry {
    fn line(&self) -> String {
        let up = if self.up { "up" } else { "down" };
        format!("{up} {} {} {}\n", self.slot, self.generation, self.operation)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let up = match words.next()? {
            "up" => true,
            "down" => false,
            _ => return None,
        };
        let slot = words.next()?.to_owned();
        let generation = words.next()?.parse().ok()?;
        let operation = words.next()?.to_owned();
        Some(Self { slot, generation, up, operation })
    }
}

impl Journal {
    /// Reads what is there, rewrites it without what is outdated, and goes on.
    pub(crate) fn open(
        directory: &Path,
        name: &str,
        outdated: impl FnOnce(Vec<Entry>) -> Vec<Entry>,
    ) -> Result<(Self, Vec<Entry>), Error> {
        let path = directory.join(format!("{name}.hosts"));
        let failed = |path: &Path| {
            let path: PathBuf = path.to_owned();
            move |source: io::Error| Error::File { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(&path)(error)),
        };
        // A kill may have cut the last line; whoever waited for it was not answered.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut entries = Vec::new();
        for (number, line) in whole.lines().enumerate() {
            let entry = Entry::parse(line).ok_or_else(|| {
                let problem = format!("line {} is not a journal's; move it away", number + 1);
                failed(&path)(io::Error::new(io::ErrorKind::InvalidData, problem))
            })?;
            entries.push(entry);
        }
        let entries = outdated(entries);
        let next = directory.join(format!("{name}.hosts.next"));
        let lines: String = entries.iter().map(Entry::line).collect();
        fs::write(&next, lines).map_err(failed(&next))?;
        fs::rename(&next, &path).map_err(failed(&path))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed(&path))?;
        Ok((Self { file }, entries))
    }

    pub(crate) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.file.write_all(entry.line().as_bytes())
    }
}
