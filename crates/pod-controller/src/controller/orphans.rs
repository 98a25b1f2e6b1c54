//! Requests whose pod is gone. The owner reference collects them where the collector works;
//! what it leaves behind would be demand that nobody has.

use std::{collections::HashSet, sync::Arc};

use bigfleet_in_cluster::{Lane, ObjectKey, store::State};
use k8s_openapi::api::core::v1::Pod as WholePod;
use kube::Api;

use super::Shared;
use crate::{existing::Existing, metrics::Outcome};

impl Shared {
    /// Deletes those that the server, too, knows no pod for.
    pub(super) async fn delete_orphans(&self) {
        if self.world.pods.state() != State::Synced || !self.world.requests_served() {
            return;
        }
        for (key, request) in self.orphans() {
            match self.is_orphan(&key, &request).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    tracing::debug!(%key, %error, "orphan left for the next resync");
                    continue;
                }
            }
            let namespace = key.namespace.as_deref().unwrap_or_default();
            match self.delete(namespace, &request).await {
                Ok(()) => {
                    tracing::info!(%key, "deleted: its pod is gone");
                    self.metrics.count(Outcome::Deleted);
                }
                Err(error) => tracing::debug!(%key, %error, "orphan left for the next resync"),
            }
        }
    }

    /// Requests whose pod the cache does not know.
    fn orphans(&self) -> Vec<(ObjectKey, Arc<Existing>)> {
        let alive: HashSet<Arc<str>> =
            self.world.pods.with(|pods| pods.values().map(|pod| pod.uid.clone()).collect());
        self.world.requests.with(|requests| {
            let lost = requests.iter().filter(|(_, request)| {
                let uid = request.pod_uid.as_ref();
                !request.terminating && uid.is_some_and(|uid| !alive.contains(uid))
            });
            lost.map(|(key, request)| (key.clone(), request.clone())).collect()
        })
    }

    /// The cache of pods may lag behind that of requests, so the server has the last word.
    async fn is_orphan(&self, key: &ObjectKey, request: &Existing) -> Result<bool, kube::Error> {
        let (Some(namespace), Some(pod)) = (&key.namespace, &request.pod_name) else {
            return Ok(true);
        };
        let pod = self
            .paced
            .call(Lane::NodeState, |client| async move {
                Api::<WholePod>::namespaced(client, namespace).get_opt(pod).await
            })
            .await?;
        let uid = pod.and_then(|pod| pod.metadata.uid);
        Ok(uid.as_deref() != request.pod_uid.as_deref())
    }
}
