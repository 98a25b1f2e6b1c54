//! A process of the fleet: started, killed, started again, and never left behind.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::timeout,
};

use crate::{Error, leash};

/// Lines of a log that tell why a process ended.
const TAIL: usize = 12;

/// How long one on a leash may take to leave.
const LEAVE: Duration = Duration::from_secs(10);

/// One process, whether it runs or not.
#[derive(Debug)]
pub(crate) struct Part {
    /// What it is called.
    pub(crate) id: String,
    args: Vec<String>,
    log: PathBuf,
    /// Whether it is ended by its leash alone: it has something left to do then.
    outlives: bool,
    child: Mutex<Option<Child>>,
    /// 0 while it does not run.
    pid: AtomicU32,
}

impl Part {
    /// Not started yet.
    pub(crate) fn new(id: &str, args: Vec<String>, directory: &Path) -> Self {
        Self {
            id: id.to_owned(),
            args,
            log: directory.join(format!("{id}.log")),
            outlives: false,
            child: Mutex::new(None),
            pid: AtomicU32::new(0),
        }
    }

    /// The one that removes the directory when all is over, however it came to that.
    pub(crate) fn keeper(directory: &Path) -> Self {
        let args = vec![leash::KEEP.to_owned(), directory.display().to_string()];
        Self { outlives: true, ..Self::new("keeper", args, directory) }
    }

    /// A program of somebody else, led on a leash by one of ours.
    pub(crate) fn foreign(id: &str, program: &Path, args: Vec<String>, directory: &Path) -> Self {
        let lead = [leash::LEAD.to_owned(), program.display().to_string()];
        let args = lead.into_iter().chain(args).collect();
        Self { outlives: true, ..Self::new(id, args, directory) }
    }

    /// Starts it; what it says goes into its log.
    pub(crate) async fn start(&self) -> Result<(), Error> {
        let mut place = self.child.lock().await;
        if place.is_some() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(Error::file(&self.log))?;
        let failed = |source| Error::Start { part: self.id.clone(), source };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        // Settings of whoever starts the demo are not meant for the fleet in it.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("BIGFLEET_")) {
                command.env_remove(name);
            }
        }
        command.arg(leash::PART).args(&self.args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(!self.outlives);
        // Ctrl-C is for the demo, which ends its children itself.
        command.process_group(0);
        let child = command.spawn().map_err(failed)?;
        self.pid.store(child.id().unwrap_or_default(), Ordering::Relaxed);
        *place = Some(child);
        Ok(())
    }

    /// `kill -9`, or the end of its leash, and gone when this returns.
    pub(crate) async fn kill(&self) {
        let mut place = self.child.lock().await;
        self.pid.store(0, Ordering::Relaxed);
        let Some(mut child) = place.take() else { return };
        if self.outlives {
            drop(child.stdin.take());
            if timeout(LEAVE, child.wait()).await.is_ok() {
                return;
            }
        }
        // It fails only for one that has ended.
        drop(child.kill().await);
    }

    /// The process, if it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    /// Whether it should run and does not.
    pub(crate) async fn died(&self) -> Option<Error> {
        let mut place = self.child.lock().await;
        let ended = place.as_mut()?.try_wait().ok()??;
        tracing::error!(part = self.id, %ended, "ended by itself");
        *place = None;
        self.pid.store(0, Ordering::Relaxed);
        Some(Error::Ended { part: self.id.clone(), tail: self.tail() })
    }

    fn tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }
}
