//! Start, wait, stop.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Error;
use super::binaries::Binaries;
use super::certificates::Certificates;
use super::component::{Component, Place};
use super::kubeconfig;
use super::process::Process;

/// A server is ready about 4 s after its start; a busy machine takes longer.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// Between two looks.
const POLL: Duration = Duration::from_millis(200);

/// Set to `1` where absent binaries are a failure.
const REQUIRE: &str = "BIGFLEET_REQUIRE_KUBE";

/// A running control plane; dropping it stops its processes and removes its files.
///
/// Keep it in the test that uses it: a value in a `static` is never dropped.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields drop in this order: the processes must end before their folder goes.
    processes: Vec<Process>,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready.
    pub fn start() -> Result<Self, Error> {
        Self::start_from(&Binaries::find()?)
    }

    /// Starts a control plane for a test, or says why the test is skipped and returns `None`.
    ///
    /// # Panics
    ///
    /// When binaries are absent and `BIGFLEET_REQUIRE_KUBE=1`, and when the start fails.
    pub fn start_or_skip() -> Option<Self> {
        let required = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
        match Self::start() {
            Ok(cluster) => Some(cluster),
            Err(error) if may_skip(&error, required) => {
                // Not `eprintln!`, which the test harness swallows when a test passes.
                let _ = writeln!(io::stderr(), "skipped: {error}");
                None
            }
            Err(error) => panic!("no control plane: {error}"),
        }
    }

    fn start_from(binaries: &Binaries) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("bigfleet-kube-")
            .map_err(Error::io("cannot make a temporary folder"))?;
        let certificates = Certificates::write_to(folder.path())?;
        let [etcd_port, apiserver_port] =
            free_ports().map_err(Error::io("cannot find a free port"))?;
        let kubeconfig = kubeconfig::write_to(folder.path(), apiserver_port, &certificates)?;
        let place =
            Place { folder: folder.path(), etcd_port, apiserver_port, certificates: &certificates };
        let processes = Component::ALL
            .into_iter()
            .map(|component| {
                let binary = component.binary(binaries);
                Process::start(component.name(), binary, component.flags(&place), place.folder)
            })
            .collect::<Result<_, _>>()?;
        let mut cluster = Self { processes, kubectl: binaries.kubectl.clone(), kubeconfig, folder };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// A `kubectl` command as the administrator of this control plane.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // What it remembers of one server must not reach the next one.
            .env("KUBECACHEDIR", self.folder.path().join("kubectl-cache"));
        command
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            for process in &mut self.processes {
                if let Some(status) = process.ended() {
                    let name = process.name();
                    return Err(self.not_ready(format!("{name} ended with {status}")));
                }
            }
            let answer = self
                .kubectl()
                .args(["get", "--raw=/readyz", "--request-timeout=5s"])
                .output()
                .map_err(Error::io(format!("cannot run {}", self.kubectl.display())))?;
            if answer.status.success() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let answer = String::from_utf8_lossy(&answer.stderr);
                let waited = READY_WITHIN.as_secs();
                return Err(self.not_ready(format!("not ready after {waited} s: {answer}")));
            }
            thread::sleep(POLL);
        }
    }

    fn not_ready(&self, reason: String) -> Error {
        let logs: Vec<String> = self.processes.iter().map(Process::log_tail).collect();
        Error::NotReady { reason, logs: logs.join("\n") }
    }
}

/// Only absent binaries excuse a test, and only where they are not required.
fn may_skip(error: &Error, required: bool) -> bool {
    matches!(error, Error::Missing(_)) && !required
}

/// Ports that were free a moment ago; held together, so that they differ.
fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_binaries_skip_unless_required_and_nothing_else_does() {
        let missing = Error::Missing(vec!["etcd"]);
        assert!(may_skip(&missing, false));
        assert!(!may_skip(&missing, true));
        let failed = Error::NotReady { reason: String::new(), logs: String::new() };
        assert!(!may_skip(&failed, false));
    }

    #[test]
    fn a_start_that_fails_shows_the_log() {
        let folder = tempfile::tempdir().unwrap();
        // Written by another process: a file that this one has open for writing
        // while another test forks cannot be executed until that child has gone on.
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
            let mut shell = Command::new("/bin/sh");
            assert!(shell.arg("-c").arg(write).arg(&path).arg(text).status().unwrap().success());
            path
        };
        let binaries = Binaries {
            etcd: script("etcd", "exec sleep 600"),
            apiserver: script("kube-apiserver", "echo the disk is on fire >&2; exit 3"),
            kubectl: script("kubectl", "exit 1"),
        };
        let error = ControlPlane::start_from(&binaries).unwrap_err().to_string();
        assert!(error.contains("kube-apiserver ended with exit status: 3"), "{error}");
        assert!(error.contains("the disk is on fire"), "{error}");
    }

    #[test]
    fn a_started_control_plane_answers_and_leaves_nothing_behind() {
        let Some(cluster) = ControlPlane::start_or_skip() else {
            return;
        };
        let version = cluster.kubectl().args(["get", "--raw=/version"]).output().unwrap();
        assert!(version.status.success());
        let folder = cluster.folder.path().to_owned();
        assert!(cluster.kubeconfig().starts_with(&folder));
        drop(cluster);
        assert!(!folder.exists());
    }
}
