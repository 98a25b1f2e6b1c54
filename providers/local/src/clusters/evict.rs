//! An orderly end: cordon, evict, wait.

use std::time::{Duration, SystemTime};

use bigfleet_provider_kit::{CloudError, node_ready::provider_id as provider_id_of};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::kube::{KubeClusters, gone, later};
use crate::{
    flags::Kubelet,
    names::{node_name, provider_id},
};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

impl KubeClusters {
    /// See [`Clusters::evict`](super::Clusters::evict).
    pub(super) async fn evict(
        &self,
        id: &str,
        cluster: &str,
        until: SystemTime,
    ) -> Result<(), CloudError> {
        let client = self.nodes.client(cluster).await?;
        let name = node_name(id);
        if !cordon(&client, &name, &provider_id(id)).await? {
            return Ok(());
        }
        loop {
            let leaving: Vec<_> =
                pods(&client, &name).await?.into_iter().filter(must_leave).collect();
            let left = until.duration_since(SystemTime::now()).unwrap_or_default();
            if leaving.is_empty() || left.is_zero() {
                return Ok(());
            }
            // A server that is slow to answer does not lengthen the grace.
            match timeout(left, self.ask_all(&client, &leaving)).await {
                Ok(asked) => asked?,
                Err(_) => return Ok(()),
            }
            sleep(LOOK.min(left)).await;
        }
    }

    async fn ask_all(&self, client: &Client, leaving: &[Pod]) -> Result<(), CloudError> {
        for pod in leaving {
            if pod.metadata.deletion_timestamp.is_none() {
                ask_to_leave(client, pod).await;
            } else if self.kubelet == Kubelet::Own {
                // Nothing runs, so it has ended; a kubelet would say so.
                remove(client, pod).await?;
            }
        }
        Ok(())
    }
}

/// Whether there is a Node of ours to cordon.
async fn cordon(client: &Client, name: &str, provider_id: &str) -> Result<bool, CloudError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = nodes.get_opt(name).await.map_err(|error| later(&error))?;
    let Some(node) = found.filter(|node| provider_id_of(node) == Some(provider_id)) else {
        return Ok(false);
    };
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        // The operator's, or a human's: it stays as it is.
        return Ok(true);
    }
    let patch = json!({"metadata": {"uid": node.metadata.uid}, "spec": {"unschedulable": true}});
    let cordoned = nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    gone(cordoned).map(|node| node.is_some())
}

/// All Pods bound to a Node.
pub(super) async fn pods(client: &Client, node: &str) -> Result<Vec<Pod>, CloudError> {
    let pods: Api<Pod> = Api::all(client.clone());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    Ok(pods.list(&on_node).await.map_err(|error| later(&error))?.items)
}

/// Not those that have ended, and not those that are part of a node: their DaemonSet
/// would bring them back at once, and mirror Pods are only shown by the API server.
fn must_leave(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    let annotations = pod.metadata.annotations.as_ref();
    let mirror = annotations.is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
    let owners = pod.metadata.owner_references.iter().flatten();
    let daemon =
        owners.into_iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    !(ended || mirror || daemon)
}

/// A refusal is a disruption budget's word, or passes: it is asked again, until the
/// grace is over.
async fn ask_to_leave(client: &Client, pod: &Pod) {
    let (pods, name) = api(client, pod);
    let options = DeleteParams { preconditions: same(pod), ..DeleteParams::default() };
    let eviction = EvictParams { delete_options: Some(options), ..EvictParams::default() };
    if let Err(error) = pods.evict(name, &eviction).await {
        let problem = later(&error);
        tracing::debug!(pod = name, %problem, "not evicted yet");
    }
}

/// Without waiting for anybody.
pub(super) async fn remove(client: &Client, pod: &Pod) -> Result<(), CloudError> {
    let (pods, name) = api(client, pod);
    let options = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: same(pod),
        ..DeleteParams::default()
    };
    gone(pods.delete(name, &options).await).map(drop)
}

fn api<'a>(client: &Client, pod: &'a Pod) -> (Api<Pod>, &'a str) {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    (Api::namespaced(client.clone(), namespace), name)
}

/// A StatefulSet gives its next Pod the same name.
fn same(pod: &Pod) -> Option<Preconditions> {
    Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_node_stays_until_its_end() {
        let pod = |value| serde_json::from_value::<Pod>(value).unwrap();
        let owner = |kind: &str, controller: bool| {
            let reference = json!({"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u",
                "controller": controller});
            json!({"metadata": {"ownerReferences": [reference]}})
        };
        for (value, leaves) in [
            (json!({}), true),
            (json!({"status": {"phase": "Running"}}), true),
            (json!({"status": {"phase": "Pending"}}), true),
            (json!({"status": {"phase": "Succeeded"}}), false),
            (json!({"status": {"phase": "Failed"}}), false),
            (json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}), false),
            (owner("DaemonSet", true), false),
            (owner("DaemonSet", false), true),
            (owner("ReplicaSet", true), true),
        ] {
            assert_eq!(must_leave(&pod(value.clone())), leaves, "{value}");
        }
    }
}
