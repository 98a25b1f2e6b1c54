//! Whether a node has joined its cluster and is Ready, asked of that cluster's own
//! API server (provider chapter §5).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::sync::Mutex;

use crate::cloud::{CloudError, Ready};

/// An API server that does not answer must not hold up the others.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// How a node is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKey {
    /// By `spec.providerID`, which equals the host's reference.
    ProviderId(String),
    /// By name.
    Name(String),
}

/// Polls nodes, with one kubeconfig per cluster. Read access to nodes is enough.
#[derive(Clone)]
pub struct NodeReady {
    kubeconfigs: Arc<BTreeMap<String, PathBuf>>,
    default: Option<Arc<Path>>,
    clients: Arc<Mutex<BTreeMap<PathBuf, Client>>>,
}

impl NodeReady {
    /// With the kubeconfig of each cluster id.
    #[must_use]
    pub fn new(kubeconfigs: BTreeMap<String, PathBuf>) -> Self {
        Self { kubeconfigs: Arc::new(kubeconfigs), default: None, clients: Arc::default() }
    }

    /// All other cluster ids are of this kubeconfig.
    #[must_use]
    pub fn with_default(mut self, kubeconfig: &Path) -> Self {
        self.default = Some(kubeconfig.into());
        self
    }

    /// The kubeconfig of a cluster.
    #[must_use]
    pub fn kubeconfig(&self, cluster: &str) -> Option<&Path> {
        self.kubeconfigs.get(cluster).map(PathBuf::as_path).or(self.default.as_deref())
    }

    /// For [`Cloud::ready`](crate::Cloud::ready): whether the node's Ready condition
    /// is True now. An unknown cluster is for good, anything else for now.
    pub async fn check(&self, cluster: &str, key: &NodeKey) -> Result<Ready, CloudError> {
        let nodes: Api<Node> = Api::all(self.client(cluster).await?);
        let node = match key {
            NodeKey::Name(name) => nodes.get_opt(name).await.map_err(later)?,
            NodeKey::ProviderId(id) => {
                // The API server has no field selector for it.
                let listed = nodes.list(&ListParams::default()).await.map_err(later)?;
                listed.items.into_iter().find(|node| provider_id(node) == Some(id.as_str()))
            }
        };
        Ok(if node.as_ref().is_some_and(is_ready) { Ready::Yes } else { Ready::NotYet })
    }

    /// The client of a cluster, for a provider that does more than look.
    pub async fn client(&self, cluster: &str) -> Result<Client, CloudError> {
        let path = self.kubeconfig(cluster).ok_or_else(|| {
            CloudError::Fatal(format!("no kubeconfig for cluster {cluster:?}; add one"))
        })?;
        self.client_of(path).await
    }

    /// The client of a kubeconfig.
    pub async fn client_of(&self, path: &Path) -> Result<Client, CloudError> {
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(path) {
            return Ok(client.clone());
        }
        let problem = |error: &dyn std::fmt::Display| {
            CloudError::Retry(format!("{}: {error}", path.display()))
        };
        let file = Kubeconfig::read_from(path).map_err(|error| problem(&error))?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(|error| problem(&error))?;
        config.connect_timeout = Some(CONNECT_WITHIN);
        config.read_timeout = Some(ANSWER_WITHIN);
        // A budget's 429 is an answer, and the kit has retries and deadlines of its own.
        config.default_retry = false;
        let client = Client::try_from(config).map_err(|error| problem(&error))?;
        clients.insert(path.to_owned(), client.clone());
        Ok(client)
    }
}

impl std::fmt::Debug for NodeReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clusters = self.kubeconfigs.keys();
        f.debug_struct("NodeReady").field("clusters", &clusters).finish_non_exhaustive()
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn later(error: kube::Error) -> CloudError {
    CloudError::Retry(error.to_string())
}

/// Its `spec.providerID`.
#[must_use]
pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

/// Whether its Ready condition is True.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{NodeCondition, NodeSpec, NodeStatus};

    use super::*;

    fn node(status: &str) -> Node {
        let condition =
            NodeCondition { type_: "Ready".into(), status: status.into(), ..Default::default() };
        Node {
            spec: Some(NodeSpec { provider_id: Some("p://1".into()), ..Default::default() }),
            status: Some(NodeStatus { conditions: Some(vec![condition]), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn only_true_is_ready() {
        assert!(is_ready(&node("True")));
        assert!(!is_ready(&node("False")) && !is_ready(&node("Unknown")));
        assert!(!is_ready(&Node::default()));
        assert_eq!(provider_id(&node("True")), Some("p://1"));
        assert_eq!(provider_id(&Node::default()), None);
    }

    #[test]
    fn the_default_takes_the_clusters_that_are_not_named() {
        let named = BTreeMap::from([("a".to_owned(), PathBuf::from("/a"))]);
        let nodes = NodeReady::new(named);
        assert_eq!(nodes.kubeconfig("b"), None);
        let nodes = nodes.with_default(Path::new("/other"));
        assert_eq!(nodes.kubeconfig("a"), Some(Path::new("/a")));
        assert_eq!(nodes.kubeconfig("b"), Some(Path::new("/other")));
    }

    #[tokio::test]
    async fn an_unknown_cluster_is_for_good() {
        let nodes = NodeReady::new(BTreeMap::new());
        let error = nodes.check("c-1", &NodeKey::Name("n".into())).await.unwrap_err();
        assert!(matches!(error, CloudError::Fatal(_)), "{error}");
    }
}
