//! A cluster, a shard with a simulated cloud, and both processes inside the cluster.

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{EIGHT_MACHINES, Fleet, Part},
    wait::eventually,
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

pub(crate) struct Scene {
    pub(crate) operator: Part,
    pub(crate) pod_controller: Part,
    pub(crate) shard: Part,
    pub(crate) provider: Part,
    pub(crate) fleet: Fleet,
    pub(crate) cluster: Cluster,
}

impl Scene {
    pub(crate) async fn start_or_skip() -> Option<Self> {
        let cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let fleet = Fleet::new();
        let mut provider = fleet.provider(EIGHT_MACHINES).await;
        provider.until_ready().await;
        let mut shard = fleet.shard(&[]).await;
        shard.until_ready().await;
        let config = cluster.pod_controller_kubeconfig(None);
        let mut pod_controller = fleet.pod_controller("upc-0", &config, &[]).await;
        pod_controller.until_ready().await;
        let config = cluster.operator_kubeconfig(None);
        let mut operator = fleet.operator("operator-0", &config, &[]).await;
        operator.until_ready().await;
        Some(Self { operator, pod_controller, shard, provider, fleet, cluster })
    }

    pub(crate) async fn reconnects(&self) -> f64 {
        let name = "bigfleet_operator_session_reconnects_total";
        self.operator.metric(name).await.unwrap_or_default()
    }

    /// Waits for a session after that many.
    pub(crate) async fn until_session_after(&self, reconnects: f64) {
        eventually("the operator has a new session", || async {
            let connected = self.operator.metric("bigfleet_operator_session_connected").await;
            self.reconnects().await > reconnects && connected == Some(1.0)
        })
        .await;
    }

    /// UIDs of nodes and of the objects of their machines.
    pub(crate) async fn objects(&self) -> Vec<String> {
        let mut uids: Vec<_> = self.cluster.nodes().await.iter().filter_map(Node::uid).collect();
        uids.extend(self.cluster.all::<UpcomingNode>().await.iter().filter_map(UpcomingNode::uid));
        uids
    }

    pub(crate) async fn phase(&self) -> Option<UpcomingNodePhase> {
        let object = self.cluster.all::<UpcomingNode>().await.into_iter().next();
        object?.status.map(|status| status.phase)
    }
}
