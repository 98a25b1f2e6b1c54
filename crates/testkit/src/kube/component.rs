//! The processes of a control plane and their flags.

use std::ffi::OsString;
use std::path::Path;

use super::binaries::Binaries;
use super::certificates::Certificates;

/// One process of a control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Component {
    Etcd,
    ApiServer,
}

impl Component {
    /// In the order in which they are started.
    pub(crate) const ALL: [Self; 2] = [Self::Etcd, Self::ApiServer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
        }
    }

    pub(crate) fn binary(self, binaries: &Binaries) -> &Path {
        match self {
            Self::Etcd => &binaries.etcd,
            Self::ApiServer => &binaries.apiserver,
        }
    }

    pub(crate) fn flags(self, place: &Place<'_>) -> Vec<OsString> {
        match self {
            Self::Etcd => etcd(place),
            Self::ApiServer => apiserver(place),
        }
    }
}

/// Where a control plane lives: its folder, ports and credentials.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) etcd_port: u16,
    pub(crate) apiserver_port: u16,
    pub(crate) certificates: &'a Certificates,
}

impl Place<'_> {
    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }
}

fn etcd(place: &Place<'_>) -> Vec<OsString> {
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

fn apiserver(place: &Place<'_>) -> Vec<OsString> {
    let files = place.certificates;
    vec![
        flag("etcd-servers", place.etcd_url()),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", place.apiserver_port.to_string()),
        flag("cert-dir", place.folder),
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
    ]
}

fn flag(name: &str, value: impl Into<OsString>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value.into());
    flag
}
