//! The three kinds in managed clusters; one context of the kubeconfig is one cluster.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode, keys};
use kube::{
    Client, Config as KubeConfig, Resource,
    api::{ListParams, Request},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

use super::coalesce::{Coalesced, Outcome};
use crate::{
    Error,
    api::{Refusal, Source},
    metrics::Metrics,
};

/// Time for one cluster.
const WITHIN: Duration = Duration::from_secs(30);

/// Numbers of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// CapacityRequests.
    pub(crate) requests: usize,
    /// Those not accepted yet.
    pub(crate) pending: usize,
    /// UpcomingNodes.
    pub(crate) nodes: usize,
}

/// Everything of one cluster that its page shows.
#[derive(Debug)]
pub(crate) struct Detail {
    /// Demand.
    pub(crate) requests: Vec<CapacityRequest>,
    /// Machines.
    pub(crate) nodes: Vec<UpcomingNode>,
}

/// Whether a request in this phase waits to be accepted; one that has no status yet does, too.
pub(crate) fn is_pending(phase: &str) -> bool {
    phase != "Acknowledged"
}

/// Managed clusters; calls are shared and bounded.
pub(crate) struct Clusters {
    file: Option<Arc<Kubeconfig>>,
    clients: BTreeMap<String, Arc<OnceCell<Client>>>,
    counts: Coalesced<String, Counts>,
    details: Coalesced<String, Detail>,
    hints: Coalesced<String, Vec<AvailableCapacity>>,
    places: Coalesced<String, BTreeMap<String, String>>,
}

impl Clusters {
    /// Those of a kubeconfig, which is read once; dials nothing yet.
    pub(crate) fn open(path: Option<&Path>, metrics: &Metrics) -> Result<Self, Error> {
        let calls = metrics.calls(Source::Kubeconfig);
        let file = match path {
            None => None,
            Some(path) => {
                let refuse = |problem: String| Error::Kubeconfig {
                    path: path.display().to_string(),
                    problem,
                };
                let file =
                    Kubeconfig::read_from(path).map_err(|error| refuse(error.to_string()))?;
                if file.contexts.is_empty() {
                    return Err(refuse("it has no context; give one per cluster".to_owned()));
                }
                Some(Arc::new(file))
            }
        };
        let contexts = file.iter().flat_map(|file| &file.contexts);
        let clients = contexts.map(|context| (context.name.clone(), Arc::default())).collect();
        Ok(Self {
            file,
            clients,
            counts: Coalesced::new(&calls),
            details: Coalesced::new(&calls),
            hints: Coalesced::new(&calls),
            places: Coalesced::new(&calls),
        })
    }

    /// Whether there is a kubeconfig.
    #[must_use]
    pub(crate) const fn is_wired(&self) -> bool {
        self.file.is_some()
    }

    /// Ids of all clusters, in order.
    pub(crate) fn ids(&self) -> Result<impl Iterator<Item = &str>, Refusal> {
        self.file.as_ref().ok_or(Refusal::Unwired(Source::Kubeconfig))?;
        Ok(self.clients.keys().map(String::as_str))
    }

    fn way(&self, cluster: &str) -> Result<Way, Refusal> {
        let file = self.file.clone().ok_or(Refusal::Unwired(Source::Kubeconfig))?;
        let client = self.clients.get(cluster).ok_or_else(|| {
            Refusal::NotFound(format!("no context of the kubeconfig is called {cluster:?}"))
        })?;
        Ok(Way { cluster: cluster.to_owned(), file, client: client.clone() })
    }

    /// Numbers of one cluster.
    pub(crate) async fn counts(&self, cluster: &str) -> Outcome<Counts> {
        let way = self.way(cluster)?;
        let fetch = || async move {
            let (requests, nodes) = tokio::try_join!(
                way.list::<CapacityRequest, Phased>(),
                way.list::<UpcomingNode, Anything>(),
            )?;
            let pending = |one: &&Phased| is_pending(&one.status.phase);
            Ok(Counts {
                requests: requests.len(),
                pending: requests.iter().filter(pending).count(),
                nodes: nodes.len(),
            })
        };
        self.counts.get(cluster.to_owned(), WITHIN, fetch).await
    }

    /// Requests and machines of one cluster.
    pub(crate) async fn detail(&self, cluster: &str) -> Outcome<Detail> {
        let way = self.way(cluster)?;
        let fetch = || async move {
            let (requests, nodes) = tokio::try_join!(
                way.list::<CapacityRequest, CapacityRequest>(),
                way.list::<UpcomingNode, UpcomingNode>(),
            )?;
            Ok(Detail { requests, nodes })
        };
        self.details.get(cluster.to_owned(), WITHIN, fetch).await
    }

    /// What one cluster could still get.
    pub(crate) async fn hints(&self, cluster: &str) -> Outcome<Vec<AvailableCapacity>> {
        let way = self.way(cluster)?;
        let fetch = || async move { way.list::<AvailableCapacity, AvailableCapacity>().await };
        self.hints.get(cluster.to_owned(), WITHIN, fetch).await
    }

    /// Machines of one cluster by the name of their node.
    pub(crate) async fn places(&self, cluster: &str) -> Outcome<BTreeMap<String, String>> {
        let way = self.way(cluster)?;
        let fetch = || async move {
            let nodes = way.list::<UpcomingNode, UpcomingNode>().await?;
            let place = |node: UpcomingNode| {
                let machine = node.metadata.annotations?.remove(keys::MACHINE_ID)?;
                Some((node.status?.node_ref?.name?, machine))
            };
            Ok(nodes.into_iter().filter_map(place).collect())
        };
        self.places.get(cluster.to_owned(), WITHIN, fetch).await
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clusters").field("ids", &self.clients.keys()).finish_non_exhaustive()
    }
}

/// How one cluster is reached.
#[derive(Clone)]
struct Way {
    cluster: String,
    file: Arc<Kubeconfig>,
    client: Arc<OnceCell<Client>>,
}

impl Way {
    async fn client(&self) -> Result<Client, Refusal> {
        let make = || async {
            let options =
                KubeConfigOptions { context: Some(self.cluster.clone()), ..Default::default() };
            let config =
                KubeConfig::from_custom_kubeconfig(Kubeconfig::clone(&self.file), &options);
            let config = config.await.map_err(|error| self.failed(error))?;
            Client::try_from(config).map_err(|error| self.failed(error))
        };
        self.client.get_or_try_init(make).await.cloned()
    }

    /// Every object of a kind, from the API server's own cache; of each what `T` reads.
    async fn list<K: Resource<DynamicType = ()>, T: DeserializeOwned>(
        &self,
    ) -> Result<Vec<T>, Refusal> {
        let client = self.client().await?;
        let request = Request::new(K::url_path(&(), None))
            .list(&ListParams::default().match_any())
            .map_err(|error| self.failed(error))?;
        let list: List<T> = client.request(request).await.map_err(|error| self.failed(error))?;
        Ok(list.items)
    }

    fn failed(&self, error: impl fmt::Display) -> Refusal {
        Refusal::failed(Source::Kubeconfig, format!("{}: {error}", self.cluster))
    }
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Anything {}

#[derive(Deserialize)]
struct Phased {
    #[serde(default)]
    status: Phase,
}

#[derive(Deserialize, Default)]
struct Phase {
    #[serde(default)]
    phase: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_looked_at_is_pending() {
        let phase = |object: &str| serde_json::from_str::<Phased>(object).unwrap().status.phase;
        for object in ["{}", r#"{"status":{}}"#, r#"{"status":{"phase":"Pending"}}"#] {
            assert!(is_pending(&phase(object)), "{object}");
        }
        assert!(!is_pending(&phase(r#"{"status":{"phase":"Acknowledged"}}"#)));
        // As the page of one cluster writes them.
        use bigfleet_crds::CapacityRequestPhase::{Acknowledged, Pending};
        assert!(is_pending(&format!("{Pending:?}")) && !is_pending(&format!("{Acknowledged:?}")));
    }
}
