//! Where the binaries are, by the convention of envtest.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Error;

/// Paths of what a control plane is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    pub(crate) kubectl: PathBuf,
    /// What a whole cluster needs besides; none where only its server was asked for.
    pub(crate) cluster: Option<ClusterBinaries>,
}

/// Paths of what makes a cluster of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterBinaries {
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) helm: PathBuf,
}

impl Binaries {
    /// Looks in `KUBEBUILDER_ASSETS`, then in `PATH`.
    pub(crate) fn find(whole: bool) -> Result<Self, Error> {
        let (assets, path) = (env::var_os("KUBEBUILDER_ASSETS"), env::var_os("PATH"));
        Self::find_in(assets.as_deref(), path.as_deref(), whole)
    }

    fn find_in(assets: Option<&OsStr>, path: Option<&OsStr>, whole: bool) -> Result<Self, Error> {
        // An empty variable must not come to mean the working directory.
        let assets = assets.filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let folders: Vec<PathBuf> =
            assets.into_iter().chain(path.into_iter().flat_map(env::split_paths)).collect();
        let mut missing = Vec::new();
        let mut find = |name| {
            let found = folders.iter().map(|folder| folder.join(name)).find(|file| is_file(file));
            found.unwrap_or_else(|| {
                missing.push(name);
                PathBuf::new()
            })
        };
        let found = Self {
            etcd: find("etcd"),
            apiserver: find("kube-apiserver"),
            kubectl: find("kubectl"),
            cluster: whole.then(|| ClusterBinaries {
                controller_manager: find("kube-controller-manager"),
                scheduler: find("kube-scheduler"),
                helm: find("helm"),
            }),
        };
        if missing.is_empty() { Ok(found) } else { Err(Error::Missing(missing)) }
    }
}

fn is_file(path: &Path) -> bool {
    path.is_absolute() && path.is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn assets_come_before_path_and_path_fills_the_gaps() {
        let assets = folder(&["etcd", "kube-apiserver"]);
        let path = folder(&["etcd", "kubectl"]);
        let (assets_path, path_path) = (assets.path().as_os_str(), path.path().as_os_str());
        let found = Binaries::find_in(Some(assets_path), Some(path_path), false);
        assert_eq!(
            found.unwrap(),
            Binaries {
                etcd: assets.path().join("etcd"),
                apiserver: assets.path().join("kube-apiserver"),
                kubectl: path.path().join("kubectl"),
                cluster: None,
            }
        );
        let whole = Binaries::find_in(Some(assets_path), Some(path_path), true);
        let message = whole.unwrap_err().to_string();
        let missing = "kube-controller-manager, kube-scheduler, helm not found";
        assert!(message.starts_with(missing), "{message}");
    }

    #[test]
    fn the_error_names_what_is_missing_and_how_to_get_it() {
        let path = folder(&["kubectl"]);
        let error = Binaries::find_in(Some(OsStr::new("")), Some(path.path().as_os_str()), false);
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("etcd, kube-apiserver not found"), "{message}");
        assert!(message.contains("setup-envtest"), "{message}");
    }
}
