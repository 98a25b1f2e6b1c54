//! The write-ahead log: segments of frames.
//!
//! A segment is only ever appended to. Cutting a conflicting tail and purging
//! a prefix are records of their own; the files go when nothing in them is
//! live any more, oldest first.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use prost::Message;

use super::{
    Disk, DiskFile, LogError,
    frame::{self, ScanEnd},
};

/// A segment this long is followed by a new one.
const SEGMENT_BYTES: u64 = 8 << 20;

/// Where an entry stands in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub struct Position {
    /// Term of the leader that appended it.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// Its place, counted from 0.
    #[prost(uint64, tag = "2")]
    pub index: u64,
}

/// One record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An entry, right after the one before it.
    Entry(Position, Vec<u8>),
    /// Entries from this index on are gone: another leader's replace them.
    Cut(u64),
    /// Entries up to here are in a snapshot.
    Purge(Position),
}

#[derive(Clone, PartialEq, prost::Message)]
struct WireRecord {
    #[prost(message, optional, tag = "1")]
    at: Option<Position>,
    #[prost(oneof = "WireKind", tags = "2, 3, 4")]
    kind: Option<WireKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum WireKind {
    #[prost(bytes, tag = "2")]
    Entry(Vec<u8>),
    #[prost(bool, tag = "3")]
    Cut(bool),
    #[prost(bool, tag = "4")]
    Purge(bool),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Batch {
    #[prost(message, repeated, tag = "1")]
    records: Vec<WireRecord>,
}

impl From<Record> for WireRecord {
    fn from(record: Record) -> Self {
        let (at, kind) = match record {
            Record::Entry(at, bytes) => (at, WireKind::Entry(bytes)),
            Record::Cut(index) => (Position { term: 0, index }, WireKind::Cut(true)),
            Record::Purge(at) => (at, WireKind::Purge(true)),
        };
        Self { at: Some(at), kind: Some(kind) }
    }
}

impl WireRecord {
    fn read(self) -> Option<Record> {
        let at = self.at?;
        Some(match self.kind? {
            WireKind::Entry(bytes) => Record::Entry(at, bytes),
            WireKind::Cut(_) => Record::Cut(at.index),
            WireKind::Purge(_) => Record::Purge(at),
        })
    }
}

/// What a log held when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Live entries.
    pub entries: BTreeMap<u64, (Position, Vec<u8>)>,
    /// Last purged position.
    pub purged: Option<Position>,
}

impl Recovered {
    fn apply(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Entry(at, bytes) => {
                let last = self.entries.last_key_value().map(|(index, _)| *index);
                let next = last.or_else(|| self.purged.map(|at| at.index)).map(|last| last + 1);
                if next.is_some_and(|next| next != at.index) {
                    return Err(format!("entry {} does not follow the one before it", at.index));
                }
                self.entries.insert(at.index, (at, bytes));
            }
            Record::Cut(index) => drop(self.entries.split_off(&index)),
            Record::Purge(at) => {
                self.entries = self.entries.split_off(&(at.index + 1));
                self.purged = self.purged.max(Some(at));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    /// Greatest index of an entry in it: live or not, it is gone with a purge
    /// at or past this.
    last_index: Option<u64>,
}

/// The log's files. Its caller keeps the entries themselves.
pub struct Wal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    segments: Vec<Segment>,
    active: Box<dyn DiskFile>,
    active_len: u64,
    next_frame: u64,
    purged: Option<Position>,
}

impl Wal {
    /// Reads all segments. A tail that a crash cut short is cut off; anything
    /// else that cannot be read is an error that names the file.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Self, Recovered), LogError> {
        disk.create_dir_all(dir).map_err(LogError::io("creating", dir))?;
        let mut recovered = Recovered::default();
        let (mut segments, mut next_frame, mut active) = (Vec::new(), None, None);
        let mut names = disk.list(dir).map_err(LogError::io("listing", dir))?;
        names.retain(|name| name.ends_with(".seg"));
        for (nth, name) in names.iter().enumerate() {
            let path = dir.join(name);
            let first = first_frame(name)
                .ok_or_else(|| LogError::corrupt(&path, "its name is not a frame number"))?;
            if next_frame.is_some_and(|next| next != first) {
                let problem = format!("frames {next_frame:?} up to {first} are missing before it");
                return Err(LogError::corrupt(&path, problem));
            }
            let bytes = disk.read(&path).map_err(LogError::io("reading", &path))?;
            let scan = frame::scan(&bytes, first);
            match scan.end {
                ScanEnd::Clean => {}
                ScanEnd::Torn if nth + 1 == names.len() => {
                    let kept = scan.frames.last().map_or(0, |(_, end)| *end);
                    let cut = bytes.len() as u64 - kept;
                    tracing::warn!(file = %path.display(), cut, "cut a torn record off the log");
                }
                ScanEnd::Torn => {
                    return Err(LogError::corrupt(&path, "it ends early, and segments follow"));
                }
                ScanEnd::Damaged(problem) => return Err(LogError::corrupt(&path, problem)),
            }
            let mut segment = Segment { path, last_index: None };
            for (payload, _) in &scan.frames {
                let batch = Batch::decode(*payload);
                let batch =
                    batch.map_err(|error| LogError::corrupt(&segment.path, error.to_string()))?;
                for record in batch.records {
                    let unknown = || LogError::corrupt(&segment.path, "a record of unknown kind");
                    let record = record.read().ok_or_else(unknown)?;
                    segment.note(&record);
                    let applied = recovered.apply(record);
                    applied.map_err(|problem| LogError::corrupt(&segment.path, problem))?;
                }
            }
            next_frame = Some(first + scan.frames.len() as u64);
            active = Some(scan.frames.last().map_or(0, |(_, end)| *end));
            segments.push(segment);
        }
        let next_frame = next_frame.unwrap_or_default();
        let (file, active_len) = match (segments.last(), active) {
            (Some(segment), Some(len)) => {
                let file = disk.open_at(&segment.path, len);
                let mut file = file.map_err(LogError::io("opening", &segment.path))?;
                file.sync().map_err(LogError::io("syncing", &segment.path))?;
                (file, len)
            }
            _ => {
                let (segment, file) = new_segment(&*disk, dir, next_frame)?;
                segments.push(segment);
                (file, 0)
            }
        };
        let purged = recovered.purged;
        let dir = dir.to_owned();
        let wal = Self { disk, dir, segments, active: file, active_len, next_frame, purged };
        Ok((wal, recovered))
    }

    /// Writes all records as one frame with one fsync. After an error the
    /// process must end: what reached the disk is then unknown, and a second
    /// fsync may report success for what the first one lost.
    pub fn write(&mut self, records: Vec<Record>) -> Result<(), LogError> {
        if self.active_len >= SEGMENT_BYTES {
            let (segment, file) = new_segment(&*self.disk, &self.dir, self.next_frame)?;
            self.segments.push(segment);
            (self.active, self.active_len) = (file, 0);
        }
        let Some(segment) = self.segments.last_mut() else {
            return Err(LogError::corrupt(&self.dir, "no segment is open"));
        };
        let mut purged = None;
        for record in &records {
            segment.note(record);
            if let Record::Purge(at) = record {
                purged = purged.max(Some(*at));
            }
        }
        let batch = Batch { records: records.into_iter().map(WireRecord::from).collect() };
        let bytes = frame::encode(self.next_frame, &batch.encode_to_vec());
        self.active.append(&bytes).map_err(LogError::io("writing", &segment.path))?;
        self.active.sync().map_err(LogError::io("syncing", &segment.path))?;
        self.active_len += bytes.len() as u64;
        self.next_frame += 1;
        if purged > self.purged {
            self.purged = purged;
            self.drop_segments()?;
        }
        Ok(())
    }

    /// Removes the oldest segments without a live entry. The record of the
    /// purge is in a later one by now, so it survives them.
    fn drop_segments(&mut self) -> Result<(), LogError> {
        let Some(purged) = self.purged else { return Ok(()) };
        let live = |segment: &Segment| segment.last_index.is_some_and(|last| last > purged.index);
        let others = self.segments.len() - 1;
        let dead = self.segments[..others].iter().take_while(|segment| !live(segment)).count();
        for segment in self.segments.drain(..dead) {
            let removed = self.disk.remove_file(&segment.path);
            removed.map_err(LogError::io("removing", &segment.path))?;
        }
        if dead > 0 {
            self.disk.sync_dir(&self.dir).map_err(LogError::io("syncing", &self.dir))?;
        }
        Ok(())
    }
}

impl Segment {
    fn note(&mut self, record: &Record) {
        if let Record::Entry(at, _) = record {
            self.last_index = self.last_index.max(Some(at.index));
        }
    }
}

fn first_frame(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".seg")?;
    (number.len() == 16).then(|| u64::from_str_radix(number, 16).ok())?
}

fn new_segment(
    disk: &dyn Disk,
    dir: &Path,
    first: u64,
) -> Result<(Segment, Box<dyn DiskFile>), LogError> {
    let path = dir.join(format!("{first:016x}.seg"));
    let file = disk.create(&path).map_err(LogError::io("creating", &path))?;
    disk.sync_dir(dir).map_err(LogError::io("syncing", dir))?;
    Ok((Segment { path, last_index: None }, file))
}
