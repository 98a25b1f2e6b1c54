//! Start, wait, stop.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Error;
use super::audit::{self, Removal};
use super::binaries::Binaries;
use super::certificates::Certificates;
use super::component::{Component, Place};
use super::kubeconfig::{self, User};
use super::process::Process;

/// A server is ready about 4 s after its start; a busy machine takes longer, a very busy one has
/// been seen to take two minutes.
const READY_WITHIN: Duration = Duration::from_secs(300);

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
    processes: Vec<(Component, Process)>,
    binaries: Binaries,
    place: Place,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a server (etcd and kube-apiserver) and waits until it is ready.
    pub fn start() -> Result<Self, Error> {
        Self::start_from(Binaries::find(false)?)
    }

    /// Starts a whole cluster: the server, the controllers of workloads and the scheduler. Nodes
    /// are the test's to bring.
    pub fn start_cluster() -> Result<Self, Error> {
        Self::start_from(Binaries::find(true)?)
    }

    /// [`ControlPlane::start`] for a test, or says why the test is skipped and returns `None`.
    ///
    /// # Panics
    ///
    /// When binaries are absent and `BIGFLEET_REQUIRE_KUBE=1`, and when the start fails.
    pub fn start_or_skip() -> Option<Self> {
        or_skip(Self::start())
    }

    /// [`ControlPlane::start_cluster`] for a test, or says why the test is skipped and returns
    /// `None`.
    ///
    /// # Panics
    ///
    /// As [`ControlPlane::start_or_skip`].
    pub fn start_cluster_or_skip() -> Option<Self> {
        or_skip(Self::start_cluster())
    }

    fn start_from(binaries: Binaries) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("bigfleet-kube-")
            .map_err(Error::io("cannot make a temporary folder"))?;
        let certificates = Certificates::write_to(folder.path())?;
        let [etcd_port, apiserver_port] =
            free_ports().map_err(Error::io("cannot find a free port"))?;
        let kubeconfig = folder.path().join("kubeconfig");
        kubeconfig::write_to(&kubeconfig, apiserver_port, &certificates, &User::Admin)?;
        let place = Place {
            folder: folder.path().to_owned(),
            etcd_port,
            apiserver_port,
            certificates,
            kubeconfig,
        };
        let policy = place.audit_policy();
        std::fs::write(&policy, audit::policy().to_string())
            .map_err(Error::io(format!("cannot write {}", policy.display())))?;
        let mut cluster = Self { processes: Vec::new(), binaries, place, folder };
        Component::SERVER.into_iter().try_for_each(|component| cluster.launch(component))?;
        cluster.wait_until_ready()?;
        Component::CONTROLLERS.into_iter().try_for_each(|component| cluster.launch(component))?;
        Ok(cluster)
    }

    /// Starts a process, unless it is not part of this control plane.
    fn launch(&mut self, component: Component) -> Result<(), Error> {
        let Some(binary) = component.binary(&self.binaries) else { return Ok(()) };
        let flags = component.flags(&self.place);
        let process = Process::start(component.name(), binary, flags, &self.place.folder)?;
        self.processes.push((component, process));
        Ok(())
    }

    /// Kills the server; etcd keeps its objects.
    pub fn stop_apiserver(&mut self) {
        self.processes.retain(|(component, _)| *component != Component::ApiServer);
    }

    /// Starts the server again where it was, and waits until it is ready.
    pub fn start_apiserver(&mut self) -> Result<(), Error> {
        self.stop_apiserver();
        self.launch(Component::ApiServer)?;
        self.wait_until_ready()
    }

    /// The server's port on loopback, for a proxy before it.
    #[must_use]
    pub fn apiserver_port(&self) -> u16 {
        self.place.apiserver_port
    }

    /// Every call so far that took a pod away or tried to, whatever its answer.
    pub fn pod_removals(&self) -> Result<Vec<Removal>, Error> {
        let log = self.place.audit_log();
        audit::removals(&log).map_err(Error::io(format!("cannot read {}", log.display())))
    }

    /// A `kubectl` command as the administrator of this control plane.
    pub fn kubectl(&self) -> Command {
        self.administer(&self.binaries.kubectl)
    }

    /// Runs `kubectl` with this on its standard input, whatever comes of it.
    ///
    /// # Panics
    ///
    /// When it cannot be run.
    pub fn kubectl_with(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .kubectl()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"));
        // Taken, so that it is closed before the wait.
        if let Some(mut stdin) = child.stdin.take() {
            // A command that ends without reading says why in its output.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    /// A `helm` command as the administrator of this cluster.
    ///
    /// # Panics
    ///
    /// When this is a server without its controllers.
    pub fn helm(&self) -> Command {
        match &self.binaries.cluster {
            Some(cluster) => self.administer(&cluster.helm),
            None => panic!("helm needs a whole cluster: use start_cluster"),
        }
    }

    fn administer(&self, binary: &Path) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(binary);
        command
            .env("KUBECONFIG", self.kubeconfig())
            // What it remembers of one server must not reach the next one.
            .env("KUBECACHEDIR", folder.join("kubectl-cache"))
            .env("HELM_CACHE_HOME", folder.join("helm-cache"))
            .env("HELM_CONFIG_HOME", folder.join("helm-config"))
            .env("HELM_DATA_HOME", folder.join("helm-data"));
        command
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.place.kubeconfig
    }

    /// A kubeconfig for a service account that exists, through the server's own port or that of a
    /// proxy before it.
    pub fn account_kubeconfig(
        &self,
        namespace: &str,
        account: &str,
        port: Option<u16>,
    ) -> Result<PathBuf, Error> {
        let token = run(self.kubectl().args([
            "create",
            "token",
            account,
            "--namespace",
            namespace,
            "--duration=24h",
        ]))?;
        let port = port.unwrap_or(self.place.apiserver_port);
        let path = self.place.folder.join(format!("{namespace}-{account}-{port}.kubeconfig"));
        let user = User::Token(token.trim());
        kubeconfig::write_to(&path, port, &self.place.certificates, &user)
    }

    /// Applies manifests, YAML or JSON.
    pub fn apply(&self, manifests: &str) -> Result<String, Error> {
        let path = self.place.folder.join("apply.yaml");
        std::fs::write(&path, manifests)
            .map_err(Error::io(format!("cannot write {}", path.display())))?;
        run(self.kubectl().args(["apply", "--server-side", "--filename"]).arg(path))
    }

    /// Renders a chart with these arguments of helm (`--set=…`, `--show-only=…`) and applies what
    /// comes out.
    pub fn apply_chart(
        &self,
        chart: &Path,
        name: &str,
        namespace: &str,
        args: &[&str],
    ) -> Result<String, Error> {
        let rendered = run(release(
            self.helm().args(["template", "--validate", name]).arg(chart),
            namespace,
            args,
        ))?;
        self.apply(&rendered)
    }

    /// Installs a chart with these arguments of helm, or upgrades its release; pods need not come
    /// up.
    pub fn install_chart(
        &self,
        chart: &Path,
        name: &str,
        namespace: &str,
        args: &[&str],
    ) -> Result<String, Error> {
        run(release(
            self.helm().args(["upgrade", "--install", "--create-namespace", name]).arg(chart),
            namespace,
            args,
        ))
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            for (_, process) in &mut self.processes {
                if let Some(status) = process.ended() {
                    let name = process.name();
                    return Err(self.not_ready(format!("{name} ended with {status}")));
                }
            }
            let answer = self
                .kubectl()
                .args(["get", "--raw=/readyz", "--request-timeout=5s"])
                .output()
                .map_err(Error::io(format!("cannot run {}", self.binaries.kubectl.display())))?;
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
        Error::NotReady { reason, logs: self.log_tails() }
    }

    /// The end of every process's log, for a test that fails.
    #[must_use]
    pub fn log_tails(&self) -> String {
        let tails: Vec<String> =
            self.processes.iter().map(|(_, process)| process.log_tail()).collect();
        tails.join("\n")
    }
}

fn or_skip(started: Result<ControlPlane, Error>) -> Option<ControlPlane> {
    let required = std::env::var_os(REQUIRE).is_some_and(|value| value == "1");
    match started {
        Ok(cluster) => Some(cluster),
        Err(error) if may_skip(&error, required) => {
            // Not `eprintln!`, which the test harness swallows when a test passes.
            let _ = writeln!(io::stderr(), "skipped: {error}");
            None
        }
        Err(error) => panic!("no control plane: {error}"),
    }
}

fn release<'a>(command: &'a mut Command, namespace: &str, args: &[&str]) -> &'a mut Command {
    command.args(["--namespace", namespace]).args(args)
}

/// Runs a command to its end; what it printed.
fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Error::io(format!("cannot run {name}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: format!("{command:?}"),
        status: output.status,
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
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
            cluster: None,
        };
        let error = ControlPlane::start_from(binaries).unwrap_err().to_string();
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

    #[test]
    fn a_cluster_runs_workloads_and_survives_its_server() {
        let Some(mut cluster) = ControlPlane::start_cluster_or_skip() else {
            return;
        };
        cluster
            .apply(
                r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: none}]}
"#,
            )
            .unwrap();
        let config = cluster.account_kubeconfig("default", "reader", None).unwrap();
        let reason = "jsonpath={.items[*].status.conditions[?(@.type=='PodScheduled')].reason}";
        wait_for("two pods that no node takes", || {
            let mut list = cluster.kubectl();
            list.env("KUBECONFIG", &config).args(["get", "pods", "--output", reason]);
            run(&mut list).unwrap() == "Unschedulable Unschedulable"
        });
        let refused = run(cluster.kubectl().env("KUBECONFIG", &config).args(["get", "nodes"]));
        assert!(refused.unwrap_err().to_string().contains("forbidden"));

        cluster.stop_apiserver();
        assert!(run(cluster.kubectl().args(["get", "pods", "--request-timeout=2s"])).is_err());
        cluster.start_apiserver().unwrap();
        run(cluster.kubectl().args(["delete", "deployment", "web"])).unwrap();
        wait_for("the garbage to be collected", || {
            run(cluster.kubectl().args(["get", "pods", "--output=name"])).unwrap().is_empty()
        });
    }

    fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + READY_WITHIN;
        while !holds() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            thread::sleep(POLL);
        }
    }
}
