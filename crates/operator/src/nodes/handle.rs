use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bigfleet_in_cluster::events::Recorder;
use bigfleet_in_cluster::store::{Feed, State};
use bigfleet_in_cluster::{Change, Paced, Store};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{NodeStateUpdate, ReclaimAck, ReclaimInstruction};
use k8s_openapi::api::core::v1::ObjectReference;

use super::drain::{Drains, Listener, Outcome, PodName, PodView};
use super::effect::{Effect, Key, Start, Told};
use super::evicted::TellEvicted;
use super::ledger::Ledger;
use super::tell;
use super::view::{NodeView, UpcomingView};
use super::worker::Worker;
use crate::dispatch::{Clock, Pump, Slots};
use crate::metrics::{
    DrainOutcome, EvictionOutcome, Metrics, NodeStatePhase, WriteOp, WriteOutcome,
};

/// How often the ledger looks at what only time changes.
const SWEEP: Duration = Duration::from_secs(5);

/// How long the first lists may take.
const SYNC_CAP: Duration = Duration::from_secs(600);

/// Where acks go: into the session's outbox. False when it was full.
pub type AckSink = Arc<dyn Fn(ReclaimAck) -> bool + Send + Sync>;

/// What nodes need.
pub struct Config {
    /// The way to the API server.
    pub paced: Paced,
    /// The cache of Nodes, of [`NodeView::of`].
    pub nodes: Store<NodeView>,
    /// The cache of UpcomingNodes, of [`UpcomingView::of`].
    pub upcoming: Store<UpcomingView>,
    /// Where events go.
    pub recorder: Recorder,
    /// Where things are counted.
    pub metrics: Arc<Metrics>,
    /// Who tells evicted Pods.
    pub evicted: Arc<dyn TellEvicted>,
    /// The handler slots, shared with [`Capacity`](crate::capacity::Capacity).
    pub slots: Slots,
    /// The clocks.
    pub clock: Clock,
    /// The pod of this process, evicted last.
    pub own_pod: Option<PodName>,
    /// Our Deployment, for events about what is nobody else's.
    pub deployment: ObjectReference,
    /// Whether the Nodes of departed machines are deleted.
    pub cleanup: bool,
}

/// The nodes of this cluster. Clones share one state.
///
/// What the shard says is entered at once and in order; the calls that follow from it are made by
/// [`run`](Self::run). Nothing here waits.
#[derive(Clone)]
pub struct Nodes {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: Config,
    ledger: Mutex<Ledger>,
    pump: Pump<Key>,
    drains: Drains,
    sink: Mutex<Option<AckSink>>,
    /// Final acks that found the outbox of the live session full.
    owed: Mutex<VecDeque<ReclaimAck>>,
}

impl Nodes {
    /// Nothing is done before [`run`](Self::run).
    #[must_use]
    pub fn new(config: Config) -> Self {
        let drains = Drains::new(config.paced.clone(), config.clock, config.own_pod.clone());
        let pump = Pump::new(config.slots.clone(), config.clock);
        let (ledger, sink, owed) = Default::default();
        Self { shared: Arc::new(Shared { config, ledger, pump, drains, sink, owed }) }
    }

    /// A frame was received. `received` rises with everything that the session receives.
    pub fn frame(&self, frame: &NodeStateUpdate, received: u64) {
        let now = self.shared.config.clock.now();
        self.shared.enter(|ledger| ledger.frame(frame, received, now));
    }

    /// An instruction was received. `received` rises with everything that the session receives.
    pub fn reclaim(&self, instruction: &ReclaimInstruction, received: u64) {
        let clock = self.shared.config.clock;
        let (now, wall) = (clock.now(), clock.wall());
        self.shared.enter(|ledger| ledger.reclaim(instruction, received, now, wall));
    }

    /// A session began; acks go to this sink until it ends.
    pub fn session_began(&self, sink: AckSink) {
        *self.shared.sink() = Some(sink);
        // What still counts is said again in every session.
        self.shared.owed().clear();
        self.shared.enter(Ledger::session_began);
    }

    /// The session ended.
    pub fn session_ended(&self) {
        self.shared.enter(Ledger::session_ended);
        *self.shared.sink() = None;
    }

    /// The shard said that its replay is complete.
    pub fn resync(&self) {
        self.shared.enter(Ledger::resync);
    }

    /// Machines that wait to be worked on.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.pump.waiting()
    }

    /// Whether nothing waits, nobody works and no drain runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.pump.is_idle() && self.shared.enter(|ledger| ledger.draining()) == 0
    }

    /// Does what follows from what is received, until told to stop: while this process holds the
    /// lease. Both caches are to be synced. Drains that an earlier process left go on.
    ///
    /// What is known is read when this is called, not when it is first awaited, so that a session
    /// may begin right after.
    pub fn run(&self, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        let config = &shared.config;
        shared.enter(|ledger| ledger.reset(config.cleanup));
        let mut feeds = (config.nodes.changes(), config.upcoming.changes());
        shared.catch_up(&mut feeds);
        let synced = config.nodes.state() == State::Synced;
        let synced = synced && config.upcoming.state() == State::Synced;
        if synced {
            shared.resume();
        }
        async move {
            let config = &shared.config;
            if !synced {
                let lists = async {
                    let nodes = config.nodes.wait_synced(SYNC_CAP).await;
                    nodes.and(config.upcoming.wait_synced(SYNC_CAP).await)
                };
                tokio::select! {
                    () = shutdown.requested() => return,
                    lists = lists => if let Err(error) = lists {
                        tracing::error!(%error, "nodes cannot be looked after");
                        return;
                    }
                }
                shared.catch_up(&mut feeds);
                shared.resume();
            }
            let follow = async {
                loop {
                    tokio::select! {
                        Some(change) = feeds.0.next() => {
                            shared.enter(|ledger| node_changed(ledger, change));
                        }
                        Some(change) = feeds.1.next() => {
                            shared.enter(|ledger| object_changed(ledger, change));
                        }
                        else => std::future::pending().await,
                    }
                }
            };
            let worker = Arc::new(Worker { shared: shared.clone() });
            tokio::select! {
                // Ends with the shutdown, after the last of its workers.
                () = shared.pump.run(worker, shutdown.token()) => {}
                () = follow => {}
                () = shared.sweep() => {}
            }
            shared.drains.stop_all();
            shared.enter(|ledger| ledger.reset(config.cleanup));
        }
    }
}

fn node_changed(ledger: &mut Ledger, change: Change<NodeView>) {
    match change {
        Change::Put { after, .. } => ledger.node_shown(after),
        Change::Gone { before, .. } => ledger.node_vanished(&before.name, &before.uid),
        Change::Swapped(changes) => {
            changes.into_iter().for_each(|change| node_changed(ledger, change));
            ledger.relisted();
        }
    }
}

fn object_changed(ledger: &mut Ledger, change: Change<UpcomingView>) {
    match change {
        Change::Put { after, .. } => ledger.object_shown(after),
        Change::Gone { before, .. } => ledger.object_vanished(&before.name, &before.uid),
        Change::Swapped(changes) => {
            changes.into_iter().for_each(|change| object_changed(ledger, change));
            ledger.relisted();
        }
    }
}

impl Shared {
    /// Asks or tells the ledger something, and does at once what follows. Effects are carried out
    /// under the lock, since their order counts and none of them waits.
    pub(super) fn enter<T>(self: &Arc<Self>, enter: impl FnOnce(&mut Ledger) -> T) -> T {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = enter(&mut ledger);
        let effects = ledger.take_effects();
        if !effects.is_empty() {
            self.config.metrics.drains_inflight.set(gauge(ledger.draining()));
            effects.into_iter().for_each(|effect| self.carry_out(effect));
        }
        answer
    }

    fn resume(self: &Arc<Self>) {
        let (now, wall) = (self.config.clock.now(), self.config.clock.wall());
        self.enter(|ledger| ledger.resume(now, wall));
    }

    /// Enters what the caches already know.
    fn catch_up(self: &Arc<Self>, feeds: &mut (Feed<NodeView>, Feed<UpcomingView>)) {
        while let Some(change) = feeds.0.try_next() {
            self.enter(|ledger| node_changed(ledger, change));
        }
        while let Some(change) = feeds.1.try_next() {
            self.enter(|ledger| object_changed(ledger, change));
        }
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        let metrics = &self.config.metrics;
        match effect {
            Effect::Due { key, urgent } => self.pump.mark(key, urgent),
            Effect::Ack(ack) => self.acknowledge(ack),
            Effect::Start(start) => self.drains.start(start, self.clone()),
            Effect::Sooner { number, deadline } => self.drains.sooner(number, deadline),
            Effect::Stop { number } => {
                if let Some(took) = self.drains.stop(number) {
                    metrics.drain_ended(DrainOutcome::Stopped, took);
                }
            }
            Effect::Tell(told) => {
                match told {
                    Told::Unresolved { .. } => drop(metrics.reclaim_unresolved_nodes.inc()),
                    Told::Uncordoned(_) => drop(metrics.nodes_uncordoned.inc()),
                    _ => {}
                }
                self.config.recorder.note(tell::note(&told, &self.config.deployment));
            }
            Effect::Ignored(reason) => metrics.node_frame_ignored(reason),
            Effect::Handled { received, noop } => {
                let took = self.config.clock.now().saturating_sub(received);
                metrics.node_state_update(NodeStatePhase::Total, took);
                if noop {
                    metrics.upcoming_node_write(WriteOp::StatusUpdate, WriteOutcome::Noop);
                }
            }
        }
    }

    fn acknowledge(&self, ack: ReclaimAck) {
        let instruction = ack.instruction_id.clone();
        let finished = ack.finished;
        match &*self.sink() {
            // The shard has its own timeouts; a final ack is repeated in the next session.
            None => tracing::info!(instruction, finished, "reclaim ack not sent: no session"),
            Some(sink) if !sink(ack.clone()) => {
                tracing::warn!(instruction, finished, "reclaim ack dropped: the outbox is full");
                // Without it the shard waits for the whole grace, and after a reconnect there
                // may be more of them than an outbox holds.
                if finished {
                    self.owed().push_back(ack);
                }
            }
            Some(_) => {}
        }
    }

    /// Says the final acks that found the outbox full, as far as it takes them.
    fn pay(&self) {
        let sink = self.sink();
        let Some(sink) = &*sink else { return };
        let mut owed = self.owed();
        while let Some(ack) = owed.pop_front() {
            if !sink(ack.clone()) {
                owed.push_front(ack);
                return;
            }
        }
    }

    fn owed(&self) -> std::sync::MutexGuard<'_, VecDeque<ReclaimAck>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> std::sync::MutexGuard<'_, Option<AckSink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sweep(self: &Arc<Self>) {
        let clock = self.config.clock;
        loop {
            let (now, wall) = (clock.now(), clock.wall());
            let phantoms = self.enter(|ledger| ledger.sweep(now, wall));
            self.pay();
            self.config.metrics.configured_not_ready_nodes.set(gauge(phantoms));
            clock.sleep_until(now + SWEEP).await;
        }
    }
}

impl Listener for Shared {
    fn evicted(&self, start: &Start, pod: &PodView) {
        let (node, grace) = (&start.node.name, start.grace);
        self.config.evicted.evicted(tell::of_pod(pod), node, grace, start.preemptor_priority);
    }

    fn answered(&self, outcome: EvictionOutcome) {
        self.config.metrics.eviction(outcome);
    }

    fn blocked(&self, start: &Start, pod: &PodName, why: &str) {
        self.config.recorder.note(tell::blocked(start, pod, why));
    }

    fn ended(self: Arc<Self>, start: &Start, outcome: &Outcome, took: Duration) {
        let word = match outcome {
            Outcome::Drained => DrainOutcome::Drained,
            Outcome::Failed(_) => DrainOutcome::Timeout,
        };
        self.config.metrics.drain_ended(word, took);
        self.enter(|ledger| ledger.drain_ended(&start.node.name, start.number, outcome));
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
