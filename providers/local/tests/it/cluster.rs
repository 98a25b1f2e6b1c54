//! A control plane that has heard of the provider's account.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bigfleet_testkit::kube::ControlPlane;
use serde_json::{Value, json};
use tempfile::TempDir;

const ACCOUNT: &str = "bigfleet-provider-local";
pub(crate) const AS_PROVIDER: &str =
    "--as=system:serviceaccount:bigfleet-provider-local:bigfleet-provider-local";
/// For anything that takes a moment; a busy machine takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    plane: ControlPlane,
    folder: TempDir,
}

impl Cluster {
    pub(crate) fn start_or_skip() -> Option<Self> {
        let plane = ControlPlane::start_or_skip()?;
        let cluster = Self { plane, folder: tempfile::tempdir().unwrap() };
        let deadline = Instant::now() + PATIENCE;
        while cluster.try_kubectl(&["get", "namespace", "default", "kube-node-lease"]).is_err() {
            assert!(Instant::now() < deadline, "the system namespaces do not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        let rights = concat!(env!("CARGO_MANIFEST_DIR"), "/rbac.yaml");
        cluster.kubectl(&["apply", "-f", rights]);
        let token = cluster.kubectl(&["create", "token", ACCOUNT, "-n", ACCOUNT]);
        let mut config: Value =
            serde_json::from_slice(&fs::read(cluster.plane.kubeconfig()).unwrap()).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        fs::write(cluster.kubeconfig(), config.to_string()).unwrap();
        Some(cluster)
    }

    /// The provider's own.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// As the administrator; its output, or what it complains of.
    pub(crate) fn try_kubectl(&self, args: &[&str]) -> Result<String, String> {
        self.run(args, "")
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        self.run(args, "").unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    pub(crate) fn apply(&self, object: &Value) {
        self.run(&["apply", "-f", "-"], &object.to_string()).unwrap();
    }

    fn run(&self, args: &[&str], stdin: &str) -> Result<String, String> {
        let output = self.plane.kubectl_with(args, stdin);
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// An object, if it is there.
    pub(crate) fn get(&self, args: &[&str]) -> Option<Value> {
        let args: Vec<_> = ["get", "-o=json"].iter().chain(args).copied().collect();
        match self.try_kubectl(&args) {
            Ok(text) => Some(serde_json::from_str(&text).unwrap()),
            Err(error) if error.contains("NotFound") => None,
            Err(error) => panic!("kubectl {args:?}: {error}"),
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        self.get(&["node", name])
    }

    pub(crate) fn lease(&self, node: &str) -> Option<Value> {
        self.get(&["lease", "-n=kube-node-lease", node])
    }

    /// A Pod on a node, Running as far as the API server knows.
    pub(crate) fn run_pod(&self, name: &str, node: &str) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
        }));
        let running = r#"{"status":{"phase":"Running"}}"#;
        self.kubectl(&["patch", "pod", name, "--subresource=status", "-p", running]);
    }
}

/// Waits for a condition.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
