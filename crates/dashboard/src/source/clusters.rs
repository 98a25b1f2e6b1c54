//! The three kinds in managed clusters; one context of the kubeconfig is one cluster.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc, time::Duration};

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode, keys};
use kube::{Resource, config::Kubeconfig};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    cluster::{Cluster, Doors},
    coalesce::{Coalesced, Outcome},
};
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
    doors: Option<Arc<Doors>>,
    clusters: BTreeMap<String, Arc<Cluster>>,
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
                Some(file)
            }
        };
        let contexts = file.iter().flat_map(|file| &file.contexts);
        let cluster = |id: &String| (id.clone(), Arc::new(Cluster::new(id)));
        let clusters = contexts.map(|context| cluster(&context.name)).collect();
        Ok(Self {
            doors: file.map(|file| Arc::new(Doors::new(file))),
            clusters,
            counts: Coalesced::new(&calls),
            details: Coalesced::new(&calls),
            hints: Coalesced::new(&calls),
            places: Coalesced::new(&calls),
        })
    }

    /// Whether there is a kubeconfig.
    #[must_use]
    pub(crate) const fn is_wired(&self) -> bool {
        self.doors.is_some()
    }

    /// Ids of all clusters, in order.
    pub(crate) fn ids(&self) -> Result<impl Iterator<Item = &str>, Refusal> {
        self.doors.as_ref().ok_or(Refusal::Unwired(Source::Kubeconfig))?;
        Ok(self.clusters.keys().map(String::as_str))
    }

    fn way(&self, cluster: &str) -> Result<Way, Refusal> {
        let doors = self.doors.clone().ok_or(Refusal::Unwired(Source::Kubeconfig))?;
        let cluster = self.clusters.get(cluster).ok_or_else(|| {
            Refusal::NotFound(format!("no context of the kubeconfig is called {cluster:?}"))
        })?;
        Ok(Way { doors, cluster: cluster.clone() })
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
        f.debug_struct("Clusters").field("ids", &self.clusters.keys()).finish_non_exhaustive()
    }
}

/// How one cluster is reached.
struct Way {
    doors: Arc<Doors>,
    cluster: Arc<Cluster>,
}

impl Way {
    async fn list<K: Resource<DynamicType = ()>, T: DeserializeOwned>(
        &self,
    ) -> Result<Vec<T>, Refusal> {
        self.cluster.list::<K, T>(&self.doors).await
    }
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
