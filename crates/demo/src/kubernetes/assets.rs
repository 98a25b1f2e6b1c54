//! Where the binaries of a control plane are, by the convention of envtest.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::Error;

/// Paths of what a control plane is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assets {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    pub(crate) scheduler: PathBuf,
}

impl Assets {
    /// Looks in `KUBEBUILDER_ASSETS`, then in `PATH`.
    pub(crate) fn find() -> Result<Self, Error> {
        let (assets, path) = (env::var_os("KUBEBUILDER_ASSETS"), env::var_os("PATH"));
        Self::find_in(assets.as_deref(), path.as_deref())
    }

    fn find_in(assets: Option<&OsStr>, path: Option<&OsStr>) -> Result<Self, Error> {
        // An empty variable must not come to mean the working directory.
        let assets = assets.filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let path = path.into_iter().flat_map(env::split_paths);
        let folders: Vec<PathBuf> = assets.into_iter().chain(path).collect();
        let mut missing = Vec::new();
        let mut find = |name| {
            let is_file = |file: &PathBuf| file.is_absolute() && Path::new(file).is_file();
            folders.iter().map(|folder| folder.join(name)).find(is_file).unwrap_or_else(|| {
                missing.push(name);
                PathBuf::new()
            })
        };
        let found = Self {
            etcd: find("etcd"),
            apiserver: find("kube-apiserver"),
            scheduler: find("kube-scheduler"),
        };
        if missing.is_empty() {
            return Ok(found);
        }
        let problem = format!(
            "{} not found; put them into a folder and name it in $KUBEBUILDER_ASSETS \
             (`setup-envtest use` brings etcd and kube-apiserver, dl.k8s.io the scheduler), or \
             leave the flag out: the demo then has API servers of its own",
            missing.join(", ")
        );
        Err(Error::Flag { flag: "--kubernetes", problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assets_come_before_path_and_what_is_missing_is_named() {
        let (assets, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, name) in [(&assets, "etcd"), (&path, "etcd"), (&path, "kube-apiserver")] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let find =
            || Assets::find_in(Some(assets.path().as_os_str()), Some(path.path().as_os_str()));
        let error = find().unwrap_err();
        let text = error.to_string();
        assert!(error.is_usage() && text.starts_with("--kubernetes: kube-scheduler not"), "{text}");
        std::fs::write(path.path().join("kube-scheduler"), "").unwrap();
        let found = find().unwrap();
        assert_eq!(found.etcd, assets.path().join("etcd"));
        assert_eq!(found.scheduler, path.path().join("kube-scheduler"));
        assert!(Assets::find_in(Some(OsStr::new("")), None).is_err());
    }
}
