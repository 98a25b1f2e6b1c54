//! A cluster with everything real: a simulated cloud behind a shard, and both processes inside.

use bigfleet_crds::{CapacityRequest, UpcomingNode};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::eventually,
};
use bigfleet_net::{grpc, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    InspectNeedsRequest, NeedView, inspect_needs_response::Frame,
    shard_read_client::ShardReadClient,
};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::{Api, ResourceExt, api::ListParams};

/// The label by which rows keep to machines of their own.
pub(crate) const POOL: &str = "example.com/pool";

/// Machines of four processors and 16 GiB, in two zones of two racks each.
const CLOUD: &[&str] = &[
    "--region={name: r, zones: [{name: zone-a, racks: 2}, {name: zone-b, racks: 2}]}",
    "--tier={name: plain, type: m4, capacity: ON_DEMAND, count: 40, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}, \
     labels: {example.com/pool: plain, example.com/generation: '5'}}",
    "--tier={name: ring, type: m4, capacity: ON_DEMAND, count: 12, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}, labels: {example.com/pool: ring}}",
    "--tier={name: batch, type: m4, capacity: ON_DEMAND, count: 1, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}, labels: {example.com/pool: batch}}",
    "--latency={create: {uniform: [200ms, 1s]}, configure: {uniform: [200ms, 1s]}, \
     drain: 200ms, delete: 200ms}",
    "--interruption-factor=0",
];

/// What the cloud comes to offer beside that.
pub(crate) const NOVELTY: &str = "--tier={name: novelty, type: g9, capacity: ON_DEMAND, count: 1, \
     price: 2, resources: {cpu: 4, memory: 16Gi}}";

pub(crate) struct Site {
    pub(crate) operator: Part,
    pub(crate) pod_controller: Part,
    provider: Part,
    _shard: Part,
    pub(crate) fleet: Fleet,
    pub(crate) cluster: Cluster,
}

impl Site {
    /// Everything up, in the order of an installation; none where it must be skipped.
    pub(crate) async fn start_or_skip(operator: &[&str]) -> Option<Self> {
        let cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let fleet = Fleet::new();
        let mut provider = fleet.provider(CLOUD).await;
        provider.until_ready().await;
        let mut shard = fleet.shard(&[]).await;
        shard.until_ready().await;
        let pod_controller = start_pod_controller(&fleet, &cluster).await;
        let operator = start_operator(&fleet, &cluster, operator).await;
        Some(Self { operator, pod_controller, provider, _shard: shard, fleet, cluster })
    }

    /// Stops the operator in order and starts it anew.
    pub(crate) async fn restart_operator(&mut self, more: &[&str]) {
        stop(&mut self.operator).await;
        self.operator = start_operator(&self.fleet, &self.cluster, more).await;
    }

    /// Scales the pod controller to none.
    pub(crate) async fn stop_pod_controller(&mut self) {
        stop(&mut self.pod_controller).await;
    }

    pub(crate) async fn start_pod_controller(&mut self) {
        self.pod_controller = start_pod_controller(&self.fleet, &self.cluster).await;
    }

    /// The cloud offers more.
    pub(crate) async fn extend_cloud(&mut self, tier: &str) {
        stop(&mut self.provider).await;
        self.provider = self.fleet.provider(&[CLOUD, &[tier]].concat()).await;
        self.provider.until_ready().await;
    }

    /// What the shard says of every need.
    pub(crate) async fn needs(&self) -> Vec<NeedView> {
        let channel =
            grpc::connect(self.fleet.shard_addr(), &Security::Plaintext, Rule::any_shard());
        let mut client = ShardReadClient::new(channel.await.unwrap());
        let answer = client.inspect_needs(InspectNeedsRequest::default()).await;
        let mut frames = answer.unwrap().into_inner();
        let mut needs = Vec::new();
        while let Some(frame) = frames.message().await.unwrap() {
            if let Some(Frame::Need(need)) = frame.frame {
                needs.push(need);
            }
        }
        needs
    }

    /// The needs with a requirement of this key and value.
    pub(crate) async fn needs_of(&self, key: &str, value: &str) -> Vec<NeedView> {
        let mut needs = self.needs().await;
        needs.retain(|view| {
            let mut requirements = view.need.iter().flat_map(|need| &need.requirements);
            requirements.any(|one| one.key == key && one.values == [value])
        });
        needs
    }

    pub(crate) async fn requests(&self, namespace: &str) -> Vec<CapacityRequest> {
        let api = Api::<CapacityRequest>::namespaced(self.cluster.client(), namespace);
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Nodes of a pool.
    pub(crate) async fn pool(&self, name: &str) -> Vec<Node> {
        let mut nodes = self.cluster.nodes().await;
        nodes.retain(|node| node.labels().get(POOL).is_some_and(|pool| pool == name));
        nodes
    }

    /// The nodes on which pods of a workload are, once for each pod.
    pub(crate) async fn nodes_under(&self, namespace: &str, app: &str) -> Vec<Node> {
        let nodes = self.cluster.nodes().await;
        let pods = self.cluster.pods(namespace, app).await;
        let names = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
        names
            .filter_map(|name| nodes.iter().find(|node| node.name_any() == name).cloned())
            .collect()
    }

    /// Waits for an event of this reason on a pod of this namespace.
    pub(crate) async fn until_event(&self, namespace: &str, reason: &str) {
        eventually(&format!("event {reason} in {namespace}"), || async {
            let api = Api::<Event>::namespaced(self.cluster.client(), namespace);
            let events = api.list(&ListParams::default()).await.unwrap().items;
            let wanted = |event: &Event| {
                event.reason.as_deref() == Some(reason)
                    && event.involved_object.kind.as_deref() == Some("Pod")
            };
            events.iter().any(wanted)
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

async fn start_operator(fleet: &Fleet, cluster: &Cluster, more: &[&str]) -> Part {
    let config = cluster.operator_kubeconfig(None);
    let mut operator = fleet.operator("operator-0", &config, more).await;
    operator.until_ready().await;
    operator
}

async fn start_pod_controller(fleet: &Fleet, cluster: &Cluster) -> Part {
    let config = cluster.pod_controller_kubeconfig(None);
    let mut pod_controller = fleet.pod_controller("upc-0", &config, &[]).await;
    pod_controller.until_ready().await;
    pod_controller
}

/// As Kubernetes ends a pod.
pub(crate) async fn stop(part: &mut Part) {
    part.process().signal("TERM").await;
    assert!(part.process().ended().await.success(), "an orderly end");
}
