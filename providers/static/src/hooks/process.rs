//! One run of one hook, in a process group of its own.

use std::{io, path::PathBuf, pin::pin, process::Stdio, time::Duration};

use bigfleet_provider_kit::{Op, flags::duration};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{Hook, Ran, tail::Tail};
use crate::spool::{SPOOL_VARIABLE, Spool};

/// EX_TEMPFAIL of sysexits.
const RETRY: i32 = 75;
/// The path of the blob.
const BLOB_VARIABLE: &str = "BF_BLOB";
/// For what a hook has written and we have not read at its end. A process that it left
/// behind may hold the pipe for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) struct Call<'a> {
    pub(super) hook: Hook,
    pub(super) path: PathBuf,
    pub(super) spool: &'a Spool,
    pub(super) input: &'a [u8],
    pub(super) blob: Option<&'a [u8]>,
    pub(super) limit: Duration,
}

impl Call<'_> {
    /// Runs it. Dropped half-way it kills the group and removes the blob, too.
    pub(super) async fn run(&self, op: &Op) -> Ran {
        let hook = self.hook;
        // Before the group: dropped after it, so no hook looks for a file that is gone.
        let blob = match self.blob.map(|blob| self.spool.write(blob)).transpose() {
            Ok(blob) => blob,
            Err(error) => return Ran::Again(format!("{hook} hook: its blob: {error}")),
        };
        let mut command = Command::new(&self.path);
        command
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .env(SPOOL_VARIABLE, self.spool.directory())
            .env_remove(BLOB_VARIABLE);
        if let Some(blob) = &blob {
            command.env(BLOB_VARIABLE, blob.path());
        }
        let mut group = match command.spawn() {
            Ok(child) => Group::new(child),
            Err(error) => return not_started(hook, &error),
        };
        let mut tail = Tail::default();
        let ended = tokio::select! {
            biased;
            () = op.cancelled.cancelled() => Ended::Cancelled,
            status = group.finish(self.input, &mut tail) => Ended::By(status),
            () = sleep(self.limit) => Ended::Overran,
        };
        drop(group);
        drop(blob);
        let said = || tail.text(self.blob);
        match ended {
            Ended::By(Ok(status)) => match status.code() {
                Some(0) => Ran::Done,
                Some(RETRY) => {
                    Ran::Again(format!("{hook} hook asks to be tried again: {}", said()))
                }
                Some(code) => Ran::Failed(format!("{hook} hook exited with {code}: {}", said())),
                None => Ran::Failed(format!("{hook} hook was killed: {}", said())),
            },
            Ended::By(Err(error)) => Ran::Failed(format!("{hook} hook: {error}")),
            Ended::Cancelled => Ran::Again(format!("{hook} hook was cancelled: {}", said())),
            Ended::Overran => {
                let limit = duration::format(self.limit);
                Ran::Overran(format!("{hook} hook did not finish within {limit}: {}", said()))
            }
        }
    }
}

enum Ended {
    By(io::Result<std::process::ExitStatus>),
    Cancelled,
    Overran,
}

fn not_started(hook: Hook, error: &io::Error) -> Ran {
    use io::ErrorKind::{ExecutableFileBusy, OutOfMemory, ResourceBusy, WouldBlock};
    let problem = format!("{hook} hook cannot be run: {error}");
    // Being replaced right now, or too many processes or files at once.
    let full = matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
    match error.kind() {
        ExecutableFileBusy | ResourceBusy | OutOfMemory | WouldBlock => Ran::Again(problem),
        _ if full => Ran::Again(problem),
        _ => Ran::Failed(problem),
    }
}

/// A hook and all that it started. Dropped before its end, nothing of it goes on.
struct Group {
    child: Child,
    /// As long as the leader is not reaped, nobody else can have its number.
    leader: Option<Pid>,
}

impl Group {
    fn new(child: Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self { child, leader: number.and_then(Pid::from_raw) }
    }

    async fn finish(
        &mut self,
        input: &[u8],
        tail: &mut Tail,
    ) -> io::Result<std::process::ExitStatus> {
        let (stdin, stderr) = (self.child.stdin.take(), self.child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A hook need not read what it does not want to know.
                let _ = stdin.write_all(input).await;
            }
        };
        let listen = async {
            if let Some(stderr) = stderr {
                tail.fill(stderr).await;
            }
        };
        let mut talk = pin!(async { tokio::join!(feed, listen) });
        let status = tokio::select! {
            status = self.child.wait() => {
                let _ = timeout(LAST_WORDS, &mut talk).await;
                status
            }
            _ = &mut talk => self.child.wait().await,
        };
        self.leader = None;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // Gone already is as good.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
