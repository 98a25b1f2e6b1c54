//! Nodes in real API servers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use bigfleet_provider_kit::{
    CloudError, Handle, Machine, Op, Ready,
    node_ready::{NodeReady, is_ready, provider_id as provider_id_of},
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use tokio::task::JoinSet;

use super::{evict, heartbeat::Heartbeats, node, sighting::Sighting};
use crate::{
    flags::Kubelet,
    names::{node_name, provider_id},
};

/// Where the Leases of nodes are.
pub(super) const LEASES: &str = "kube-node-lease";

/// All clusters with an API server.
#[derive(Debug)]
pub(crate) struct KubeClusters {
    pub(super) nodes: NodeReady,
    /// Every kubeconfig, with the cluster id of those that are named.
    servers: BTreeMap<PathBuf, Option<String>>,
    pub(super) kubelet: Kubelet,
    heartbeats: Heartbeats,
}

impl KubeClusters {
    pub(super) fn new(
        named: BTreeMap<String, PathBuf>,
        default: Option<&Path>,
        kubelet: Kubelet,
    ) -> Self {
        let mut servers: BTreeMap<_, _> =
            default.map(|path| (path.to_owned(), None)).into_iter().collect();
        servers.extend(named.iter().map(|(id, path)| (path.clone(), Some(id.clone()))));
        let nodes = NodeReady::new(named);
        let nodes = match default {
            Some(path) => nodes.with_default(path),
            None => nodes,
        };
        Self { nodes, servers, kubelet, heartbeats: Heartbeats::default() }
    }

    pub(super) fn attach(&self, handle: Handle) {
        self.heartbeats.attach(handle);
    }

    /// Where that is ours to do.
    pub(super) fn keep_ready(&self, id: &str, cluster: &str) {
        if self.kubelet == Kubelet::Own {
            self.heartbeats.start(self.nodes.clone(), id, cluster);
        }
    }

    /// All servers at once: one that is slow to answer must not use up the time of a sweep.
    pub(super) async fn sight(self: &Arc<Self>) -> Sighting {
        let mut looks = JoinSet::new();
        for (path, id) in self.servers.clone() {
            let this = self.clone();
            looks.spawn(async move {
                let seen = this.list(&path, id.as_deref()).await;
                (path, seen)
            });
        }
        let mut sighting = Sighting { nodes: Some(self.nodes.clone()), ..Sighting::default() };
        while let Some(looked) = looks.join_next().await {
            // A server without an entry counts as one that did not answer.
            let Ok((path, seen)) = looked else { continue };
            if let Err(problem) = &seen {
                let kubeconfig = path.display();
                tracing::warn!(%kubeconfig, %problem, "cannot list nodes: none counts as lost");
            }
            sighting.servers.insert(path, seen.ok());
        }
        sighting
    }

    async fn list(
        &self,
        path: &Path,
        id: Option<&str>,
    ) -> Result<BTreeMap<String, Option<String>>, CloudError> {
        let nodes: Api<Node> = Api::all(self.nodes.client_of(path).await?);
        let listed = nodes.list(&ListParams::default()).await.map_err(|error| later(&error))?;
        let sight = |node: &Node| {
            let made_for = node::cluster(node).or(id).map(str::to_owned);
            Some((provider_id_of(node)?.to_owned(), made_for))
        };
        Ok(listed.items.iter().filter_map(sight).collect())
    }

    pub(super) async fn check(&self, cluster: &str) -> Result<(), CloudError> {
        self.nodes.client(cluster).await.map(drop)
    }

    pub(super) async fn join(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
    ) -> Result<(), CloudError> {
        let (id, operation) = (machine.id.as_str(), op.id.as_str());
        let nodes: Api<Node> = Api::all(self.nodes.client(cluster).await?);
        let wanted = node::node(machine, cluster, operation, self.kubelet);
        match nodes.create(&PostParams::default(), &wanted).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let name = node_name(id);
                let found = nodes.get_opt(&name).await.map_err(|error| later(&error))?;
                let again = || CloudError::Retry(format!("node {name:?} is about to go"));
                let found = found.ok_or_else(again)?;
                if provider_id_of(&found) != Some(&*provider_id(id)) {
                    return Err(CloudError::Fatal(format!(
                        "cluster {cluster:?} has a node {name:?} that is not this provider's; \
                         delete it, or give this provider another name"
                    )));
                }
                if node::operation(&found) != Some(operation) {
                    // Ready must be seen after this operation began.
                    delete(&nodes, &found).await?;
                    return Err(again());
                }
            }
            Err(kube::Error::Api(status)) if status.is_invalid() => {
                return Err(CloudError::Fatal(status.message.clone()));
            }
            Err(error) => return Err(later(&error)),
        }
        self.keep_ready(id, cluster);
        Ok(())
    }

    pub(super) async fn ready(
        &self,
        op: &Op,
        id: &str,
        cluster: &str,
    ) -> Result<Ready, CloudError> {
        let nodes: Api<Node> = Api::all(self.nodes.client(cluster).await?);
        let name = node_name(id);
        let found = nodes.get_opt(&name).await.map_err(|error| later(&error))?;
        let ours = |node: &Node| {
            provider_id_of(node) == Some(&*provider_id(id))
                && node::operation(node) == Some(op.id.as_str())
        };
        match found.filter(ours) {
            None => Err(CloudError::Gone(format!("node {name:?} was deleted"))),
            Some(node) if is_ready(&node) => Ok(Ready::Yes),
            Some(_) => Ok(Ready::NotYet),
        }
    }

    /// See [`Clusters::leave`](super::Clusters::leave).
    pub(super) async fn leave(&self, id: &str, cluster: &str) -> Result<(), CloudError> {
        let client = self.nodes.client(cluster).await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let name = node_name(id);
        self.heartbeats.stop(id);
        let found = nodes.get_opt(&name).await.map_err(|error| later(&error))?;
        if let Some(node) = &found {
            if provider_id_of(node) != Some(&*provider_id(id)) {
                return Ok(());
            }
            delete(&nodes, node).await?;
        }
        // After the Node, or their controllers would bring them back to it.
        for pod in evict::pods(&client, &name).await? {
            evict::remove(&client, &pod).await?;
        }
        let leases: Api<Lease> = Api::namespaced(client, LEASES);
        gone(leases.delete(&name, &DeleteParams::default()).await).map(drop)
    }
}

/// This very Node, and only when it is gone.
async fn delete(nodes: &Api<Node>, node: &Node) -> Result<(), CloudError> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let uid = node.metadata.uid.clone();
    let same = Preconditions { uid: uid.clone(), resource_version: None };
    let options = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
    gone(nodes.delete(name, &options).await)?;
    let left = nodes.get_opt(name).await.map_err(|error| later(&error))?;
    match left.filter(|left| left.metadata.uid == uid) {
        None => Ok(()),
        Some(node) => {
            let finalizers = node.metadata.finalizers.unwrap_or_default().join(", ");
            Err(CloudError::Retry(format!("node {name:?} is held by its finalizers: {finalizers}")))
        }
    }
}

/// What is not there is as good as deleted; another of the same name is not ours.
pub(super) fn gone<T>(result: Result<T, kube::Error>) -> Result<Option<T>, CloudError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(None),
        Err(error) => Err(later(&error)),
    }
}

/// Nearly everything passes: a server restarts, a right is granted.
pub(super) fn later(error: &kube::Error) -> CloudError {
    CloudError::Retry(match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    })
}
