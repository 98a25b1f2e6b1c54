//! What is known of the cluster: watch caches, each object stripped to what the rules read.

use std::{sync::Arc, time::Duration};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{
    Error, ObjectKey, Store,
    store::{Selection, State},
};
use bigfleet_net::shutdown::Shutdown;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod as WholePod};
use kube::{Api, Client, ResourceExt};

use super::groups;
use crate::{
    existing::Existing, name::request_name, pod::Pod, requirements::Term, selector::NodeSelector,
};

/// A claim that is bound to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The volume's name.
    pub volume: Arc<str>,
}

/// A volume that not every node can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The terms of its node affinity; one must hold.
    pub terms: Box<[Term]>,
    /// The claim that it is bound to.
    pub claim: Option<ObjectKey>,
}

/// A PodGroup with a topology constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The constraint's key.
    pub topology: Box<str>,
}

/// Which parts of the cluster matter.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Which nodes are none of ours.
    pub unmanaged_nodes: NodeSelector,
    /// Whether volumes bind pods to places.
    pub volume_topology: bool,
    /// Between two looks for PodGroups where they are not served.
    pub resync: Duration,
}

/// The caches. Clones share one state.
#[derive(Clone, Debug)]
pub struct World {
    /// Pods.
    pub pods: Store<Pod>,
    /// CapacityRequests.
    pub requests: Store<Existing>,
    /// Nodes that are none of ours; nothing but their names matters.
    pub unmanaged: Store<()>,
    /// Bound claims.
    pub claims: Store<Claim>,
    /// Volumes with a place.
    pub volumes: Store<Volume>,
    /// PodGroups with a topology.
    pub(crate) groups: groups::Groups,
    scope: Scope,
}

impl World {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        Self {
            pods: Store::new("pods"),
            requests: Store::new("capacityrequests"),
            unmanaged: Store::new("nodes"),
            claims: Store::new("persistentvolumeclaims"),
            volumes: Store::new("persistentvolumes"),
            groups: groups::Groups::default(),
            scope,
        }
    }

    /// Follows the cluster until the stop is asked for.
    pub async fn run(&self, client: &Client, shutdown: &Shutdown) {
        let all = Selection::all;
        let nodes = async {
            let selector = &self.scope.unmanaged_nodes;
            let Some(labels) = selector.text() else { return };
            let labels = Selection { labels: Some(labels), ..Selection::default() };
            let project = |node: &Node| selector.matches(node.labels()).then_some(());
            let api = Api::all(client.clone());
            self.unmanaged.run(api, labels, project, shutdown.clone()).await;
        };
        let storage = async {
            if !self.scope.volume_topology {
                return;
            }
            let (claims, volumes) = (Api::all(client.clone()), Api::all(client.clone()));
            tokio::join!(
                self.claims.run(claims, all(), claim, shutdown.clone()),
                self.volumes.run(volumes, all(), volume, shutdown.clone()),
            );
        };
        let pods = Api::all(client.clone());
        let requests = Api::<CapacityRequest>::all(client.clone());
        tokio::join!(
            self.pods.run(pods, all(), |pod: &WholePod| Some(Pod::of(pod)), shutdown.clone()),
            self.requests.run(requests, all(), Existing::of, shutdown.clone()),
            nodes,
            storage,
            self.groups.run(client, self.scope.resync, shutdown),
        );
    }

    /// Returns when everything is known once.
    pub async fn wait_synced(&self, cap: Duration) -> Result<(), Error> {
        let nodes = async {
            match self.scope.unmanaged_nodes.text() {
                Some(_) => self.unmanaged.wait_synced(cap).await,
                None => Ok(()),
            }
        };
        let storage = async {
            if self.scope.volume_topology {
                tokio::try_join!(self.claims.wait_synced(cap), self.volumes.wait_synced(cap))?;
            }
            Ok(())
        };
        tokio::try_join!(
            self.pods.wait_synced(cap),
            self.requests.wait_synced(cap),
            nodes,
            storage,
            self.groups.wait_synced(cap),
        )?;
        Ok(())
    }

    /// Whether the CRD is there.
    #[must_use]
    pub fn requests_served(&self) -> bool {
        self.requests.state() == State::Synced
    }

    /// Returns when the CRD is there and all requests are known.
    pub async fn until_requests_served(&self) {
        self.until_requests(State::Synced).await;
    }

    /// Returns when the CRD is gone.
    pub async fn until_requests_gone(&self) {
        self.until_requests(State::Missing).await;
    }

    async fn until_requests(&self, wanted: State) {
        let mut state = self.requests.state();
        while state != wanted {
            state = self.requests.wait_other_than(state).await;
        }
    }

    /// The request that bears the right name for this pod.
    #[must_use]
    pub fn request_of(&self, pod: &Pod) -> Option<Arc<Existing>> {
        self.requests.find(Some(&pod.namespace), &request_name(&pod.name, &pod.uid))
    }

    /// Whether the pod is bound to a node that is none of ours.
    #[must_use]
    pub fn is_unmanaged(&self, pod: &Pod) -> bool {
        pod.node.as_deref().is_some_and(|node| self.unmanaged.find(None, node).is_some())
    }

    /// The volumes with a place that the pod is bound to.
    #[must_use]
    pub fn volumes_of(&self, pod: &Pod) -> Vec<Arc<Volume>> {
        let claims = pod.claims.iter();
        let claims = claims.filter_map(|claim| self.claims.find(Some(&pod.namespace), claim));
        claims.filter_map(|claim| self.volumes.find(None, &claim.volume)).collect()
    }
}

fn claim(whole: &PersistentVolumeClaim) -> Option<Claim> {
    let bound = whole.status.as_ref()?.phase.as_deref() == Some("Bound");
    let volume = whole.spec.as_ref()?.volume_name.as_deref()?;
    (bound && !volume.is_empty()).then(|| Claim { volume: volume.into() })
}

fn volume(whole: &PersistentVolume) -> Option<Volume> {
    let spec = whole.spec.as_ref()?;
    let terms = &spec.node_affinity.as_ref()?.required.as_ref()?.node_selector_terms;
    let claim = spec.claim_ref.as_ref().and_then(|claim| {
        Some(ObjectKey::namespaced(claim.namespace.as_deref()?, claim.name.as_deref()?))
    });
    Some(Volume { terms: terms.iter().map(Term::of).collect(), claim })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_bound_claims_and_placed_volumes_are_kept() {
        let read = |phase: &str| {
            claim(
                &serde_json::from_value(json!({
                    "spec": {"volumeName": "v"}, "status": {"phase": phase},
                }))
                .unwrap(),
            )
        };
        assert_eq!(read("Bound"), Some(Claim { volume: "v".into() }));
        assert_eq!(read("Pending"), None);
        let placed = json!({"spec": {
            "claimRef": {"namespace": "apps", "name": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a"]},
            ]}]}},
        }});
        let placed = volume(&serde_json::from_value(placed).unwrap()).unwrap();
        assert_eq!(placed.claim, Some(ObjectKey::namespaced("apps", "c")));
        assert_eq!(placed.terms.len(), 1);
        assert_eq!(volume(&serde_json::from_value(json!({"spec": {}})).unwrap()), None);
    }
}
