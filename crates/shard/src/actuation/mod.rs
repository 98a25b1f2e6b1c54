//! Whether decisions are carried out: the kill switch and shadow mode (shard
//! chapter §10, wire chapter §5.2).
//!
//! Three hands are on it: the flags, the pause file and `SetActuation`. Pausing
//! wins over shadowing, and both over being active, whoever asks.

mod stored;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use stored::Stored;
use tokio::sync::watch;

use crate::{audit::Audit, label::labels, metrics::Metrics, options::ActuationOptions};

labels! {
    /// What is done with decisions.
    Mode {
        /// Carried out.
        Active = "active",
        /// Suppressed.
        Paused = "paused",
        /// Logged only.
        DryRun = "dry_run",
    }
}

labels! {
    /// What is stronger than `SetActuation`.
    ForcedBy {
        /// `--actuation-paused` or `--dry-run`.
        Flag = "flag",
        /// The pause file.
        File = "file",
    }
}

/// The state as `GetActuation` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// In force.
    pub mode: Mode,
    /// As last set.
    pub set_mode: Mode,
    /// Since when the mode in force is.
    pub since: Timestamp,
    /// Why it was last set; empty if never.
    pub reason: String,
    /// Who last set it; empty if never.
    pub set_by: String,
    /// What forces the mode in force, if anything does.
    pub forced_by: Option<ForcedBy>,
}

/// Why a mode could not be read or set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stored mode is unreadable. Guessing could resume what was stopped.
    #[error(
        "{}: cannot read the actuation mode that was set: {problem}; remove the file and start \
         with --actuation-paused, then set the mode again",
        path.display()
    )]
    Stored {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// Nobody can tell whether the pause file exists.
    #[error(
        "{}: cannot look whether this file exists: {source}; give --pause-file a path that \
         this process may look at",
        path.display()
    )]
    PauseFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// The mode would not survive a restart.
    #[error(
        "{}: cannot store the actuation mode: {source}; {consequence}",
        path.display()
    )]
    NotStored {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
        /// What holds now, and what to do.
        consequence: &'static str,
    },
}

/// The switch. Share it in an `Arc`.
#[derive(Debug)]
pub struct Actuation {
    inner: Mutex<Inner>,
    /// Held while the file is written, so that `refresh` never waits for a disk.
    writing: Mutex<()>,
    /// Where the mode is kept; none in tests.
    file: Option<PathBuf>,
    options: ActuationOptions,
    mode: watch::Sender<Mode>,
    paused: Gauge,
    audit: Arc<Audit>,
}

#[derive(Debug)]
struct Inner {
    stored: Stored,
    /// As last looked at.
    pause_file: bool,
    since: Timestamp,
}

impl Actuation {
    /// Takes up the mode that was set before the restart. Without a file it is
    /// kept in memory only.
    pub fn open(
        file: Option<PathBuf>,
        options: ActuationOptions,
        audit: Arc<Audit>,
        metrics: &Metrics,
    ) -> Result<Self, Error> {
        let stored = match &file {
            Some(path) => Stored::read(path)?,
            None => None,
        };
        let pause_file = match &options.pause_file {
            Some(path) => {
                exists(path).map_err(|source| Error::PauseFile { path: path.clone(), source })?
            }
            None => false,
        };
        let now = Timestamp::now();
        let stored = stored.unwrap_or_else(|| Stored::never(now));
        let inner = Inner { since: stored.since, stored, pause_file };
        let actuation = Self {
            writing: Mutex::new(()),
            file,
            mode: watch::Sender::new(Mode::Active),
            paused: metrics.actuation_paused.clone(),
            audit,
            options,
            inner: Mutex::new(inner),
        };
        let mut inner = actuation.lock();
        let (mode, forced_by) = actuation.in_force(&inner);
        if let Some(forced_by) = forced_by {
            inner.since = now;
            actuation.audit.actuation(mode.label(), "forced at start", forced_by.label());
        }
        if mode != Mode::Active {
            tracing::warn!(%mode, reason = inner.stored.reason, "decisions are not carried out");
        }
        drop(inner);
        actuation.publish(mode);
        Ok(actuation)
    }

    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> Mode {
        *self.mode.borrow()
    }

    /// Follows the mode in force: whoever waits while paused learns of the end.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Mode> {
        self.mode.subscribe()
    }

    /// All there is to say.
    #[must_use]
    pub fn state(&self) -> State {
        let inner = self.lock();
        let (mode, forced_by) = self.in_force(&inner);
        State {
            mode,
            set_mode: inner.stored.mode,
            since: inner.since,
            reason: inner.stored.reason.clone(),
            set_by: inner.stored.set_by.clone(),
            forced_by,
        }
    }

    /// Looks at the pause file, once a cycle, and returns the mode in force. A
    /// look that fails changes nothing: nobody resumes for want of a look.
    pub fn refresh(&self) -> Mode {
        if let Some(path) = &self.options.pause_file {
            match exists(path) {
                Ok(there) => self.pause_file_is(there, path),
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "cannot look at the pause file");
                }
            }
        }
        self.mode()
    }

    /// Sets a mode: durable, in force (unless something stronger forces
    /// another), on the gauge and in the audit when this returns. It writes to
    /// disk; call it off the runtime's threads.
    pub fn set(&self, mode: Mode, reason: &str, set_by: &str) -> Result<State, Error> {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Timestamp::now();
        let since = {
            let inner = self.lock();
            if inner.stored.mode == mode { inner.stored.since } else { now }
        };
        let (reason, set_by) = (reason.to_owned(), set_by.to_owned());
        let new = Stored { mode, since, reason, set_by };
        let written = self.file.as_ref().map_or(Ok(()), |path| {
            new.write(path).map_err(|source| Error::NotStored {
                path: path.clone(),
                source,
                consequence: match mode {
                    Mode::Paused => {
                        "paused for now, but a restart would resume: restart with \
                         --actuation-paused or make room and set it again"
                    }
                    Mode::Active | Mode::DryRun => "nothing has changed: make room, set it again",
                },
            })
        });
        // The brake must work on a full disk; nothing else is worth half a promise.
        if written.is_err() && mode != Mode::Paused {
            return written.map(|()| self.state());
        }
        self.change(now, |inner| inner.stored = new.clone());
        self.audit.actuation(mode.label(), &new.reason, &new.set_by);
        tracing::warn!(%mode, reason = new.reason, set_by = new.set_by, "actuation set");
        written.map(|()| self.state())
    }

    fn pause_file_is(&self, there: bool, path: &Path) {
        if self.lock().pause_file == there {
            return;
        }
        self.change(Timestamp::now(), |inner| inner.pause_file = there);
        let (mode, path) = (self.mode(), path.display());
        let what = if there { "appeared" } else { "is gone" };
        let reason = format!("pause file {path} {what}");
        self.audit.actuation(mode.label(), &reason, ForcedBy::File.label());
        tracing::warn!(%mode, %path, "pause file {what}");
    }

    /// Changes what asks, and brings what is in force after it.
    fn change(&self, now: Timestamp, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        let before = self.in_force(&inner).0;
        change(&mut inner);
        let mode = self.in_force(&inner).0;
        if mode != before {
            inner.since = now;
        }
        // Inside the lock: the last change must be the one that shows.
        self.publish(mode);
    }

    fn publish(&self, mode: Mode) {
        self.paused.set(i64::from(mode == Mode::Paused));
        self.mode.send_if_modified(|old| std::mem::replace(old, mode) != mode);
    }

    /// The kill switch wins.
    fn in_force(&self, inner: &Inner) -> (Mode, Option<ForcedBy>) {
        if self.options.paused {
            (Mode::Paused, Some(ForcedBy::Flag))
        } else if inner.pause_file {
            (Mode::Paused, Some(ForcedBy::File))
        } else if inner.stored.mode == Mode::Paused {
            (Mode::Paused, None)
        } else if self.options.dry_run {
            (Mode::DryRun, Some(ForcedBy::Flag))
        } else {
            (inner.stored.mode, None)
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether anything is there, were it a link to nowhere.
fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
