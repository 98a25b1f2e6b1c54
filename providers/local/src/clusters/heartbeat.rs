//! What a kubelet does for a node's life, for Nodes that have none.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bigfleet_provider_kit::{
    CloudError, Handle,
    node_ready::{NodeReady, provider_id as provider_id_of},
};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::{
    kube::{LEASES, later},
    node,
};
use crate::names::{node_name, provider_id};

/// Between two of them.
const EVERY: Duration = Duration::from_secs(10);

/// One task a Node; they end with this.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    tasks: Mutex<BTreeMap<String, AbortOnDropHandle<()>>>,
    handle: Arc<OnceLock<Handle>>,
}

impl Heartbeats {
    /// Whom to tell of Nodes that vanish.
    pub(super) fn attach(&self, handle: Handle) {
        // Attached once; a second handle would be of another kit.
        let _ = self.handle.set(handle);
    }

    /// Posts for this machine's Node at once and from now on.
    pub(super) fn start(&self, nodes: NodeReady, id: &str, cluster: &str) {
        let heart = Heart {
            nodes,
            provider_id: provider_id(id),
            name: node_name(id),
            cluster: cluster.to_owned(),
        };
        let handle = self.handle.clone();
        let task = tokio::spawn(async move {
            heart.beat_on().await;
            // A sweep finds out that the host is lost; the sooner, the better.
            if let Some(handle) = handle.get() {
                handle.sweep();
            }
        });
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.insert(id.to_owned(), AbortOnDropHandle::new(task));
    }

    /// No more of this machine.
    pub(super) fn stop(&self, id: &str) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

struct Heart {
    nodes: NodeReady,
    provider_id: String,
    name: String,
    cluster: String,
}

impl Heart {
    /// Until the Node is gone. It is never made again: a Node deleted by hand is a host
    /// lost.
    async fn beat_on(&self) {
        loop {
            match self.beat().await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(node = self.name, cluster = self.cluster, "the node is gone");
                    return;
                }
                Err(problem) => {
                    let (node, cluster) = (&self.name, &self.cluster);
                    tracing::warn!(node, cluster, %problem, "cannot post status");
                }
            }
            sleep(EVERY).await;
        }
    }

    /// Whether there is still a Node of ours.
    async fn beat(&self) -> Result<bool, CloudError> {
        let client = self.nodes.client(&self.cluster).await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let found = nodes.get_opt(&self.name).await.map_err(|error| later(&error))?;
        let ours = |node: &Node| provider_id_of(node) == Some(self.provider_id.as_str());
        let Some(found) = found.filter(ours) else { return Ok(false) };
        let now = Timestamp::now();
        // Strategic: conditions of others stay. With the uid: never on another Node.
        let patch = Patch::Strategic(json!({
            "metadata": {"uid": found.metadata.uid},
            "status": {"conditions": node::conditions(&found, now)},
        }));
        match nodes.patch_status(&self.name, &PatchParams::default(), &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(false),
            Err(error) => return Err(later(&error)),
        }
        renew(client, &node::lease(&found, now)).await?;
        Ok(true)
    }
}

async fn renew(client: Client, lease: &Lease) -> Result<(), CloudError> {
    let leases: Api<Lease> = Api::namespaced(client, LEASES);
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    match leases.patch(name, &PatchParams::default(), &Patch::Merge(lease)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            leases.create(&PostParams::default(), lease).await.map(drop)
        }
        result => result.map(drop),
    }
    .map_err(|error| later(&error))
}
