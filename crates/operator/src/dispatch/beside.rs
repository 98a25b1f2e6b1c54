use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_crds::{AvailableCapacity, UpcomingNode};
use bigfleet_in_cluster::store::{Selection, State};
use bigfleet_in_cluster::{Error, Paced, Store};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{AvailableCapacityUpdate, NodeStateUpdate, ReclaimInstruction};
use futures_util::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Clock, Slots};
use crate::capacity::{self, Capacity, CapacityView};
use crate::metrics::{IgnoredFrame, Metrics};
use crate::nodes::drain::PodName;
use crate::nodes::{self, NodeView, Nodes, UpcomingView};
use crate::rollup::Demanded;
use crate::session::{Downstream, Lead, ReclaimAcks};
use crate::side::{Context, MakeSide, Side};

/// How nodes are looked after.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The pod of this process, evicted last.
    pub own_pod: Option<PodName>,
    /// Whether the Nodes of departed machines are deleted.
    pub cleanup: bool,
}

impl Settings {
    /// The pod of this process, as its environment names it.
    #[must_use]
    pub fn own_pod() -> Option<PodName> {
        let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
        let (namespace, name) = (name("POD_NAMESPACE")?, name("POD_NAME")?);
        Some(PodName { namespace: namespace.into(), name: name.into() })
    }
}

/// Makes nodes and hints, to run beside a session.
#[must_use]
pub fn beside(settings: Settings) -> MakeSide {
    Box::new(|context| Arc::new(Beside::new(context, settings)))
}

/// Nodes and hints, their caches, and the lease they work under.
struct Beside {
    cluster_id: String,
    paced: Paced,
    metrics: Arc<Metrics>,
    lead: Lead,
    stores: Stores,
    nodes: Nodes,
    capacity: Capacity,
    demanded: Mutex<watch::Receiver<Demanded>>,
    work: Mutex<Option<Work>>,
}

#[derive(Clone)]
struct Stores {
    nodes: Store<NodeView>,
    upcoming: Store<UpcomingView>,
    hints: Store<CapacityView>,
}

/// What a leader does.
struct Work {
    tasks: JoinSet<()>,
    stop: Shutdown,
}

impl Beside {
    fn new(context: Context, settings: Settings) -> Self {
        let stores = Stores {
            nodes: Store::new("nodes"),
            upcoming: Store::new("upcomingnodes"),
            hints: Store::new("availablecapacities"),
        };
        let (slots, clock) = (Slots::new(context.metrics.clone()), Clock::system());
        let nodes = Nodes::new(nodes::Config {
            paced: context.paced.clone(),
            nodes: stores.nodes.clone(),
            upcoming: stores.upcoming.clone(),
            recorder: context.events,
            metrics: context.metrics.clone(),
            evicted: context.pod_status,
            slots: slots.clone(),
            clock,
            own_pod: settings.own_pod,
            deployment: context.ourselves,
            cleanup: settings.cleanup,
        });
        let capacity = Capacity::new(capacity::Config {
            paced: context.paced.clone(),
            store: stores.hints.clone(),
            slots,
            clock,
        });
        Self {
            cluster_id: context.cluster_id,
            paced: context.paced,
            metrics: context.metrics,
            lead: context.lead,
            stores,
            nodes,
            capacity,
            demanded: Mutex::new(context.demanded),
            work: Mutex::new(None),
        }
    }

    /// Begins the leader's work, unless it has begun. Everything a session says must find it begun.
    fn begin(&self) {
        let mut work = lock(&self.work);
        if work.is_some() {
            return;
        }
        let stop = Shutdown::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(self.nodes.run(stop.clone()));
        tasks.spawn(self.capacity.run(stop.clone()));
        *work = Some(Work { tasks, stop });
    }

    async fn end(&self) {
        let Some(mut work) = lock(&self.work).take() else { return };
        work.stop.request();
        while work.tasks.join_next().await.is_some() {}
    }

    /// Works while this process leads; without a view of the lease, goes on.
    async fn follow_lead(&self) {
        let mut lead = self.lead.clone();
        loop {
            lead.may_dial().await;
            self.begin();
            lead.superseded().await;
            self.end().await;
        }
    }

    fn fill(&self, shutdown: &Shutdown) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let client = || self.paced.client().clone();
        let Stores { nodes, upcoming, hints } = self.stores.clone();
        let (api, stop) = (Api::<Node>::all(client()), shutdown.clone());
        tasks.spawn(async move { nodes.run(api, Selection::all(), NodeView::of, stop).await });
        let (api, stop) = (Api::<UpcomingNode>::all(client()), shutdown.clone());
        tasks.spawn(
            async move { upcoming.run(api, Selection::all(), UpcomingView::of, stop).await },
        );
        let (api, stop) = (Api::<AvailableCapacity>::all(client()), shutdown.clone());
        tasks.spawn(async move { hints.run(api, Selection::all(), CapacityView::of, stop).await });
        tasks
    }
}

impl Downstream for Beside {
    fn session_began(&self, acks: ReclaimAcks) {
        if self.lead.is_leading() {
            self.begin();
        }
        self.nodes.session_began(Arc::new(move |ack| acks.send(ack)));
        self.capacity.session_began();
    }

    fn session_ended(&self) {
        self.nodes.session_ended();
        self.capacity.session_ended();
    }

    fn node_state(&self, frame: NodeStateUpdate, received: u64) {
        // A shard of the base protocol names no cluster.
        if !frame.cluster_id.is_empty() && frame.cluster_id != self.cluster_id {
            return self.metrics.node_frame_ignored(IgnoredFrame::OtherCluster);
        }
        self.nodes.frame(&frame, received);
    }

    fn reclaim(&self, instruction: ReclaimInstruction, received: u64) {
        self.nodes.reclaim(&instruction, received);
    }

    fn available_capacity(&self, frame: AvailableCapacityUpdate) {
        let mut demanded = lock(&self.demanded);
        // Never changed: no roll-up has been made.
        if demanded.has_changed().unwrap_or(false) {
            self.capacity.demanded(demanded.borrow_and_update().clone());
        }
        drop(demanded);
        self.capacity.frame(&frame);
    }

    fn resync(&self) {
        self.nodes.resync();
    }
}

impl Side for Beside {
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()> {
        async move {
            let mut caches = self.fill(&shutdown);
            let synced = async {
                // What takes longer ends the process; see `synced`.
                while self.synced(Duration::MAX).await.is_err() {}
                self.follow_lead().await;
            };
            tokio::select! {
                () = shutdown.requested() => {}
                () = synced => {}
            }
            self.end().await;
            while caches.join_next().await.is_some() {}
        }
        .boxed()
    }

    fn synced(&self, cap: Duration) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.stores.nodes.wait_synced(cap).await?;
            self.stores.upcoming.wait_synced(cap).await?;
            self.stores.hints.wait_synced(cap).await
        }
        .boxed()
    }

    fn unready(&self) -> Option<String> {
        let Stores { nodes, upcoming, hints } = &self.stores;
        let states = [
            (nodes.state(), "nodes"),
            (upcoming.state(), "upcomingnodes"),
            (hints.state(), "availablecapacities"),
        ];
        states.into_iter().find_map(|(state, what)| match state {
            State::Synced => None,
            State::Unsynced => Some(format!("{what} have not been listed yet")),
            State::Missing => Some(format!("the API server does not serve {what}")),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
