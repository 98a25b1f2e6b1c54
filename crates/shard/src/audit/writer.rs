//! The file's own thread behind a bounded buffer.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use prometheus_client::metrics::counter::Counter;

use super::record::Record;

/// Lines that wait for a slow disk.
pub(super) const BUFFERED_LINES: usize = 65_536;
/// Lines handed to the disk at once.
const BATCH: usize = 1_024;
/// Before a file that failed is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// Takes lines without ever waiting; the thread ends with this value, once all
/// that it took is written.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Record>>,
    /// Taken by the thread, not yet in the file.
    in_hand: usize,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next lines, or none at the end.
    fn take(&self) -> Option<Vec<Arc<Record>>> {
        let mut state = self.lock();
        state.in_hand = 0;
        self.changed.notify_all();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let count = state.waiting.len().min(BATCH);
        state.in_hand = count;
        Some(state.waiting.drain(..count).collect())
    }
}

impl Writer {
    /// Opens the file for appending; that it can be is known at the start.
    pub(super) fn open(path: &Path, dropped: Counter, errors: Counter) -> io::Result<Self> {
        let file = open(path)?;
        let queue = Arc::new(Queue::default());
        let mut sink =
            Sink { path: path.to_owned(), file: Some(file), errors, queue: queue.clone() };
        thread::Builder::new().name("audit".to_owned()).spawn(move || sink.run())?;
        Ok(Self { queue, dropped })
    }

    /// Takes a line, or counts it as dropped.
    pub(super) fn offer(&self, record: Arc<Record>) {
        let mut state = self.queue.lock();
        if state.waiting.len() + state.in_hand >= BUFFERED_LINES {
            drop(state);
            self.dropped.inc();
            return;
        }
        state.waiting.push_back(record);
        drop(state);
        self.queue.changed.notify_all();
    }

    /// Waits until all that was taken is in the file; false if that took too long.
    pub(super) fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.queue.lock();
        while !state.waiting.is_empty() || state.in_hand > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.queue.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
    }
}

/// The thread's side.
struct Sink {
    path: PathBuf,
    /// None after an error, until it could be opened again.
    file: Option<File>,
    errors: Counter,
    queue: Arc<Queue>,
}

impl Sink {
    fn run(&mut self) {
        let mut lines = Vec::new();
        while let Some(records) = self.queue.take() {
            lines.clear();
            for record in records {
                let start = lines.len();
                if let Err(error) = serde_json::to_writer(&mut lines, &*record) {
                    tracing::error!(%error, seq = record.seq, "an audit record has no JSON form");
                    lines.truncate(start);
                    continue;
                }
                lines.push(b'\n');
            }
            if !self.write(&lines) {
                return;
            }
        }
    }

    /// Writes all; false if that is impossible and nobody waits any more.
    fn write(&mut self, lines: &[u8]) -> bool {
        let mut written = 0;
        while written < lines.len() {
            match self.write_some(&lines[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.errors.inc();
                    tracing::warn!(%error, path = %self.path.display(), "cannot write the audit log");
                    self.file = None;
                    // A line that was cut is written again, whole.
                    written = lines[..written]
                        .iter()
                        .rposition(|byte| *byte == b'\n')
                        .map_or(0, |newline| newline + 1);
                    if self.queue.lock().closed {
                        return false;
                    }
                    thread::sleep(RETRY);
                }
            }
        }
        true
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        match file.write(bytes)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        }
    }
}

/// Opens for appending, after a newline: whoever wrote before may have died in
/// the middle of a line.
fn open(path: &Path) -> io::Result<File> {
    let mut file = File::options().create(true).append(true).read(true).open(path)?;
    // A pipe or a device has no end to look at.
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
