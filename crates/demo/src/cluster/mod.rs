//! One cluster: an API server in memory, a simulated control plane on it, and the real operator
//! and pod controller beside it.

mod control_plane;
mod scheduler;
mod steps;
mod view;
pub(crate) mod workload;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode, capacity_request_crd};
use bigfleet_in_cluster::{Budget, Paced, Store, memory::Server, store::Selection};
use bigfleet_net::{readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_operator::{
    Metrics as OperatorMetrics,
    bootstrap::{Renderer, Settings as RenderSettings},
    dispatch,
    hold::DemandSource,
    operator::{self, Options as OperatorOptions, Running, Setup as OperatorSetup},
    session::Render,
};
use bigfleet_unschedulable_pod_controller::{
    Settings,
    controller::{Options as PodOptions, Scope},
    metrics::Metrics as PodMetrics,
    running::{self, Setup as PodSetup},
};
use bigfleet_wire::v1alpha1::{BootstrapBlobResponse, BootstrapRequest};
use control_plane::{ControlPlane, Seen, Wanted};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};
use view::{MachineView, NodeView, PodView, RequestView};
use workload::Workload;

use crate::Error;

/// Between two looks of the control plane.
const LOOK: Duration = Duration::from_millis(100);
/// Between two roll-ups.
const ROLLUP: Duration = Duration::from_millis(500);
/// How long an operator may take to stop.
const STOP: Duration = Duration::from_secs(1);
/// Where BigFleet's own parts are.
pub(crate) const SYSTEM: &str = "bigfleet-system";

/// A cluster at work.
pub(crate) struct Cluster {
    /// `a`, `b` or `c`.
    pub(crate) id: &'static str,
    /// As BigFleet knows it.
    pub(crate) name: String,
    /// Number of its shard.
    pub(crate) shard: usize,
    shard_addr: String,
    security: Security,
    backend: Backend,
    wanted: Arc<Mutex<Wanted>>,
    caches: Caches,
    stop: Shutdown,
    tasks: Mutex<JoinSet<()>>,
    operator: Mutex<Option<Running>>,
    pod_controller: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Clone)]
struct Caches {
    pods: Store<PodView>,
    nodes: Store<NodeView>,
    machines: Store<MachineView>,
    requests: Store<RequestView>,
}

/// Pods of one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pods {
    pub(crate) wanted: u32,
    pub(crate) running: u32,
    pub(crate) pending: u32,
}

impl Pods {
    /// As many run as should, and no other.
    pub(crate) fn settled(self) -> bool {
        self.running == self.wanted && self.pending == 0
    }
}

/// What a cluster keeps its objects in.
#[derive(Clone)]
pub(crate) struct Backend {
    client: Client,
    /// Whether there is a scheduler beside it.
    scheduled: bool,
}

impl Backend {
    /// A real API server with a scheduler.
    pub(crate) const fn real(client: Client) -> Self {
        Self { client, scheduled: true }
    }

    /// One in memory.
    pub(crate) fn memory(server: &Server) -> Self {
        Self { client: server.client(), scheduled: false }
    }
}

/// An API server in memory with the kinds of BigFleet.
pub(crate) fn server() -> Server {
    let server = Server::new();
    server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    server.serve::<UpcomingNode>();
    server.serve::<AvailableCapacity>();
    server.put(&capacity_request_crd());
    // A deleted pod stays until its kubelet has ended it.
    server.linger(true);
    server
}

/// Blobs of the operator's own renderer, without a template.
struct Blobs(Renderer);

impl Render for Blobs {
    fn render(&self, request: &BootstrapRequest) -> BootstrapBlobResponse {
        self.0.render(request)
    }
}

impl Cluster {
    /// Starts the control plane, and BigFleet's parts in it.
    pub(crate) fn start(
        id: &'static str,
        shard: usize,
        shard_addr: &str,
        security: Security,
        backend: Backend,
    ) -> Result<Self, Error> {
        let caches = Caches {
            pods: Store::new("pods"),
            nodes: Store::new("nodes"),
            machines: Store::new("upcomingnodes"),
            requests: Store::new("capacityrequests"),
        };
        let this = Self {
            id,
            name: format!("cluster-{id}"),
            shard,
            shard_addr: shard_addr.to_owned(),
            security,
            backend,
            wanted: Arc::default(),
            caches,
            stop: Shutdown::new(),
            tasks: Mutex::default(),
            operator: Mutex::default(),
            pod_controller: Mutex::default(),
        };
        this.follow();
        this.start_pod_controller();
        this.start_operator()?;
        Ok(this)
    }

    fn follow(&self) {
        let mut tasks = lock(&self.tasks);
        let client = self.backend.client.clone();
        let Caches { pods, nodes, machines, requests } = self.caches.clone();
        let (api, until) = (Api::<Pod>::all(client.clone()), self.stop.clone());
        tasks.spawn(async move { pods.run(api, Selection::all(), PodView::of, until).await });
        let (api, until) = (Api::<Node>::all(client.clone()), self.stop.clone());
        tasks.spawn(async move { nodes.run(api, Selection::all(), NodeView::of, until).await });
        let (api, until) = (Api::<UpcomingNode>::all(client.clone()), self.stop.clone());
        tasks.spawn(
            async move { machines.run(api, Selection::all(), MachineView::of, until).await },
        );
        let (api, until) = (Api::<CapacityRequest>::all(client.clone()), self.stop.clone());
        tasks.spawn(
            async move { requests.run(api, Selection::all(), RequestView::of, until).await },
        );
        let (caches, wanted, until) = (self.caches.clone(), self.wanted.clone(), self.stop.clone());
        let mut plane = ControlPlane::new(self.backend.scheduled);
        tasks.spawn(async move {
            while !until.is_requested() {
                if caches.synced() {
                    let now = lock(&wanted).clone();
                    let due = plane.look(&caches.seen(), &now);
                    steps::perform(&client, due, &mut plane).await;
                }
                tokio::time::sleep(LOOK).await;
            }
        });
    }

    fn paced(&self) -> Paced {
        Paced::new(self.backend.client.clone(), Budget::new(0, 1))
    }

    /// Starts the operator, unless it runs.
    pub(crate) fn start_operator(&self) -> Result<(), Error> {
        let mut place = lock(&self.operator);
        if place.is_some() {
            return Ok(());
        }
        let metrics = Arc::new(OperatorMetrics::default());
        let settings = RenderSettings {
            cluster_id: self.name.clone(),
            template_file: None,
            ttl: Duration::from_secs(600),
            join: None,
        };
        let render = Arc::new(Blobs(Renderer::open(settings, metrics.clone())?));
        let options = OperatorOptions {
            cluster_id: self.name.clone(),
            shard_addr: self.shard_addr.clone(),
            security: self.security.clone(),
            rollup_interval: ROLLUP,
            ack_concurrency: 16,
            demand_source: DemandSource::Upc,
            pod_status: true,
            leader_elect: false,
            namespace: SYSTEM.to_owned(),
            identity: format!("operator-{}", self.id),
        };
        *place = Some(operator::start(OperatorSetup {
            options,
            paced: self.paced(),
            render,
            side: dispatch::beside(dispatch::Settings { own_pod: None, cleanup: true }),
            metrics,
            readiness: Readiness::new("starting"),
        }));
        Ok(())
    }

    fn start_pod_controller(&self) {
        let mut place = lock(&self.pod_controller);
        if place.is_some() {
            return;
        }
        let resync = Duration::from_secs(60);
        let setup = PodSetup {
            scope: Scope {
                unmanaged_nodes: "node-role.kubernetes.io/control-plane"
                    .parse()
                    .unwrap_or_default(),
                volume_topology: true,
                resync,
            },
            options: PodOptions {
                max_concurrent_reconciles: 16,
                resync,
                settings: Settings::default(),
            },
            identity: format!("pod-controller-{}", self.id),
            namespace: SYSTEM.to_owned(),
            leader_elect: false,
        };
        let (paced, name) = (self.paced(), self.name.clone());
        *place = Some(tokio::spawn(async move {
            let metrics = Arc::new(PodMetrics::default());
            let readiness = Readiness::new("starting");
            let stop = Shutdown::new();
            if let Err(error) = running::run(paced, setup, metrics, readiness, stop).await {
                tracing::error!(%error, name, "the pod controller ended");
            }
        }));
    }

    /// Ends the operator; what it had begun ends where it is.
    pub(crate) async fn stop_operator(&self) {
        let running = lock(&self.operator).take();
        if let Some(running) = running {
            // Past that it is cut off, as by a crash.
            drop(tokio::time::timeout(STOP, running.stop()).await);
        }
    }

    /// Ends both parts of BigFleet in this cluster.
    pub(crate) async fn stop_parts(&self) {
        self.stop_operator().await;
        if let Some(task) = lock(&self.pod_controller).take() {
            task.abort();
        }
    }

    /// Starts both again.
    pub(crate) fn recover(&self) -> Result<(), Error> {
        self.start_pod_controller();
        self.start_operator()
    }

    /// Its certificate, for whoever speaks for it.
    pub(crate) const fn security(&self) -> &Security {
        &self.security
    }

    /// Where its shard is.
    pub(crate) fn shard_addr(&self) -> &str {
        &self.shard_addr
    }

    /// Sets how many pods a workload should have.
    pub(crate) fn demand(&self, workload: Workload, count: u32) {
        lock(&self.wanted).insert(workload, count);
    }

    /// Pods that a workload should have.
    pub(crate) fn wanted(&self, workload: Workload) -> u32 {
        lock(&self.wanted).get(&workload).copied().unwrap_or_default()
    }

    /// How the pods of every workload are.
    pub(crate) fn pods(&self) -> BTreeMap<Workload, Pods> {
        let mut all: BTreeMap<Workload, Pods> = BTreeMap::new();
        for workload in Workload::ALL {
            all.entry(workload).or_default().wanted = self.wanted(workload);
        }
        self.caches.pods.with(|pods| {
            for pod in pods.values().filter(|pod| !pod.leaving) {
                let counts = all.entry(pod.workload).or_default();
                match pod.running {
                    true => counts.running += 1,
                    false => counts.pending += 1,
                }
            }
        });
        all
    }

    /// Machines, and zones or racks, that pods of a workload run on: by pod name.
    pub(crate) fn places(
        &self,
        workload: Workload,
        label: &str,
    ) -> BTreeMap<String, (String, String)> {
        let nodes = self.caches.seen().nodes;
        self.caches.pods.with(|pods| {
            pods.values()
                .filter(|pod| pod.workload == workload && pod.running && !pod.leaving)
                .filter_map(|pod| {
                    let node = pod.node.clone()?;
                    let value = nodes.get(&node)?.labels.get(label)?.clone();
                    Some((pod.name.clone(), (node, value)))
                })
                .collect()
        })
    }

    /// Values of a label among nodes that take pods.
    pub(crate) fn offered(&self, label: &str) -> BTreeSet<String> {
        let value = |node: &NodeView| node.labels.get(label).filter(|_| node.schedulable).cloned();
        self.caches.nodes.with(|nodes| nodes.values().filter_map(|node| value(node)).collect())
    }

    /// Nodes it has.
    pub(crate) fn nodes(&self) -> usize {
        self.caches.nodes.len()
    }

    /// UIDs of pods that run, to see that they are the same later.
    pub(crate) fn running(&self) -> Vec<String> {
        self.caches.pods.with(|pods| {
            let running = pods.values().filter(|pod| pod.running && !pod.leaving);
            running.map(|pod| pod.uid.clone()).collect()
        })
    }

    /// The same of one workload.
    pub(crate) fn running_of(&self, workload: Workload) -> BTreeSet<String> {
        self.caches.pods.with(|pods| {
            let running = pods.values().filter(|pod| pod.running && !pod.leaving);
            let mine = running.filter(|pod| pod.workload == workload);
            mine.map(|pod| pod.uid.clone()).collect()
        })
    }

    /// Ends everything.
    pub(crate) async fn stop(&self) {
        self.stop_parts().await;
        self.stop.request();
        lock(&self.tasks).abort_all();
    }
}

impl Caches {
    fn synced(&self) -> bool {
        use bigfleet_in_cluster::store::State::Synced;
        self.pods.state() == Synced
            && self.nodes.state() == Synced
            && self.machines.state() == Synced
            && self.requests.state() == Synced
    }

    fn seen(&self) -> Seen {
        Seen {
            pods: self.pods.with(|pods| pods.values().map(|pod| (**pod).clone()).collect()),
            nodes: self.nodes.with(|nodes| {
                nodes.iter().map(|(key, node)| (key.name.to_string(), (**node).clone())).collect()
            }),
            machines: self.machines.with(|all| all.values().map(|one| (**one).clone()).collect()),
            requests: self.requests.with(|all| all.values().map(|one| (**one).clone()).collect()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
