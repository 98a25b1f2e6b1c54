use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Clock, Moment, Queue, Slots};

/// What a worker asks for when it is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing more to do until the key is marked again.
    Settled,
    /// Look again at that moment.
    Again(Moment),
}

/// The work on one key.
pub trait Work<K>: Send + Sync + 'static {
    /// Works on the key until nothing is left to do or it has to wait.
    fn work(&self, key: K) -> impl Future<Output = Verdict> + Send;
}

/// A queue and those who work it off, within the shared slots. Clones share one state.
#[derive(Debug)]
pub struct Pump<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    queue: Mutex<Queue<K>>,
    changed: Notify,
    slots: Slots,
    clock: Clock,
}

impl<K> Clone for Pump<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Clone + Eq + Hash + Ord + Send + Sync + 'static> Pump<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(slots: Slots, clock: Clock) -> Self {
        let queue = Mutex::new(Queue::default());
        Self { shared: Arc::new(Shared { queue, changed: Notify::new(), slots, clock }) }
    }

    /// Marks a key as due. Never waits.
    pub fn mark(&self, key: K, urgent: bool) {
        self.queue().mark(key, urgent);
        self.shared.changed.notify_one();
    }

    /// Keys that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue().len()
    }

    /// Whether nothing waits and nobody works.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue().is_idle()
    }

    /// Works the queue off until told to stop; workers under way are cut off then, as a killed
    /// process would cut them off, and what waits is forgotten.
    pub async fn run<W: Work<K>>(&self, work: Arc<W>, stop: &CancellationToken) {
        let workers = TaskTracker::new();
        while !stop.is_cancelled() {
            let slot = tokio::select! {
                () = stop.cancelled() => break,
                slot = self.shared.slots.take() => slot,
            };
            let next = self.queue().next(self.shared.clock.now());
            let Some(key) = next else {
                // Others may need the slot while we have nothing to do.
                drop(slot);
                self.changed(stop).await;
                continue;
            };
            let (pump, work, stop) = (self.clone(), work.clone(), stop.clone());
            workers.spawn(async move {
                let verdict = tokio::select! {
                    biased;
                    () = stop.cancelled() => Verdict::Settled,
                    verdict = work.work(key.clone()) => verdict,
                };
                drop(slot);
                let mut queue = pump.queue();
                queue.done(&key);
                if let Verdict::Again(at) = verdict {
                    queue.mark_at(key, at);
                }
                drop(queue);
                pump.shared.changed.notify_one();
            });
        }
        workers.close();
        workers.wait().await;
        self.queue().clear();
    }

    /// Returns when something may have become due.
    async fn changed(&self, stop: &CancellationToken) {
        let wakes_at = self.queue().wakes_at();
        let timer = async {
            match wakes_at {
                Some(at) => self.shared.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.shared.changed.notified() => {}
            () = timer => {}
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<K>> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
