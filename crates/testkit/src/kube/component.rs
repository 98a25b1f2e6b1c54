//! The processes of a control plane and their flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::binaries::Binaries;
use super::certificates::Certificates;

/// One process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Component {
    /// What answers; in the order in which they are started.
    pub(crate) const SERVER: [Self; 2] = [Self::Etcd, Self::ApiServer];

    /// What makes a cluster of it; started when the server is ready.
    pub(crate) const CONTROLLERS: [Self; 2] = [Self::ControllerManager, Self::Scheduler];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }

    /// None where only a server was asked for.
    pub(crate) fn binary(self, binaries: &Binaries) -> Option<&Path> {
        let cluster = binaries.cluster.as_ref();
        match self {
            Self::Etcd => Some(&binaries.etcd),
            Self::ApiServer => Some(&binaries.apiserver),
            Self::ControllerManager => cluster.map(|cluster| cluster.controller_manager.as_path()),
            Self::Scheduler => cluster.map(|cluster| cluster.scheduler.as_path()),
        }
    }

    pub(crate) fn flags(self, place: &Place) -> Vec<OsString> {
        match self {
            Self::Etcd => etcd(place),
            Self::ApiServer => apiserver(place),
            Self::ControllerManager => controller_manager(place),
            Self::Scheduler => client(place),
        }
    }
}

/// Where a control plane lives: its folder, ports and credentials.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) etcd_port: u16,
    pub(crate) apiserver_port: u16,
    pub(crate) certificates: Certificates,
    /// The administrator's.
    pub(crate) kubeconfig: PathBuf,
}

impl Place {
    /// What the server says that it was asked to do.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// What of it.
    pub(crate) fn audit_policy(&self) -> PathBuf {
        self.folder.join("audit-policy.json")
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }
}

fn etcd(place: &Place) -> Vec<OsString> {
    let url = place.etcd_url();
    vec![
        flag("data-dir", place.folder.join("etcd-data")),
        flag("listen-client-urls", &url),
        flag("advertise-client-urls", &url),
        // It has no peers; any free port will do.
        flag("listen-peer-urls", "http://127.0.0.1:0"),
        // Nothing here outlives the process.
        "--unsafe-no-fsync".into(),
    ]
}

fn apiserver(place: &Place) -> Vec<OsString> {
    let files = &place.certificates;
    vec![
        flag("etcd-servers", place.etcd_url()),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", place.apiserver_port.to_string()),
        flag("cert-dir", &place.folder),
        flag("tls-cert-file", &files.serving.certificate),
        flag("tls-private-key-file", &files.serving.key),
        flag("client-ca-file", &files.authority),
        flag("authorization-mode", "RBAC"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", &files.service_account_public_key),
        flag("service-account-signing-key-file", &files.service_account_key),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        // Without a controller manager no namespace gets its default account, and every pod would
        // be refused for the lack of it.
        flag("disable-admission-plugins", "ServiceAccount"),
        flag("audit-policy-file", place.audit_policy()),
        flag("audit-log-path", place.audit_log()),
    ]
}

/// Those that a workload's life needs. Without the node lifecycle's the taint of a new Node that is
/// not ready yet would never be lifted; without the cleaner a join token would outlive its expiry.
const CONTROLLERS: [&str; 11] = [
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "statefulset-controller",
    "token-cleaner-controller",
];

fn controller_manager(place: &Place) -> Vec<OsString> {
    let mut flags = client(place);
    flags.push(flag("controllers", CONTROLLERS.join(",")));
    flags
}

/// Of a process that only calls the server.
fn client(place: &Place) -> Vec<OsString> {
    vec![
        flag("kubeconfig", &place.kubeconfig),
        flag("leader-elect", "false"),
        flag("secure-port", "0"),
        // The server is ours alone; nobody need be spared.
        flag("kube-api-qps", "500"),
        flag("kube-api-burst", "1000"),
    ]
}

fn flag(name: &str, value: impl Into<OsString>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value.into());
    flag
}
