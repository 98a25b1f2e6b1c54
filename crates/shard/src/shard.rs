//! What the tasks of one shard share. Locks are taken in the order decider, live,
//! sessions; none is held while anything is awaited.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bigfleet_engine::{Engine, Ledger, Phase2Options};
use bigfleet_model::{ClusterId, MachineId};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use tokio::{
    sync::{Notify, RwLock, RwLockReadGuard, watch},
    time::Instant,
};

use crate::{
    actuation::{Actuation, Mode},
    audit::Audit,
    clock::Clock,
    dice::Dice,
    execute::{Limit, Queue, Reclaims, Refusals},
    fence::Fence,
    live::{Desk, Live},
    metrics::Metrics,
    needs::Needs,
    options::Options,
    outcome::Outcome,
    publish::Summaries,
    reconcile::Reconciler,
    session::Sessions,
    shared::Shared,
    supply::Supply,
    views::Published,
};

/// One shard: everything but its tasks.
pub(crate) struct Shard {
    pub(crate) options: Options,
    pub(crate) epoch: i64,
    pub(crate) clock: Clock,
    pub(crate) supply: Arc<dyn Supply>,
    /// What is ours, of a provider that others use, too.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Written by the cycle alone, so that it stands still between two.
    pub(crate) decider: RwLock<Decider>,
    live: Mutex<Live>,
    refusals: Mutex<Refusals>,
    pub(crate) needs: Needs,
    pub(crate) sessions: Sessions,
    pub(crate) queue: Queue,
    pub(crate) limit: Limit,
    pub(crate) reclaims: Reclaims,
    pub(crate) reconciler: Reconciler,
    pub(crate) fence: Fence,
    pub(crate) actuation: Arc<Actuation>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) dice: Dice,
    wake: Notify,
    /// The last cycle dropped actions for want of a place.
    dropped: AtomicBool,
    changed_sessions: Mutex<Vec<ClusterId>>,
    resynced_sessions: Mutex<Vec<ClusterId>>,
    /// Clusters of whose needs some may be on hold.
    held: Mutex<HashSet<ClusterId, RandomState>>,
    /// The first List is merged.
    reconciled: watch::Sender<bool>,
    /// Highest coordinator term seen.
    pub(crate) coordinator_term: AtomicI64,
    /// When the last cycle ended.
    last_cycle: Mutex<Instant>,
    /// Configured machines by cluster, as last counted.
    pub(crate) configured: ArcSwap<HashMap<ClusterId, usize, RandomState>>,
    /// How every need fared in the last cycle.
    pub(crate) needs_read: Published,
    /// One frame per cycle.
    pub(crate) summaries: Summaries,
}

/// The engine, and what lies beside it.
#[derive(Default)]
pub(crate) struct Decider {
    pub(crate) engine: Engine,
    pub(crate) ledger: Ledger,
}

/// What a shard is made of.
pub(crate) struct Parts {
    pub(crate) options: Options,
    pub(crate) epoch: i64,
    pub(crate) supply: Arc<dyn Supply>,
    pub(crate) shared: Option<Arc<Shared>>,
    pub(crate) sessions: Sessions,
    pub(crate) fence: Fence,
    pub(crate) actuation: Arc<Actuation>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) metrics: Arc<Metrics>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { options, epoch, supply, shared, sessions, fence, .. } = parts;
        let (actuation, audit, metrics) = (parts.actuation, parts.audit, parts.metrics);
        let engine = Engine::new(Phase2Options::default(), options.release);
        let queue = Queue::new(options.execute_concurrency);
        metrics.action_queue_capacity.set(queue.capacity() as i64);
        Self {
            epoch,
            clock: Clock::start(),
            supply,
            shared,
            decider: RwLock::new(Decider { engine, ledger: Ledger::default() }),
            live: Mutex::default(),
            refusals: Mutex::default(),
            needs: Needs::new(options.empty_rollup_guard),
            sessions,
            queue,
            limit: Limit::new(options.provider_max_inflight),
            reclaims: Reclaims::default(),
            reconciler: Reconciler::new(),
            fence,
            actuation,
            audit,
            metrics,
            dice: Dice::new(epoch as u64),
            wake: Notify::new(),
            dropped: AtomicBool::new(false),
            changed_sessions: Mutex::default(),
            resynced_sessions: Mutex::default(),
            held: Mutex::default(),
            reconciled: watch::Sender::new(false),
            coordinator_term: AtomicI64::new(0),
            last_cycle: Mutex::new(Instant::now()),
            configured: ArcSwap::default(),
            needs_read: Published::default(),
            summaries: Summaries::new(),
            options,
        }
    }

    /// The engine for reading and the moving part for writing.
    pub(crate) async fn desk(&self) -> Desk<'_> {
        let decider = self.decider.read().await;
        self.desk_with(decider)
    }

    pub(crate) fn desk_with<'a>(&'a self, decider: RwLockReadGuard<'a, Decider>) -> Desk<'a> {
        Desk { shard: self, decider, live: self.live() }
    }

    /// The moving part alone.
    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        lock(&self.live)
    }

    pub(crate) fn refusals(&self) -> MutexGuard<'_, Refusals> {
        lock(&self.refusals)
    }

    /// Clusters of whose needs some may be on hold.
    pub(crate) fn held(&self) -> MutexGuard<'_, HashSet<ClusterId, RandomState>> {
        lock(&self.held)
    }

    /// Gives the engine what moved, if that is much: only the cycle may.
    pub(crate) async fn absorb_if_many(&self, many: usize) {
        let moving = self.live().entries.len();
        if moving >= many {
            let mut decider = self.decider.write().await;
            self.absorb(&mut decider.engine);
        }
    }

    /// Gives the engine what moved.
    pub(crate) fn absorb(&self, engine: &mut Engine) {
        let past = |machine: &MachineId| self.shared.as_ref()?.past_quota(machine);
        self.live().absorb(engine, past);
    }

    /// A cycle has ended.
    pub(crate) fn note_cycle(&self) {
        *lock(&self.last_cycle) = Instant::now();
    }

    /// How long ago a cycle ended; at first, the shard began.
    pub(crate) fn since_last_cycle(&self) -> Duration {
        lock(&self.last_cycle).elapsed()
    }

    /// Asks for a cycle before the next tick. Many requests are one.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Resolves when a cycle was asked for.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The queue had no place for something.
    pub(crate) fn note_dropped(&self) {
        self.dropped.store(true, Ordering::Relaxed);
    }

    /// A worker is free: if the last cycle had too much for the queue, ask for
    /// another once it has drained below half.
    pub(crate) fn after_job(&self) {
        if self.dropped.load(Ordering::Relaxed)
            && self.queue.depth() * 2 < self.queue.capacity()
            && self.dropped.swap(false, Ordering::Relaxed)
        {
            self.wake();
        }
    }

    /// Neither braked nor fenced; with a shared provider, not before it is known to
    /// be ours to act on.
    pub(crate) fn may_act(&self) -> bool {
        self.actuation.mode() == Mode::Active && !self.fence.is_latched() && self.is_open()
    }

    /// Whether the first words with a shared provider and the coordinator are spoken.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.is_open())
    }

    /// Somebody holds a higher epoch: nothing is sent any more, until a human
    /// decides (§11).
    pub(crate) async fn latch(&self, reason: &str) {
        self.fence.latch(reason);
        let mut desk = self.desk().await;
        for job in self.queue.drain() {
            let Some(decision) = desk.live.pending(&job.machine).map(|one| one.decision) else {
                continue;
            };
            desk.end(&job.machine);
            self.record_outcome(decision, Outcome::Fenced, "the queue was dropped", "");
        }
    }

    /// A session of a cluster began or ended.
    pub(crate) fn note_session(&self, cluster: &ClusterId) {
        lock(&self.changed_sessions).push(cluster.clone());
        self.wake();
    }

    /// A cluster's session has all that it was to be told first.
    pub(crate) fn note_resynced(&self, cluster: &ClusterId) {
        lock(&self.resynced_sessions).push(cluster.clone());
        self.wake();
    }

    /// Clusters whose session has been told everything since the last cycle.
    pub(crate) fn take_resynced_sessions(&self) -> Vec<ClusterId> {
        std::mem::take(&mut *lock(&self.resynced_sessions))
    }

    /// Clusters whose session began or ended since the last cycle.
    pub(crate) fn take_changed_sessions(&self) -> Vec<ClusterId> {
        std::mem::take(&mut *lock(&self.changed_sessions))
    }

    /// The first List is merged.
    pub(crate) fn first_reconcile_done(&self) {
        if !self.reconciled.send_replace(true) {
            self.fence.set_ready();
        }
    }

    /// Resolves once the first List is merged.
    pub(crate) async fn reconciled(&self) {
        let mut reconciled = self.reconciled.subscribe();
        // The sender lives as long as we do.
        drop(reconciled.wait_for(|done| *done).await);
    }

    /// Whether the provider is looked at every second.
    pub(crate) fn anything_under_way(&self) -> bool {
        let live = self.live();
        !live.passing.is_empty() || !live.unread.is_empty() || live.anything_pending()
    }
}
