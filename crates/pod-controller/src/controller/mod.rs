//! The shell around the rules: caches in, writes out.

mod feed;
mod groups;
mod mentions;
mod orphans;
mod pass;
mod queue;
mod reconcile;
mod refused;
mod strays;
mod warned;
mod world;
mod writes;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_crds::keys;
use bigfleet_in_cluster::{
    ObjectKey, Paced,
    events::Recorder,
    lease::{Elector, Leadership},
};
use bigfleet_net::shutdown::Shutdown;
use feed::{Changes, Index};
use pass::Pass;
use queue::Queue;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use warned::Warned;
pub use world::{Claim, Group, Scope, Volume, World};
use writes::Writes;

use crate::{desired::Settings, metrics::Metrics};

/// How long the calls that are under way may take when the stop is asked for.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Between two looks at how our writes go.
const LOOK_AT_WRITES: Duration = Duration::from_secs(5);

/// How the controller works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Pods that are looked at in parallel.
    pub max_concurrent_reconciles: usize,
    /// Between two looks at everything.
    pub resync: Duration,
    /// What the rules depend on.
    pub settings: Settings,
}

/// When a controller works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// While it holds the lease.
    Elected,
    /// Always; the lease only says so.
    Always,
}

/// Keeps one CapacityRequest per pod.
#[derive(Debug)]
pub struct Controller {
    shared: Arc<Shared>,
    options: Options,
}

#[derive(Debug)]
struct Shared {
    paced: Paced,
    world: World,
    settings: Settings,
    index: Arc<Index>,
    queue: Arc<Queue>,
    pass: Mutex<Pass>,
    passed: Notify,
    warned: Mutex<Warned>,
    writes: Mutex<Writes>,
    /// When a call that failed was last told of.
    told_failure: Mutex<Option<Instant>>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
}

impl Controller {
    /// Over caches that are complete: what they do not show does not exist.
    #[must_use]
    pub fn new(
        paced: Paced,
        world: World,
        options: Options,
        recorder: Recorder,
        metrics: Arc<Metrics>,
    ) -> Self {
        let shared = Arc::new(Shared {
            paced,
            world,
            settings: options.settings.clone(),
            index: Arc::default(),
            queue: Arc::new(Queue::new(metrics.queue_depth.clone())),
            pass: Mutex::default(),
            passed: Notify::new(),
            warned: Mutex::default(),
            writes: Mutex::default(),
            told_failure: Mutex::default(),
            recorder,
            metrics,
        });
        Self { shared, options }
    }

    /// Works whenever it is its turn, until the stop is asked for; what is begun is finished.
    pub async fn run(self, elector: &Elector, turn: Turn, shutdown: Shutdown) {
        let shared = &self.shared;
        let mut changes = Changes::of(&shared.world);
        // Before anything is done: a request that is not in the index yet would get a twin.
        changes.catch_up(&shared.index, &shared.queue);
        let (gate, open) = watch::channel(false);
        let mut workers = JoinSet::new();
        for _ in 0..self.options.max_concurrent_reconciles {
            let (shared, open, shutdown) = (shared.clone(), open.clone(), shutdown.clone());
            workers.spawn(async move { shared.work(open, shutdown).await });
        }
        let following = changes.follow(shared.index.clone(), shared.queue.clone());
        tokio::select! {
            () = shutdown.requested() => {}
            () = following => {}
            () = self.terms(elector, turn, &gate) => {}
        }
        shared.queue.close();
        shared.metrics.leader.set(0);
        shared.metrics.synced.set(0);
        let finished = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(FINISH_WITHIN, finished).await.is_err() {
            tracing::warn!("calls to the API server were cut off");
        }
    }

    async fn terms(&self, elector: &Elector, turn: Turn, gate: &watch::Sender<bool>) {
        let mut leadership = elector.leadership();
        if turn == Turn::Always {
            gate.send_replace(true);
            let told = self.tell_again(elector, leadership);
            tokio::join!(self.term(elector), told);
            return;
        }
        loop {
            // The elector lives as long as we hold it.
            if leadership.wait_for(|it| *it == Leadership::Leading).await.is_err() {
                return;
            }
            tokio::select! {
                () = self.term(elector) => {}
                () = guard(leadership.clone(), gate) => {}
            }
            gate.send_replace(false);
            self.shared.queue.close();
            self.shared.metrics.leader.set(0);
            self.shared.metrics.synced.set(0);
        }
    }

    /// Says in every lease that we come to hold whether all pods have been seen to: what we said
    /// before is forgotten while another holds it, as our predecessor does at first.
    async fn tell_again(&self, elector: &Elector, mut leadership: watch::Receiver<Leadership>) {
        while leadership.wait_for(|it| *it == Leadership::Leading).await.is_ok() {
            if self.shared.metrics.synced.get() == 1 {
                elector.annotate(keys::SYNCED, elector.identity());
            }
            if leadership.wait_for(|it| *it != Leadership::Leading).await.is_err() {
                return;
            }
        }
    }

    /// To the end of the leadership: a pass over all pods, and another whenever the CRD was
    /// gone, for its requests went with it.
    async fn term(&self, elector: &Elector) {
        let shared = &self.shared;
        shared.metrics.leader.set(1);
        shared.queue.open();
        loop {
            // What was said before, in this term or an earlier one, does not hold for this pass.
            self.say_synced(elector, false);
            shared.world.until_requests_served().await;
            tokio::select! {
                () = self.keep_up(elector) => {}
                () = shared.world.until_requests_gone() => {
                    tracing::warn!("the CRD of requests is gone; every pod is seen to anew after it");
                }
            }
        }
    }

    /// A whole pass, then one at each resync.
    async fn keep_up(&self, elector: &Elector) {
        let shared = &self.shared;
        let pods = shared.all_pods();
        lock(&shared.pass).begin(pods.iter().cloned());
        pods.into_iter().for_each(|pod| shared.queue.add(pod));
        // In a loop: the word may be left over from an earlier pass.
        while !lock(&shared.pass).is_over() {
            shared.passed.notified().await;
        }
        tracing::info!("every pod has been seen to");
        *lock(&shared.writes) = Writes::default();
        self.say_synced(elector, true);
        tokio::join!(self.look_again(), self.vouch(elector));
    }

    /// A look at everything at each resync.
    async fn look_again(&self) {
        let shared = &self.shared;
        shared.delete_orphans().await;
        let mut resync =
            tokio::time::interval_at(Instant::now() + self.options.resync, self.options.resync);
        resync.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            resync.tick().await;
            shared.all_pods().into_iter().for_each(|pod| shared.queue.add(pod));
            shared.delete_orphans().await;
        }
    }

    /// Takes the word back while the server takes none of our writes.
    async fn vouch(&self, elector: &Elector) {
        let mut synced = true;
        loop {
            tokio::time::sleep(LOOK_AT_WRITES).await;
            let refused = lock(&self.shared.writes).are_refused(Instant::now());
            if refused == synced {
                synced = !refused;
                self.say_synced(elector, synced);
                if refused {
                    tracing::error!(
                        "no CapacityRequest can be written; the operator holds its roll-ups \
                         until one can"
                    );
                } else {
                    tracing::info!("CapacityRequests can be written again");
                }
            }
        }
    }

    fn say_synced(&self, elector: &Elector, synced: bool) {
        // In this order: whoever gets the lease in between looks at the gauge.
        self.shared.metrics.synced.set(i64::from(synced));
        elector.annotate(keys::SYNCED, if synced { elector.identity() } else { "" });
    }
}

/// Lets the workers go on while the lease is ours, halts them while nobody knows, and returns
/// when it is another's.
async fn guard(mut leadership: watch::Receiver<Leadership>, gate: &watch::Sender<bool>) {
    loop {
        let now = *leadership.borrow_and_update();
        gate.send_replace(now == Leadership::Leading);
        if now == Leadership::Standby || leadership.changed().await.is_err() {
            return;
        }
    }
}

impl Shared {
    fn all_pods(&self) -> Vec<ObjectKey> {
        self.world.pods.with(|pods| pods.keys().cloned().collect())
    }

    async fn work(&self, mut open: watch::Receiver<bool>, shutdown: Shutdown) {
        loop {
            let next = async {
                // An error means that the controller is being dropped.
                open.wait_for(|open| *open).await.ok()?;
                Some(self.queue.next().await)
            };
            let key = tokio::select! {
                biased;
                () = shutdown.requested() => return,
                key = next => match key {
                    Some(key) => key,
                    None => return,
                },
            };
            // The lease may have become unsure while there was nothing to do.
            if !*open.borrow() {
                self.queue.put_back(key);
                continue;
            }
            let begun = Instant::now();
            let seen = self.reconcile(&key).await;
            self.metrics.reconciled(seen.outcome, begun.elapsed());
            if seen.settled {
                lock(&self.writes).settled(&key);
                if lock(&self.pass).settle(&key) {
                    self.passed.notify_one();
                }
            }
            self.queue.done(key, seen.done);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
