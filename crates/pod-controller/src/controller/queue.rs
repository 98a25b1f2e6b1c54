//! Pods that must be looked at: each by one worker at a time, and again after a failure.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_in_cluster::ObjectKey;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{sync::Notify, time::Instant};

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// Rest after a write. Somebody who writes the same object back (a webhook, a second controller
/// with a stale cache) must not make us race him.
const REST: Duration = Duration::from_millis(50);

/// A write that no event has shown by then is looked for. Undone while the watch was broken, it
/// is in no list, and nothing would ever tell.
const UNSEEN: Duration = Duration::from_secs(4);

/// How a look at a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Nothing more to do until something changes.
    Settled,
    /// The same after a write.
    Wrote,
    /// Look again then, though nothing changes.
    AgainAt(Instant),
    /// Try again, later each time.
    Failed,
}

/// Keys in the order they came, each in one place only.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Notify,
    depth: Gauge,
}

#[derive(Debug, Default)]
struct State {
    /// Whether anything is taken in.
    open: bool,
    ready: VecDeque<ObjectKey>,
    entries: HashMap<ObjectKey, Entry>,
    /// Entries whose place is no longer this `Waiting` are out of date.
    later: BinaryHeap<Reverse<(Instant, ObjectKey)>>,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ready,
    Running,
    /// Something changed meanwhile.
    RunningStale,
    Waiting(Instant),
    /// Not before then.
    Resting {
        until: Instant,
        asked: bool,
    },
}

impl Queue {
    /// An empty one that takes nothing in yet.
    #[must_use]
    pub(crate) fn new(depth: Gauge) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), depth }
    }

    /// Takes keys in from now on.
    pub(crate) fn open(&self) {
        self.state().open = true;
    }

    /// Forgets everything and takes nothing in.
    pub(crate) fn close(&self) {
        *self.state() = State::default();
        self.depth.set(0);
    }

    /// Asks for a look at this pod.
    pub(crate) fn add(&self, key: ObjectKey) {
        let mut state = self.state();
        if !state.open {
            return;
        }
        match state.entries.get_mut(&key).map(|entry| &mut entry.place) {
            Some(Place::Ready | Place::RunningStale) => return,
            Some(place @ Place::Running) => {
                *place = Place::RunningStale;
                return;
            }
            Some(Place::Resting { asked, .. }) => {
                *asked = true;
                return;
            }
            // What changed may be what it failed for.
            Some(place @ Place::Waiting(_)) => *place = Place::Ready,
            None => {
                let entry = Entry { place: Place::Ready, failures: 0 };
                state.entries.insert(key.clone(), entry);
            }
        }
        self.push(&mut state, key);
    }

    /// The next pod to look at; tell [`Queue::done`] how it went.
    pub(crate) async fn next(&self) -> ObjectKey {
        loop {
            // Before the look, so that nothing that comes after it is missed.
            let woken = self.wake.notified();
            let due = match self.take(Instant::now()) {
                Ok(key) => return key,
                Err(due) => due,
            };
            match due {
                Some(due) => tokio::select! {
                    () = woken => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => woken.await,
            }
        }
    }

    /// The next key, or when there may be one.
    fn take(&self, now: Instant) -> Result<ObjectKey, Option<Instant>> {
        let mut state = self.state();
        while let Some(Reverse((at, _))) = state.later.peek()
            && *at <= now
            && let Some(Reverse((at, key))) = state.later.pop()
        {
            let Some(entry) = state.entries.get_mut(&key) else { continue };
            match entry.place {
                Place::Waiting(due) if due == at => {}
                Place::Resting { until, asked: true } if until == at => {}
                Place::Resting { until, asked: false } if until == at => {
                    entry.place = Place::Waiting(at + UNSEEN);
                    state.later.push(Reverse((at + UNSEEN, key)));
                    continue;
                }
                _ => continue,
            }
            entry.place = Place::Ready;
            self.push(&mut state, key);
        }
        let Some(key) = state.ready.pop_front() else {
            return Err(state.later.peek().map(|Reverse((at, _))| *at));
        };
        self.depth.set(count(state.ready.len()));
        if let Some(entry) = state.entries.get_mut(&key) {
            entry.place = Place::Running;
        }
        Ok(key)
    }

    /// Ends the look at a pod.
    pub(crate) fn done(&self, key: ObjectKey, how: Done) {
        let mut state = self.state();
        // Closed meanwhile.
        let Some(entry) = state.entries.get_mut(&key) else { return };
        entry.failures = if how == Done::Failed { entry.failures.saturating_add(1) } else { 0 };
        let asked = entry.place == Place::RunningStale;
        if how == Done::Wrote {
            let until = Instant::now() + REST;
            entry.place = Place::Resting { until, asked };
            state.later.push(Reverse((until, key)));
            return self.wake.notify_one();
        }
        if asked {
            entry.place = Place::Ready;
            return self.push(&mut state, key);
        }
        let at = match how {
            Done::Settled | Done::Wrote => {
                state.entries.remove(&key);
                return;
            }
            Done::AgainAt(at) => at,
            Done::Failed => Instant::now() + retry(entry.failures),
        };
        entry.place = Place::Waiting(at);
        state.later.push(Reverse((at, key)));
        // Somebody may be asleep until later than that.
        self.wake.notify_one();
    }

    /// Gives a key back unseen.
    pub(crate) fn put_back(&self, key: ObjectKey) {
        self.add(key.clone());
        self.done(key, Done::Settled);
    }

    fn push(&self, state: &mut State, key: ObjectKey) {
        state.ready.push_back(key);
        self.depth.set(count(state.ready.len()));
        self.wake.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// 5 ms, doubled with every failure, up to 60 s.
fn retry(failures: u32) -> Duration {
    let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_RETRY.saturating_mul(doubled).min(LAST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        let queue = Queue::new(Gauge::default());
        queue.open();
        queue
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("apps", name)
    }

    fn take(queue: &Queue) -> Option<ObjectKey> {
        queue.take(Instant::now()).ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_worker_per_pod_at_a_time() {
        let queue = queue();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.depth.get(), 2);
        assert_eq!(take(&queue), Some(key("a")));
        queue.add(key("a"));
        assert_eq!(take(&queue), Some(key("b")));
        assert_eq!(take(&queue), None, "a is being looked at");
        queue.done(key("a"), Done::Settled);
        assert_eq!(take(&queue), Some(key("a")), "it changed meanwhile");
        queue.done(key("a"), Done::Settled);
        queue.done(key("b"), Done::Settled);
        assert_eq!(take(&queue), None);
        assert!(queue.state().entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time() {
        let queue = queue();
        queue.add(key("a"));
        let mut waits = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            assert_eq!(queue.next().await, key("a"));
            waits.push(begun.elapsed().as_millis());
            queue.done(key("a"), Done::Failed);
        }
        let expected =
            [0, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 40960, 60000];
        assert_eq!(waits[..16], expected);
        assert!(waits[16..].iter().all(|wait| *wait == 60_000));
        // A change does not wait, and a success forgets.
        queue.add(key("a"));
        assert_eq!(take(&queue), Some(key("a")));
        queue.done(key("a"), Done::Settled);
        queue.add(key("a"));
        assert_eq!(take(&queue), Some(key("a")));
        queue.done(key("a"), Done::Failed);
        let begun = Instant::now();
        queue.next().await;
        assert_eq!(begun.elapsed(), FIRST_RETRY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_followed_by_a_rest() {
        let queue = queue();
        for changed_meanwhile in [false, true] {
            queue.add(key("a"));
            assert_eq!(queue.next().await, key("a"));
            let begun = Instant::now();
            if changed_meanwhile {
                queue.add(key("a"));
            }
            queue.done(key("a"), Done::Wrote);
            queue.add(key("a"));
            assert_eq!(queue.next().await, key("a"));
            assert_eq!(begun.elapsed(), REST);
            queue.done(key("a"), Done::Settled);
            assert!(queue.state().entries.is_empty(), "forgotten when all is well");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nothing_shows_is_looked_for() {
        let queue = queue();
        queue.add(key("a"));
        assert_eq!(queue.next().await, key("a"));
        let begun = Instant::now();
        queue.done(key("a"), Done::Wrote);
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(begun.elapsed(), REST + UNSEEN);
        queue.done(key("a"), Done::Wrote);
        tokio::time::sleep(2 * REST).await;
        queue.add(key("a"));
        assert_eq!(take(&queue), Some(key("a")), "an event that shows it comes first");
        queue.done(key("a"), Done::Settled);
        tokio::time::sleep(2 * UNSEEN).await;
        assert_eq!(take(&queue), None);
        assert!(queue.state().entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_queue_takes_nothing_and_forgets() {
        let queue = queue();
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(take(&queue), Some(key("a")));
        queue.close();
        queue.done(key("a"), Done::Failed);
        queue.add(key("c"));
        queue.open();
        assert_eq!(take(&queue), None);
        queue.add(key("a"));
        assert_eq!(take(&queue), Some(key("a")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_look_wakes_who_sleeps() {
        let queue = std::sync::Arc::new(queue());
        let other = queue.clone();
        let waiting = tokio::spawn(async move { other.next().await });
        tokio::task::yield_now().await;
        queue.add(key("a"));
        assert_eq!(waiting.await.unwrap(), key("a"));
        let other = queue.clone();
        let waiting = tokio::spawn(async move { other.next().await });
        tokio::task::yield_now().await;
        let begun = Instant::now();
        queue.done(key("a"), Done::AgainAt(begun + Duration::from_secs(7)));
        assert_eq!(waiting.await.unwrap(), key("a"));
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
    }
}
