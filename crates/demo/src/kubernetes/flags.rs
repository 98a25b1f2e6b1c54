//! How the processes of a control plane are started.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{
    Error,
    pki::{Accounts, Material},
};

/// Where one server lives.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    /// `host:port` of what it keeps its objects in.
    pub(super) etcd: String,
    /// Its own.
    pub(super) addr: String,
}

pub(super) fn etcd(folder: &Path, addr: &str) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://{addr}"),
        format!("--advertise-client-urls=http://{addr}"),
        // It has no peers; any free port will do.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        // Nothing here outlives the demo.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]
}

pub(super) fn apiserver(
    name: &str,
    place: &Place,
    serving: &Material,
    accounts: &Accounts,
) -> Vec<String> {
    let [cert, key, ca] = serving.paths();
    let port = place.addr.rsplit(':').next().unwrap_or_default();
    vec![
        format!("--etcd-servers=http://{}", place.etcd),
        format!("--etcd-prefix=/{name}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", place.folder.display()),
        format!("--tls-cert-file={}", cert.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", ca.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", accounts.public.display()),
        format!("--service-account-signing-key-file={}", accounts.private.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // There is no controller that would make accounts, nor one that would lift the taint of a
        // node that has just come.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
    ]
}

/// A stock scheduler that packs, and does not make a watcher wait.
pub(super) fn scheduler_config(folder: &Path, kubeconfig: &Path) -> Result<PathBuf, Error> {
    const VERSION: &str = "kubescheduler.config.k8s.io/v1";
    let weight = |name: &str| json!({"name": name, "weight": 1});
    let config = json!({
        "apiVersion": VERSION,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": false},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 500, "burst": 1000},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [{
            "schedulerName": "default-scheduler",
            "pluginConfig": [{
                "name": "NodeResourcesFit",
                "args": {
                    "apiVersion": VERSION,
                    "kind": "NodeResourcesFitArgs",
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [weight("cpu"), weight("memory")],
                    },
                },
            }],
        }],
    });
    let path = folder.join("scheduler.json");
    std::fs::write(&path, config.to_string()).map_err(Error::file(&path))?;
    Ok(path)
}
