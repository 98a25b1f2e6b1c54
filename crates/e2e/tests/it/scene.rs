//! A cluster, a shard with a simulated cloud, and both processes inside the cluster.

use std::path::PathBuf;

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, UpcomingNode};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{EIGHT_MACHINES, Fleet, Part},
    wait::eventually,
};

pub(crate) struct Scene {
    pub(crate) operator: Part,
    /// Those that no row disturbs; all end before the cluster that they call.
    _others: [Part; 3],
    _fleet: Fleet,
    pub(crate) cluster: Cluster,
}

impl Scene {
    /// Everything up, in the order of an installation; none where it must be skipped.
    pub(crate) async fn start_or_skip() -> Option<Self> {
        let cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let fleet = Fleet::new();
        let mut provider = fleet.provider(EIGHT_MACHINES).await;
        provider.until_ready().await;
        let mut shard = fleet.shard(&[]).await;
        shard.until_ready().await;
        let (upc, operator) = (cluster.pod_controller_kubeconfig(None), operator_config(&cluster));
        let mut pod_controller = fleet.pod_controller("upc-0", &upc, &[]).await;
        pod_controller.until_ready().await;
        let mut operator = fleet.operator("operator-0", &operator, &[]).await;
        operator.until_ready().await;
        let others = [provider, shard, pod_controller];
        Some(Self { operator, _others: others, _fleet: fleet, cluster })
    }

    pub(crate) async fn requests(&self) -> Vec<CapacityRequest> {
        self.cluster.all().await
    }

    /// Waits for that many CapacityRequests, all acknowledged.
    pub(crate) async fn until_acknowledged(&self, count: usize) {
        let acknowledged = |request: &CapacityRequest| {
            let phase = request.status.as_ref().map(|status| status.phase);
            phase == Some(CapacityRequestPhase::Acknowledged)
        };
        eventually(&format!("{count} acknowledged requests"), || async {
            let requests = self.requests().await;
            requests.len() == count && requests.iter().all(acknowledged)
        })
        .await;
    }

    /// Waits until no machine is this cluster's any more.
    pub(crate) async fn until_empty(&self) {
        eventually("no node and no upcoming node is left", || async {
            self.cluster.nodes().await.is_empty()
                && self.cluster.all::<UpcomingNode>().await.is_empty()
        })
        .await;
    }
}

pub(crate) fn operator_config(cluster: &Cluster) -> PathBuf {
    cluster.operator_kubeconfig(None)
}
