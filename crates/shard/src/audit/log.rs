//! Reading the file back.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::Path,
};

use serde::Deserialize;

use super::record::Record;

/// Below this, reading on is cheaper than another jump.
const NEAR: u64 = 64 << 10;

/// The records of a log after one of them, in order. Lines that are no records
/// (cut by a crash) are passed over.
#[derive(Debug)]
pub(super) struct Log {
    lines: BufReader<File>,
    after: i64,
    line: Vec<u8>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: i64,
}

impl Log {
    pub(super) fn open(path: &Path, after: i64) -> io::Result<Self> {
        let file = File::open(path)?;
        let end = file.metadata()?.len();
        let mut log = Self { lines: BufReader::new(file), after, line: Vec::new() };
        log.jump_near(end)?;
        Ok(log)
    }

    /// Up to `limit` further records; none at the end.
    pub(super) fn read(&mut self, limit: usize) -> io::Result<Vec<Record>> {
        let mut records: Vec<Record> = Vec::new();
        while records.len() < limit && self.next_line()? {
            let Ok(record) = serde_json::from_slice::<Record>(&self.line) else { continue };
            // Numbers rise. One that does not belongs to a shard that lost its epoch.
            if record.seq > self.after {
                self.after = record.seq;
                records.push(record);
            }
        }
        Ok(records)
    }

    /// Halves the file until the record sought is near: numbers rise in it.
    fn jump_near(&mut self, end: u64) -> io::Result<()> {
        let (mut low, mut high) = (0, end);
        while high - low > NEAR {
            let middle = low + (high - low) / 2;
            match self.first_seq_from(middle, high)? {
                Some(seq) if seq <= self.after => low = middle,
                _ => high = middle,
            }
        }
        self.lines.seek(SeekFrom::Start(low))?;
        if low > 0 {
            // It ends a line that is not wanted.
            self.next_line()?;
        }
        Ok(())
    }

    /// The number of the first whole record that begins in this part.
    fn first_seq_from(&mut self, from: u64, to: u64) -> io::Result<Option<i64>> {
        let mut at = self.lines.seek(SeekFrom::Start(from))?;
        self.next_line()?;
        loop {
            at += self.line.len() as u64;
            if at >= to || !self.next_line()? {
                return Ok(None);
            }
            if let Ok(Numbered { seq }) = serde_json::from_slice(&self.line) {
                return Ok(Some(seq));
            }
        }
    }

    /// The next line with its end; false if there is no whole one.
    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.lines.read_until(b'\n', &mut self.line)?;
        Ok(self.line.last() == Some(&b'\n'))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn seqs(path: &Path, after: i64) -> Vec<i64> {
        let mut log = Log::open(path, after).unwrap();
        let mut all = Vec::new();
        loop {
            let some = log.read(100).unwrap();
            if some.is_empty() {
                return all;
            }
            all.extend(some.iter().map(|record| record.seq));
        }
    }

    #[test]
    fn finds_its_place_in_a_long_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::create(&path).unwrap();
        let mut record = Record::actuation("active", &"x".repeat(100), "");
        for seq in 1..=5_000 {
            record.seq = seq * 2;
            serde_json::to_writer(&mut file, &record).unwrap();
            let torn: &[u8] = if seq % 7 == 0 { b"\n{\"seq\": 1\n" } else { b"\n" };
            file.write_all(torn).unwrap();
        }
        file.write_all(b"{\"seq\": 99999").unwrap();
        for after in [-1, 0, 1, 2, 777, 5_000, 9_998, 9_999, 10_000] {
            let expected: Vec<i64> =
                (1..=5_000).map(|seq| seq * 2).filter(|seq| *seq > after).collect();
            assert_eq!(seqs(&path, after), expected, "after {after}");
        }
    }
}
