//! Children that never outlive the demo, whatever ends it.
//!
//! A child holds the reading end of a pipe as its standard input, and the demo the only
//! writing end. When the demo ends, by a kill too, the system closes the pipe and the child
//! ends itself. One more child, the keeper, then removes the directory.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read as _},
    path::Path,
    process::{Command, ExitStatus, Stdio, exit},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// The hidden subcommand that children are started with.
pub const PART: &str = "demo-part";

/// Its first argument for the keeper.
pub const KEEP: &str = "keep";

/// Its first argument for one that leads a program of somebody else.
pub const LEAD: &str = "lead";

/// How often the keeper tries: children that still end may still write.
const TRIES: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(50);

/// Ends this process as soon as the demo has ended.
///
/// # Errors
///
/// When there is no thread to wait on.
pub fn hold() -> io::Result<()> {
    thread::Builder::new().name("leash".to_owned()).spawn(|| {
        wait();
        exit(0);
    })?;
    Ok(())
}

/// The keeper: waits for the end of the demo and removes its directory.
///
/// # Errors
///
/// When the directory cannot be removed.
pub fn keep(directory: &Path) -> io::Result<()> {
    wait();
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        thread::sleep(BETWEEN);
    }
}

/// Runs a program that knows no leash, and kills it when the demo has ended.
///
/// # Errors
///
/// When it does not start.
pub fn lead(program: &OsStr, args: &[OsString]) -> io::Result<ExitStatus> {
    let mut child = Command::new(program).args(args).stdin(Stdio::null()).spawn()?;
    let (over, end) = mpsc::channel();
    thread::Builder::new().name("leash".to_owned()).spawn(move || {
        wait();
        // Nobody hears it after the program has ended by itself.
        let _ = over.send(());
    })?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if end.recv_timeout(BETWEEN) != Err(RecvTimeoutError::Timeout) {
            child.kill()?;
            return child.wait();
        }
    }
}

/// Until standard input closes.
fn wait() {
    let mut one = [0_u8; 64];
    let mut input = io::stdin().lock();
    loop {
        match input.read(&mut one) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}
