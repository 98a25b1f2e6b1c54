//! Stands for the kubelets of all machines: a machine whose UpcomingNode is Ready gets a Node,
//! pods bound to it run, pods deleted there leave, and the Node goes with the object.
//!
//! It looks at everything several times a second and does what is missing, so that a server that
//! restarts costs it nothing.

mod node;
mod pod;
mod views;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_crds::UpcomingNode;
use bigfleet_in_cluster::{Store, store::Selection};
use bigfleet_net::shutdown::Shutdown;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use views::{Machine, NodeView, PodView};

/// Pod annotation: how long a pod of a Job works, `5s` for example; without it, for ever.
pub const DURATION: &str = "e2e.bigfleet.lucy.sh/duration";

/// Pod annotation: how long a deleted pod takes to leave, within its grace; without it, as the
/// habits say.
pub const TERMINATION: &str = "e2e.bigfleet.lucy.sh/termination";

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Between two heartbeats of a node; the control plane gives up after 50 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How machines become nodes here, and how pods end.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// Whether a Node is called as its machine is.
    pub named_as_machine: bool,
    /// Whether a Node carries the label `bigfleet.lucy.sh/machine-id`.
    pub labelled: bool,
    /// How long a deleted pod takes to leave.
    pub termination: Duration,
    /// Whether the provider itself makes Nodes, keeps them ready and takes them away; then the
    /// agent looks after their pods alone.
    pub provided: bool,
}

impl Default for Habits {
    /// Nodes of another name, labelled; pods leave at once.
    fn default() -> Self {
        Self {
            named_as_machine: false,
            labelled: true,
            termination: Duration::ZERO,
            provided: false,
        }
    }
}

impl Habits {
    /// Names that differ from the machine's in half of the runs; `BIGFLEET_E2E_NAMES=machine` or
    /// `other` decides.
    #[must_use]
    pub fn drawn() -> Self {
        let named_as_machine = match std::env::var("BIGFLEET_E2E_NAMES").as_deref() {
            Ok("machine") => true,
            Ok(_) => false,
            Err(_) => std::process::id().is_multiple_of(2),
        };
        println!("BIGFLEET_E2E_NAMES={}", if named_as_machine { "machine" } else { "other" });
        Self { named_as_machine, ..Self::default() }
    }
}

/// A running agent; dropping it lets all kubelets fall silent.
#[derive(Debug)]
pub struct Agent {
    orders: Arc<Mutex<Orders>>,
    task: JoinHandle<()>,
    shutdown: Shutdown,
}

/// What a test wants to go wrong.
#[derive(Debug, Default)]
struct Orders {
    never_join: HashSet<String>,
    silent: HashSet<String>,
}

impl Agent {
    /// Starts to look after the nodes of a cluster whose CRDs are there.
    #[must_use]
    pub fn start(client: Client, habits: Habits) -> Self {
        let (orders, shutdown) = (Arc::<Mutex<Orders>>::default(), Shutdown::new());
        let look = Look {
            client,
            habits,
            orders: orders.clone(),
            machines: Store::new("upcomingnodes"),
            nodes: Store::new("nodes"),
            pods: Store::new("pods"),
            running: HashMap::new(),
            leaving: HashMap::new(),
            heartbeats: HashMap::new(),
        };
        let task = tokio::spawn(look.run(shutdown.clone()));
        Self { orders, task, shutdown }
    }

    /// This machine's node never joins, whatever its UpcomingNode says.
    pub fn never_join(&self, machine_id: &str) {
        self.orders().never_join.insert(machine_id.to_owned());
    }

    /// This machine's kubelet falls silent: no heartbeats, and pods stay as they are.
    pub fn silence(&self, machine_id: &str) {
        self.orders().silent.insert(machine_id.to_owned());
    }

    /// All machines behave again.
    pub fn forgive(&self) {
        *self.orders() = Orders::default();
    }

    fn orders(&self) -> std::sync::MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shutdown.request();
        self.task.abort();
    }
}

struct Look {
    client: Client,
    habits: Habits,
    orders: Arc<Mutex<Orders>>,
    machines: Store<Machine>,
    nodes: Store<NodeView>,
    pods: Store<PodView>,
    /// By UID, since when.
    running: HashMap<String, Instant>,
    leaving: HashMap<String, Instant>,
    /// By node, the last one.
    heartbeats: HashMap<String, Instant>,
}

impl Look {
    async fn run(mut self, shutdown: Shutdown) {
        let client = &self.client;
        let (machines, nodes, pods) =
            (self.machines.clone(), self.nodes.clone(), self.pods.clone());
        let mut followers = JoinSet::new();
        let (api, stop) = (Api::<UpcomingNode>::all(client.clone()), shutdown.clone());
        followers.spawn(async move {
            machines.run(api, Selection::all(), Machine::of, stop).await;
        });
        let (api, stop) = (Api::<Node>::all(client.clone()), shutdown.clone());
        followers.spawn(async move { nodes.run(api, Selection::all(), NodeView::of, stop).await });
        let (api, stop) = (Api::<Pod>::all(client.clone()), shutdown.clone());
        followers.spawn(async move { pods.run(api, Selection::all(), PodView::of, stop).await });
        let long = Duration::from_secs(60);
        self.machines.wait_synced(long).await.expect("upcomingnodes");
        self.nodes.wait_synced(long).await.expect("nodes");
        self.pods.wait_synced(long).await.expect("pods");
        loop {
            let nodes = match self.habits.provided {
                true => [Steps::new(), Steps::new(), Steps::new()],
                false => [self.join(), self.leave(), self.beat()],
            };
            for mut step in nodes.into_iter().chain([self.serve()]) {
                // What fails is done at the next look, if it is still wanted.
                while let Some(done) = step.join_next().await {
                    if let Ok(Err(error)) = done {
                        tracing::debug!(%error, "a kubelet's call failed");
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn orders(&self) -> std::sync::MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nodes of machines that are ready and have none.
    fn join(&self) -> Steps {
        let joined: HashSet<String> = self.nodes.with(|nodes| {
            nodes.values().filter(|node| node.ready).map(|node| node.machine.clone()).collect()
        });
        let barred = self.orders().never_join.clone();
        let mut steps = Steps::new();
        self.machines.with(|machines| {
            let missing = machines.values().filter(|machine| {
                machine.ready && !joined.contains(&machine.id) && !barred.contains(&machine.id)
            });
            for machine in missing {
                let (client, machine) = (self.client.clone(), machine.clone());
                let habits = self.habits;
                steps.spawn(async move { node::join(&client, &machine, habits).await });
            }
        });
        steps
    }

    /// Nodes whose machines have left.
    fn leave(&self) -> Steps {
        let here: HashSet<String> = self
            .machines
            .with(|machines| machines.values().map(|machine| machine.id.clone()).collect());
        let mut steps = Steps::new();
        self.nodes.with(|nodes| {
            for (key, _) in nodes.iter().filter(|(_, node)| !here.contains(&node.machine)) {
                let (client, name) = (self.client.clone(), key.name.to_string());
                steps.spawn(async move { node::leave(&client, &name).await });
            }
        });
        steps
    }

    fn beat(&mut self) -> Steps {
        let silent = self.orders().silent.clone();
        let now = Instant::now();
        let mut steps = Steps::new();
        self.nodes.with(|nodes| {
            for (key, node) in nodes.iter().filter(|(_, node)| !silent.contains(&node.machine)) {
                let name = key.name.to_string();
                let due = self.heartbeats.get(&name).is_none_or(|last| now - *last >= HEARTBEAT);
                if due {
                    self.heartbeats.insert(name.clone(), now);
                    let (client, uid) = (self.client.clone(), node.uid.clone());
                    steps.spawn(async move { node::beat(&client, &name, &uid).await });
                }
            }
        });
        steps
    }

    /// Pods of our nodes.
    fn serve(&mut self) -> Steps {
        let silent = self.orders().silent.clone();
        let ours: HashMap<String, bool> = self.nodes.with(|nodes| {
            let silent = |node: &NodeView| silent.contains(&node.machine);
            nodes.iter().map(|(key, node)| (key.name.to_string(), silent(node))).collect()
        });
        let pods: Vec<_> = self.pods.with(|pods| {
            let bound = pods.iter().filter(|(_, pod)| ours.get(&pod.node) == Some(&false));
            bound.map(|(key, pod)| (key.clone(), pod.clone())).collect()
        });
        let known: HashSet<&str> = pods.iter().map(|(_, pod)| pod.uid.as_str()).collect();
        self.running.retain(|uid, _| known.contains(uid.as_str()));
        self.leaving.retain(|uid, _| known.contains(uid.as_str()));
        let now = Instant::now();
        let mut steps = Steps::new();
        for (key, pod) in &pods {
            let running = *self.running.entry(pod.uid.clone()).or_insert(now);
            let leaving = pod.leaving.then(|| *self.leaving.entry(pod.uid.clone()).or_insert(now));
            let due = pod::due(
                pod,
                now - running,
                leaving.map(|since| now - since),
                self.habits.termination,
            );
            if let Some(duty) = due {
                let (client, key, uid) = (self.client.clone(), key.clone(), pod.uid.clone());
                steps.spawn(async move { pod::perform(&client, &key, &uid, duty).await });
            }
        }
        steps
    }
}

type Steps = JoinSet<Result<(), kube::Error>>;
