//! PodGroups of `scheduling.k8s.io`, where the cluster serves them (§8.2). Elsewhere they are
//! looked for now and then, and never watched.

use std::{sync::Arc, time::Duration};

use bigfleet_in_cluster::{Error, Store, refusal, store::Selection};
use bigfleet_net::shutdown::Shutdown;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use tokio::sync::watch;

use super::world::Group;

const GROUP: &str = "scheduling.k8s.io";
const PLURAL: &str = "podgroups";

/// Between two looks while the API server does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// The groups, and whether it is known that there are any. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Those with a topology constraint.
    pub(crate) store: Store<Group>,
    served: Arc<watch::Sender<Option<bool>>>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { store: Store::new(PLURAL), served: Arc::new(watch::Sender::new(None)) }
    }
}

impl Groups {
    /// Looks for the API, and follows it where it is served.
    pub(crate) async fn run(&self, client: &Client, again: Duration, shutdown: &Shutdown) {
        let resource = loop {
            let wait = match served(client).await {
                Ok(Some(resource)) => break resource,
                Ok(None) => {
                    self.served.send_replace(Some(false));
                    again
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot ask which APIs are served");
                    RETRY
                }
            };
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(wait) => {}
            }
        };
        tracing::info!(version = resource.version, "PodGroups are served");
        self.served.send_replace(Some(true));
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        self.store.run(api, Selection::all(), group, shutdown.clone()).await;
    }

    /// Returns when it is known that there are none, or all are known.
    pub(crate) async fn wait_synced(&self, cap: Duration) -> Result<(), Error> {
        let mut served = self.served.subscribe();
        let known = tokio::time::timeout(cap, served.wait_for(Option::is_some)).await;
        match known {
            Ok(Ok(served)) if *served == Some(false) => Ok(()),
            // Nobody knows yet, and the store has nothing either: it says so.
            Ok(Err(_)) | Err(_) => self.store.wait_synced(Duration::ZERO).await,
            Ok(Ok(served)) => {
                drop(served);
                self.store.wait_synced(cap).await
            }
        }
    }
}

/// The version of PodGroups that is served, the preferred one first.
async fn served(client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    let groups = match client.list_api_groups().await {
        Ok(list) => list.groups,
        // A server that does not say what it serves.
        Err(error) if refusal::code(&error) == Some(404) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(group) = groups.into_iter().find(|group| group.name == GROUP) else {
        return Ok(None);
    };
    let preferred = group.preferred_version.into_iter();
    for version in preferred.chain(group.versions) {
        let resources = client.list_api_group_resources(&version.group_version).await?.resources;
        if resources.iter().any(|resource| resource.name == PLURAL) {
            let kind = GroupVersionKind::gvk(GROUP, &version.version, "PodGroup");
            return Ok(Some(ApiResource::from_gvk_with_plural(&kind, PLURAL)));
        }
    }
    Ok(None)
}

fn group(whole: &DynamicObject) -> Option<Group> {
    let key = whole.data.pointer("/spec/schedulingConstraints/topology/0/key")?.as_str()?;
    (!key.is_empty()).then(|| Group { topology: key.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_groups_with_a_topology_are_kept() {
        let read = |spec: serde_json::Value| {
            let whole = json!({
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "apps"},
                "spec": spec,
            });
            group(&serde_json::from_value(whole).unwrap())
        };
        let rack = json!({"schedulingConstraints": {"topology": [{"key": "rack"}]}});
        assert_eq!(read(rack), Some(Group { topology: "rack".into() }));
        assert_eq!(read(json!({"schedulingPolicy": {"basic": {}}})), None);
        assert_eq!(read(json!({"schedulingConstraints": {"topology": []}})), None);
    }
}
