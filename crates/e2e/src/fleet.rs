//! The processes under test: provider, shard, operator, pod controller.

use std::path::{Path, PathBuf};

use bigfleet_testkit::{
    binaries::binary,
    ports::port,
    process::{Process, flags, get, sum, until},
};
use tempfile::TempDir;

use crate::cluster::NAMESPACE;

/// Eight machines of four processors and 16 GiB, which take their time.
pub const EIGHT_MACHINES: &[&str] = &[
    "--tier={name: vm, type: m4, capacity: ON_DEMAND, count: 8, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}}",
    "--latency={create: {uniform: [200ms, 2s]}, configure: {uniform: [200ms, 2s]}, \
     drain: 200ms, delete: 200ms}",
    "--interruption-factor=0",
];

/// A process with an HTTP port, whose files are in one folder with those of the others.
#[derive(Debug)]
pub struct Part {
    name: &'static str,
    process: Process,
    http: String,
}

impl Part {
    /// The process, to kill or signal.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Returns when `/readyz` says so.
    pub async fn until_ready(&mut self) {
        until(&format!("{} ready", self.name), async || {
            assert!(self.process.is_running(), "{} ended: {}", self.name, self.process.tail());
            get(&self.http, "/readyz").await.filter(|(status, _)| *status == 200)
        })
        .await;
    }

    /// Sum of a metric over all its labels; none before it is there.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        sum(&get(&self.http, "/metrics").await?.1, name)
    }
}

impl Drop for Part {
    /// What it said last tells why a test failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- end of the log of {} ---\n{}", self.name, self.process.tail());
        }
    }
}

/// Where the processes of a test are, whether they run or not.
#[derive(Debug)]
pub struct Fleet {
    folder: TempDir,
    provider: String,
    shard: String,
}

impl Default for Fleet {
    fn default() -> Self {
        Self::new()
    }
}

impl Fleet {
    /// Places and ports.
    #[must_use]
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), provider: port(), shard: port() }
    }

    /// Address of the shard, for an operator or a proxy.
    #[must_use]
    pub fn shard_addr(&self) -> &str {
        &self.shard
    }

    /// Address of the provider, for a proxy.
    #[must_use]
    pub fn provider_addr(&self) -> &str {
        &self.provider
    }

    /// A file of this test, gone with it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the simulated cloud; [`EIGHT_MACHINES`] for example.
    pub async fn provider(&self, more: &[&str]) -> Part {
        let http = port();
        let usual = [
            ("--addr", self.provider.clone()),
            ("--metrics-addr", http.clone()),
            ("--admin-addr", port()),
            ("--state", self.path("provider-state").display().to_string()),
        ];
        let args: Vec<String> = flags(usual, more).collect();
        self.start("bigfleet-provider-sim", "bigfleet-provider-sim", &args, &[], http).await
    }

    /// Starts the provider whose machines are Nodes of the cluster `c-1` and nothing else.
    pub async fn local_provider(&self, kubeconfig: &Path, more: &[&str]) -> Part {
        let http = port();
        let usual = [
            ("--addr", self.provider.clone()),
            ("--metrics-addr", http.clone()),
            ("--state", self.path("provider-state").display().to_string()),
            ("--clusters", format!("c-1={}", kubeconfig.display())),
        ];
        let args: Vec<String> = flags(usual, more).collect();
        self.start("bigfleet-provider-local", "bigfleet-provider-local", &args, &[], http).await
    }

    /// Starts the shard.
    pub async fn shard(&self, more: &[&str]) -> Part {
        let http = port();
        let usual = [
            ("--listen", self.shard.clone()),
            ("--metrics-addr", http.clone()),
            ("--id", "shard-0".to_owned()),
            ("--provider-addr", self.provider.clone()),
            ("--cycle-interval", "500ms".to_owned()),
            ("--data-dir", self.path("shard-data").display().to_string()),
        ];
        let args: Vec<String> =
            std::iter::once("shard".to_owned()).chain(flags(usual, more)).collect();
        self.start("bigfleet", "shard", &args, &[], http).await
    }

    /// Starts an operator of the cluster `c-1`; `pod` is its name, for its lease.
    pub async fn operator(&self, pod: &str, kubeconfig: &Path, more: &[&str]) -> Part {
        let http = port();
        let usual = [
            ("--cluster-id", "c-1".to_owned()),
            ("--shard-addr", self.shard.clone()),
            ("--kubeconfig", kubeconfig.display().to_string()),
            ("--metrics-addr", http.clone()),
            ("--rollup-interval", "1s".to_owned()),
        ];
        let args: Vec<String> = flags(usual, more).collect();
        let variables = [("POD_NAME", pod), ("POD_NAMESPACE", NAMESPACE)];
        self.start("bigfleet-operator", "operator", &args, &variables, http).await
    }

    /// Starts a pod controller.
    pub async fn pod_controller(&self, pod: &str, kubeconfig: &Path, more: &[&str]) -> Part {
        let http = port();
        let usual =
            [("--kubeconfig", kubeconfig.display().to_string()), ("--metrics-addr", http.clone())];
        let args: Vec<String> = flags(usual, more).collect();
        let variables = [("POD_NAME", pod), ("POD_NAMESPACE", NAMESPACE)];
        let package = "bigfleet-unschedulable-pod-controller";
        self.start(package, "pod-controller", &args, &variables, http).await
    }

    async fn start(
        &self,
        package: &str,
        name: &'static str,
        args: &[String],
        variables: &[(&str, &str)],
        http: String,
    ) -> Part {
        let log = self.path(&format!("{name}.log"));
        let package = package.to_owned();
        let program = tokio::task::spawn_blocking(move || binary(&package)).await.unwrap();
        Part { name, process: Process::spawn_with(&program, args, variables, &log), http }
    }
}
