//! A child process that does not outlive its owner.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::Error;

/// Lines of a log that an error message shows.
const TAIL_LINES: usize = 15;

/// A running process, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `binary`; both its outputs go to the end of `<folder>/<name>.log`.
    pub(crate) fn start(
        name: &'static str,
        binary: &Path,
        flags: Vec<OsString>,
        folder: &Path,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{name}.log"));
        let open = || -> std::io::Result<(File, File)> {
            let file = File::options().create(true).append(true).open(&log)?;
            Ok((file.try_clone()?, file))
        };
        let (stdout, stderr) =
            open().map_err(Error::io(format!("cannot open {}", log.display())))?;
        let child = Command::new(binary)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(Error::io(format!("cannot start {}", binary.display())))?;
        Ok(Self { name, child, log })
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The end of the log, under a heading.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- end of the log of {} ---\n{}", self.name, tail.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &Path) -> Process {
        let flags = ["-c", script].map(OsString::from).to_vec();
        Process::start("shell", Path::new("/bin/sh"), flags, folder).unwrap()
    }

    #[test]
    fn the_tail_holds_the_last_lines_of_both_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let mut process =
            shell("for i in $(seq 40); do echo line $i; done; echo last >&2", folder.path());
        process.child.wait().unwrap();
        assert!(process.ended().unwrap().success());
        let tail = process.log_tail();
        assert!(tail.ends_with("line 40\nlast"), "{tail}");
        assert_eq!(tail.lines().count(), 1 + TAIL_LINES);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_dropped_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let process = shell("exec sleep 600", folder.path());
        let proc = format!("/proc/{}", process.child.id());
        assert!(Path::new(&proc).exists());
        drop(process);
        assert!(!Path::new(&proc).exists());
    }
}
