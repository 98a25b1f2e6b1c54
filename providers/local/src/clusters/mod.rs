//! Where Nodes are: API servers, or a simulation of them.

mod evict;
mod heartbeat;
mod kube;
mod node;
mod sighting;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use bigfleet_provider_kit::{CloudError, Handle, Machine, Op, Ready};

pub(crate) use self::{kube::KubeClusters, sighting::Sighting};
use crate::{Error, flags::LocalFlags};

/// All clusters of this provider.
#[derive(Debug)]
pub(crate) enum Clusters {
    /// Real ones. Shared with the tasks that keep their Nodes Ready.
    Kube(Arc<KubeClusters>),
    /// Every cluster exists, every Node is Ready at once and no Pod is on it.
    Simulated,
}

impl Clusters {
    /// Those that the flags name.
    pub(crate) fn new(flags: &LocalFlags) -> Result<Self, Error> {
        let named = kubeconfigs(&flags.nodes.clusters)?;
        let default = flags.nodes.default_cluster.as_deref();
        match (flags.provider.use_fake_backend, named.is_empty() && default.is_none()) {
            (true, true) => Ok(Self::Simulated),
            (true, false) => Err(Error::FakeAndClusters),
            (false, true) => Err(Error::NoCluster),
            (false, false) => {
                let clusters = KubeClusters::new(named, default, flags.nodes.kubelet);
                Ok(Self::Kube(Arc::new(clusters)))
            }
        }
    }

    /// Keeps the Nodes of these machines Ready from now on; `handle` is told of those
    /// that vanish.
    pub(crate) fn attach<'a>(
        &self,
        handle: Handle,
        placed: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        if let Self::Kube(clusters) = self {
            clusters.attach(handle);
            for (id, cluster) in placed {
                clusters.keep_ready(id, cluster);
            }
        }
    }

    /// What Nodes there are; none, where nobody is asked.
    pub(crate) async fn sight(&self) -> Option<Sighting> {
        match self {
            Self::Kube(clusters) => Some(clusters.sight().await),
            Self::Simulated => None,
        }
    }

    /// Refuses a cluster that there is no way into, before anything is placed in it.
    pub(crate) async fn check(&self, cluster: &str) -> Result<(), CloudError> {
        match self {
            Self::Kube(clusters) => clusters.check(cluster).await,
            Self::Simulated => Ok(()),
        }
    }

    /// Makes the Node.
    pub(crate) async fn join(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
    ) -> Result<(), CloudError> {
        match self {
            Self::Kube(clusters) => clusters.join(op, machine, cluster).await,
            Self::Simulated => Ok(()),
        }
    }

    /// Whether the Node of this operation is Ready.
    pub(crate) async fn ready(
        &self,
        op: &Op,
        machine: &str,
        cluster: &str,
    ) -> Result<Ready, CloudError> {
        match self {
            Self::Kube(clusters) => clusters.ready(op, machine, cluster).await,
            Self::Simulated => Ok(Ready::Yes),
        }
    }

    /// Cordons the Node and evicts its Pods, until none is left or the time is over.
    pub(crate) async fn evict(
        &self,
        machine: &str,
        cluster: &str,
        until: SystemTime,
    ) -> Result<(), CloudError> {
        match self {
            Self::Kube(clusters) => clusters.evict(machine, cluster, until).await,
            Self::Simulated => Ok(()),
        }
    }

    /// Deletes the Node and what is left on it.
    pub(crate) async fn leave(&self, machine: &str, cluster: &str) -> Result<(), CloudError> {
        match self {
            Self::Kube(clusters) => clusters.leave(machine, cluster).await,
            Self::Simulated => Ok(()),
        }
    }
}

/// Reads `--clusters`.
fn kubeconfigs(entries: &[String]) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut found = BTreeMap::new();
    for entry in entries {
        let refuse = |problem: String| Error::Clusters { entry: entry.clone(), problem };
        if entry.contains('=') {
            add(&mut found, entry, Path::new("")).map_err(refuse)?;
            continue;
        }
        let text = fs::read_to_string(entry)
            .map_err(|error| refuse(format!("{error}; give ID=KUBECONFIG or a file of them")))?;
        let beside = Path::new(entry).parent().unwrap_or_else(|| Path::new(""));
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let located = |problem| refuse(format!("line {}: {problem}", number + 1));
            add(&mut found, line, beside).map_err(located)?;
        }
    }
    Ok(found)
}

fn add(found: &mut BTreeMap<String, PathBuf>, entry: &str, beside: &Path) -> Result<(), String> {
    match entry.split_once('=') {
        Some((id, path)) if !id.is_empty() && !path.is_empty() => {
            match found.insert(id.to_owned(), beside.join(path)) {
                None => Ok(()),
                Some(_) => Err(format!("cluster {id:?} is named twice; keep one")),
            }
        }
        _ => Err("not ID=KUBECONFIG".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_provider_kit::flags::try_parse_from;

    use super::*;

    #[test]
    fn the_map_comes_from_pairs_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clusters");
        fs::write(&file, "# ours\n\nb=kube/b\nc=/etc/c=d\n").unwrap();
        let file = file.to_str().unwrap().to_owned();
        let found = kubeconfigs(&["a=x".into(), file.clone()]).unwrap();
        assert_eq!(found["a"], Path::new("x"));
        assert_eq!(found["b"], folder.path().join("kube/b"));
        assert_eq!(found["c"], Path::new("/etc/c=d"));
        for (entries, problem) in [
            (vec!["=x".to_owned()], "not ID=KUBECONFIG"),
            (vec!["a=".to_owned()], "not ID=KUBECONFIG"),
            (vec!["/does/not/exist".to_owned()], "ID=KUBECONFIG"),
            (vec![file, "b=y".to_owned()], "twice"),
        ] {
            let error = kubeconfigs(&entries).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_simulation_is_asked_for_and_never_a_fallback() {
        let clusters = |args: &[&str]| {
            let args = std::iter::once("local").chain(args.iter().copied());
            Clusters::new(&try_parse_from(args).unwrap())
        };
        let error = clusters(&[]).unwrap_err();
        assert!(matches!(error, Error::NoCluster), "{error}");
        assert!(error.to_string().contains("--use-fake-backend"));
        assert!(matches!(clusters(&["--use-fake-backend"]), Ok(Clusters::Simulated)));
        assert!(matches!(clusters(&["--clusters=a=b"]), Ok(Clusters::Kube(_))));
        assert!(matches!(clusters(&["--default-cluster=b"]), Ok(Clusters::Kube(_))));
        let both = clusters(&["--use-fake-backend", "--clusters=a=b"]);
        assert!(matches!(both, Err(Error::FakeAndClusters)));
    }
}
