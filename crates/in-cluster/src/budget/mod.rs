//! Calls a second to the API server, and who goes first.

mod bucket;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use bucket::Bucket;

/// What a call is for. A waiting call of an earlier lane goes before one of a later lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Holding the leader's lease; not held up by a pause either.
    Lease,
    /// Cordon and uncordon.
    Cordon,
    /// Evictions and the lists of pods that drains need.
    Eviction,
    /// UpcomingNodes, AvailableCapacities, Nodes; the pod controller's CapacityRequests.
    NodeState,
    /// Pending → Acknowledged.
    Acknowledge,
    /// Conditions and events about waiting pods.
    PodStatus,
}

const LANES: usize = Lane::PodStatus as usize + 1;

impl Lane {
    /// Lanes that leave a fifth of the burst to those before them.
    fn yields(self) -> bool {
        self >= Self::Acknowledge
    }
}

/// A token bucket whose waiters stand in lanes. Clones share one state.
///
/// Acknowledgements and what comes after them never take the last fifth of the burst: an eviction
/// that comes in the middle of ten thousand acknowledgements finds a token waiting for it.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Somebody came or a pause began; who sleeps for the next token looks again.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    waiting: [VecDeque<oneshot::Sender<()>>; LANES],
    /// Whether a task hands out tokens to those who wait.
    serving: bool,
}

impl Budget {
    /// `qps` calls a second, up to `burst` (at least one) at once. `qps` 0 is no limit; pauses
    /// hold then too.
    #[must_use]
    pub fn new(qps: u32, burst: u32) -> Self {
        let state = State {
            bucket: Bucket::new(qps, burst.max(1), Instant::now()),
            waiting: Default::default(),
            serving: false,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Waits until a call of this lane may be made. Within a lane first come, first served.
    pub async fn turn(&self, lane: Lane) {
        let turn = {
            let mut state = self.shared.lock();
            let overtakes = state.waiting[..=lane as usize].iter().any(|lane| !lane.is_empty());
            if !overtakes && state.bucket.take(lane, Instant::now()) {
                return;
            }
            let (sender, turn) = oneshot::channel();
            state.waiting[lane as usize].push_back(sender);
            if !state.serving {
                state.serving = true;
                tokio::spawn(serve(self.shared.clone()));
            }
            self.shared.changed.notify_one();
            turn
        };
        // The sender is dropped only with the runtime.
        let _ = turn.await;
    }

    /// Makes no call for a while, except for the lease: the server asked for it.
    pub fn pause(&self, duration: Duration) {
        self.shared.lock().bucket.pause(Instant::now() + duration.min(LONGEST_PAUSE));
        self.shared.changed.notify_one();
    }
}

/// A server that asks for more is looked at again all the same.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands out tokens until nobody waits.
async fn serve(shared: Arc<Shared>) {
    loop {
        let next = {
            let mut state = shared.lock();
            let Some(next) = state.hand_out(Instant::now()) else {
                state.serving = false;
                return;
            };
            next
        };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.changed.notified() => {}
        }
    }
}

impl State {
    /// Serves whom it can; when to look again, if somebody still waits.
    fn hand_out(&mut self, now: Instant) -> Option<Instant> {
        for lane in ALL {
            let queue = &mut self.waiting[lane as usize];
            while let Some(waiter) = queue.front() {
                if waiter.is_closed() {
                    queue.pop_front();
                } else if self.bucket.take(lane, now) {
                    if let Some(waiter) = queue.pop_front() {
                        // Gone this very moment: its token is lost, which only slows us.
                        let _ = waiter.send(());
                    }
                } else {
                    return Some(self.bucket.ready_at(lane, now));
                }
            }
        }
        None
    }
}

const ALL: [Lane; LANES] = [
    Lane::Lease,
    Lane::Cordon,
    Lane::Eviction,
    Lane::NodeState,
    Lane::Acknowledge,
    Lane::PodStatus,
];
