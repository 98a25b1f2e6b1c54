//! Writes in order, one fsync per batch.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{mpsc as unbounded, oneshot, watch};

use super::{Disk, HardState, LogError, Record, Wal};

/// The first failure of a write or fsync. The process that sees one exits:
/// what is on the disk is unknown from then on.
pub type Fatal = watch::Receiver<Option<String>>;

/// Called with the time that each fsynced batch took.
pub type Observer = Arc<dyn Fn(Duration) + Send + Sync>;

enum Job {
    Log(Vec<Record>),
    Hard(HardState),
}

type Done = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The files that are written, by one writer at a time.
struct Sink {
    wal: Wal,
    disk: Arc<dyn Disk>,
    hard_state: PathBuf,
    fatal: watch::Sender<Option<String>>,
    observe: Option<Observer>,
}

impl Sink {
    /// Neighbouring log jobs become one frame, hence one fsync; all are
    /// acknowledged after it.
    fn run(&mut self, jobs: Vec<(Job, Done)>) {
        let (mut records, mut waiting) = (Vec::new(), Vec::new());
        for (job, done) in jobs {
            match job {
                Job::Log(more) => {
                    records.extend(more);
                    waiting.push(done);
                }
                Job::Hard(state) => {
                    self.flush(&mut records, &mut waiting);
                    let (path, disk) = (self.hard_state.clone(), self.disk.clone());
                    let outcome = self.guarded(|_| state.store(&*disk, &path));
                    done(outcome);
                }
            }
        }
        self.flush(&mut records, &mut waiting);
    }

    fn flush(&mut self, records: &mut Vec<Record>, waiting: &mut Vec<Done>) {
        if waiting.is_empty() {
            return;
        }
        let (records, begun) = (std::mem::take(records), Instant::now());
        let outcome = self.guarded(|sink| sink.wal.write(records));
        if let Some(observe) = &self.observe {
            observe(begun.elapsed());
        }
        for done in waiting.drain(..) {
            done(outcome.clone());
        }
    }

    /// Once a write has failed, none is tried again.
    fn guarded(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), LogError>,
    ) -> Result<(), String> {
        if let Some(failure) = self.fatal.borrow().clone() {
            return Err(failure);
        }
        write(self).map_err(|error| {
            tracing::error!(%error, "the log cannot be written");
            let _ = self.fatal.send(Some(error.to_string()));
            error.to_string()
        })
    }
}

enum Mode {
    Thread(mpsc::Sender<(Job, Done)>),
    Task(unbounded::UnboundedSender<(Job, Done)>),
    Inline(Mutex<Sink>),
}

/// Hands out durable writes. Clones write to the same log.
#[derive(Clone)]
pub struct Writer {
    mode: Arc<Mode>,
    fatal: Fatal,
}

impl Writer {
    /// A thread of its own, which takes whatever waits as one batch.
    pub fn threaded(
        wal: Wal,
        disk: Arc<dyn Disk>,
        hard_state: PathBuf,
        observe: Option<Observer>,
    ) -> std::io::Result<Self> {
        let (fatal, seen) = watch::channel(None);
        let mut sink = Sink { wal, disk, hard_state, fatal, observe };
        let (jobs, queue) = mpsc::channel::<(Job, Done)>();
        thread::Builder::new().name("coordinator-log".to_owned()).spawn(move || {
            while let Ok(first) = queue.recv() {
                let mut batch = vec![first];
                batch.extend(queue.try_iter());
                sink.run(batch);
            }
        })?;
        Ok(Self { mode: Arc::new(Mode::Thread(jobs)), fatal: seen })
    }

    /// Writes in the caller's turn: for disks in memory, where a thread would
    /// only make runs differ.
    #[must_use]
    pub fn inline(wal: Wal, disk: Arc<dyn Disk>, hard_state: PathBuf) -> Self {
        let (fatal, seen) = watch::channel(None);
        let sink = Sink { wal, disk, hard_state, fatal, observe: None };
        Self { mode: Arc::new(Mode::Inline(Mutex::new(sink))), fatal: seen }
    }

    /// As [`Writer::threaded`], but a task that takes the time that [`Disk::latency`]
    /// says for each batch.
    #[must_use]
    pub fn paced(wal: Wal, disk: Arc<dyn Disk>, hard_state: PathBuf) -> Self {
        let (fatal, seen) = watch::channel(None);
        let mut sink = Sink { wal, disk, hard_state, fatal, observe: None };
        let (jobs, mut queue) = unbounded::unbounded_channel();
        tokio::spawn(async move {
            while let Some(first) = queue.recv().await {
                let mut batch = vec![first];
                while let Ok(next) = queue.try_recv() {
                    batch.push(next);
                }
                tokio::time::sleep(sink.disk.latency().unwrap_or_default()).await;
                sink.run(batch);
            }
        });
        Self { mode: Arc::new(Mode::Task(jobs)), fatal: seen }
    }

    /// The first failure, when there is one.
    #[must_use]
    pub fn fatal(&self) -> Fatal {
        self.fatal.clone()
    }

    /// Appends records; the receiver hears when they are durable.
    #[must_use]
    pub fn log(&self, records: Vec<Record>) -> oneshot::Receiver<Result<(), String>> {
        self.submit(Job::Log(records))
    }

    /// Replaces term and vote; the receiver hears when they are durable.
    #[must_use]
    pub fn hard_state(&self, state: HardState) -> oneshot::Receiver<Result<(), String>> {
        self.submit(Job::Hard(state))
    }

    fn submit(&self, job: Job) -> oneshot::Receiver<Result<(), String>> {
        let (tell, told) = oneshot::channel();
        let done: Done = Box::new(move |outcome| drop(tell.send(outcome)));
        match &*self.mode {
            // A closed queue drops `tell`, which the receiver sees.
            Mode::Thread(jobs) => drop(jobs.send((job, done))),
            Mode::Task(jobs) => drop(jobs.send((job, done))),
            Mode::Inline(sink) => match sink.lock() {
                Ok(mut sink) => sink.run(vec![(job, done)]),
                Err(_) => drop(done),
            },
        }
        told
    }
}
