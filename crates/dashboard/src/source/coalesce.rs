//! Askers of the same within two seconds share one call of a source.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use jiff::Timestamp;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use crate::{api::Refusal, metrics::Calls as Counted};

/// For how long an answer is shared.
pub(crate) const SHARED_FOR: Duration = Duration::from_secs(2);

/// Answers of one kind that are held for those who may yet ask the same.
const HELD: usize = 256;

/// An answer of a source, and when it was asked.
#[derive(Debug)]
pub(crate) struct Fetched<V> {
    /// The answer.
    pub(crate) value: V,
    /// When the source was asked.
    pub(crate) at: Timestamp,
}

/// What sharers get.
pub(crate) type Outcome<V> = Result<Arc<Fetched<V>>, Refusal>;
type Call<V> = Shared<BoxFuture<'static, Outcome<V>>>;

/// Calls of one kind, by what was asked.
pub(crate) struct Coalesced<K, V> {
    calls: Arc<Mutex<Calls<K, V>>>,
    counted: Counted,
}

struct Calls<K, V> {
    entries: HashMap<K, Entry<V>>,
    next: u64,
    /// What answers that are held may weigh together, and what one weighs.
    held: usize,
    weigh: fn(&V) -> usize,
}

struct Entry<V> {
    turn: u64,
    call: Call<V>,
    asked: Weak<Asked>,
    answered: Arc<AtomicBool>,
    /// Of its answer, once it is here.
    weight: usize,
}

/// A call for as long as somebody waits for it.
struct Asked(AbortHandle);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lock<K, V>(calls: &Mutex<Calls<K, V>>) -> MutexGuard<'_, Calls<K, V>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K, V> Coalesced<K, V>
where
    K: Eq + Hash + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    /// None so far.
    #[must_use]
    pub(crate) fn new(counted: &Counted) -> Self {
        Self::holding(counted, HELD, |_| 1)
    }

    /// None so far, and never more answers without an asker than may weigh so much.
    #[must_use]
    pub(crate) fn holding(counted: &Counted, held: usize, weigh: fn(&V) -> usize) -> Self {
        let calls = Calls { entries: HashMap::new(), next: 0, held, weigh };
        Self { calls: Arc::new(Mutex::new(calls)), counted: counted.clone() }
    }

    /// The answer to `key`: a shared one, or that of the call made here. The call is bounded by
    /// `within`. It goes on when its first asker leaves and others have joined, and ends with the
    /// last of them.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        within: Duration,
        fetch: impl FnOnce() -> F + Send,
    ) -> Outcome<V>
    where
        F: Future<Output = Result<V, Refusal>> + Send + 'static,
    {
        let (call, _asked) = {
            let mut calls = lock(&self.calls);
            match calls.entries.get(&key).and_then(Entry::join) {
                Some(joined) => joined,
                None => {
                    let turn = calls.next;
                    calls.next += 1;
                    let (entry, asked) = self.start(key.clone(), turn, within, fetch());
                    let call = entry.call.clone();
                    calls.entries.insert(key, entry);
                    (call, Some(asked))
                }
            }
        };
        call.await
    }

    fn start<F>(&self, key: K, turn: u64, within: Duration, fetch: F) -> (Entry<V>, Arc<Asked>)
    where
        F: Future<Output = Result<V, Refusal>> + Send + 'static,
    {
        let (calls, counted) = (self.calls.clone(), self.counted.clone());
        let source = counted.source;
        let (at, begun) = (Timestamp::now(), Instant::now());
        let answered = Arc::new(AtomicBool::new(false));
        let here = answered.clone();
        let task = tokio::spawn(async move {
            let seconds = within.as_secs();
            let late = |_| Err(Refusal::failed(source, format!("no answer within {seconds} s")));
            let outcome = tokio::time::timeout(within, fetch).await.unwrap_or_else(late);
            counted.ended(&outcome);
            here.store(true, Ordering::Release);
            outcome.map(|value| Arc::new(Fetched { value, at }))
        });
        let asked = Arc::new(Asked(task.abort_handle()));
        let task = task
            .map(move |joined| joined.unwrap_or_else(|error| Err(Refusal::failed(source, error))));
        let call = task.boxed().shared();
        let (ended, here) = (call.clone(), answered.clone());
        // Large answers must not outlive their use.
        tokio::spawn(async move {
            let outcome = ended.await;
            if here.load(Ordering::Acquire) {
                lock(&calls).answered(&key, turn, &outcome);
                drop(outcome);
                sleep_until(begun + SHARED_FOR).await;
            }
            lock(&calls).forget(&key, turn);
        });
        let waiting = Arc::downgrade(&asked);
        (Entry { turn, call, asked: waiting, answered, weight: 0 }, asked)
    }
}

impl<V> Entry<V> {
    /// The call with what keeps it up; none if it has been given up.
    fn join(&self) -> Option<(Call<V>, Option<Arc<Asked>>)> {
        let asked = self.asked.upgrade();
        let joined = asked.is_some() || self.answered.load(Ordering::Acquire);
        joined.then(|| (self.call.clone(), asked))
    }
}

impl<K: Eq + Hash + Clone, V> Calls<K, V> {
    /// An answer is here. The oldest ones make room for it.
    fn answered(&mut self, key: &K, turn: u64, outcome: &Outcome<V>) {
        let weight = outcome.as_ref().map_or(1, |answer| (self.weigh)(&answer.value).max(1));
        if let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.turn == turn) {
            entry.weight = weight;
        }
        let mut all: usize = self.entries.values().map(|entry| entry.weight).sum();
        while all > self.held {
            let here = self.entries.iter().filter(|(_, entry)| entry.weight > 0);
            let Some((oldest, entry)) = here.min_by_key(|(_, entry)| entry.turn) else { break };
            all -= entry.weight;
            let oldest = oldest.clone();
            self.entries.remove(&oldest);
        }
    }

    fn forget(&mut self, key: &K, turn: u64) {
        if self.entries.get(key).is_some_and(|entry| entry.turn == turn) {
            self.entries.remove(key);
        }
    }
}

impl<K, V> fmt::Debug for Coalesced<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coalesced").field("source", &self.counted.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{api::Source, metrics::Metrics};

    fn shared<K, V>(source: Source) -> Coalesced<K, V>
    where
        K: Eq + Hash + Clone + Send + 'static,
        V: Send + Sync + 'static,
    {
        Coalesced::new(&Metrics::default().calls(source))
    }

    const WITHIN: Duration = Duration::from_secs(5);

    fn counting(calls: &Arc<AtomicUsize>) -> BoxFuture<'static, Result<usize, Refusal>> {
        let calls = calls.clone();
        async move { Ok(calls.fetch_add(1, Ordering::SeqCst)) }.boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_serves_everybody_for_two_seconds() {
        let (shared, calls) = (shared(Source::Shard), Arc::new(AtomicUsize::new(0)));
        let ask = |key: &'static str| shared.get(key, WITHIN, || counting(&calls));
        assert_eq!(ask("a").await.unwrap().value, 0);
        tokio::time::advance(Duration::from_millis(1_900)).await;
        assert_eq!(ask("a").await.unwrap().value, 0);
        assert_eq!(ask("b").await.unwrap().value, 1);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(ask("a").await.unwrap().value, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_bounded_and_shared() {
        let shared = shared::<&str, ()>(Source::Coordinator);
        let ask = || shared.get("a", WITHIN, std::future::pending);
        let begun = Instant::now();
        let (first, second) = tokio::join!(ask(), ask());
        assert_eq!(begun.elapsed().as_secs(), WITHIN.as_secs());
        assert_eq!(first.unwrap_err(), second.unwrap_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_asker_who_leaves_takes_nobody_along() {
        let (shared, calls) = (shared(Source::Shard), Arc::new(AtomicUsize::new(0)));
        let slow = || {
            let calls = calls.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(calls.fetch_add(1, Ordering::SeqCst))
            }
        };
        let left = tokio::time::timeout(Duration::from_millis(10), shared.get("a", WITHIN, slow));
        left.await.unwrap_err();
        assert_eq!(shared.get("a", WITHIN, slow).await.unwrap().value, 0);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_forgotten() {
        let (shared, calls) = (shared(Source::Shard), Arc::new(AtomicUsize::new(0)));
        let _ = shared.get("a", WITHIN, || counting(&calls)).await;
        tokio::time::sleep(SHARED_FOR + Duration::from_millis(1)).await;
        assert!(shared.calls.lock().unwrap().entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_with_the_last_who_waits_for_it() {
        let shared = shared(Source::Shard);
        let running = Arc::new(());
        let hang = || {
            let running = running.clone();
            async move {
                std::future::pending::<()>().await;
                drop(running);
                Ok(())
            }
        };
        let soon = Duration::from_millis(10);
        let first = tokio::time::timeout(soon, shared.get("a", WITHIN, hang));
        let second = tokio::time::timeout(2 * soon, shared.get("a", WITHIN, hang));
        let seen = async {
            tokio::time::sleep(soon + soon / 2).await;
            Arc::strong_count(&running)
        };
        let (first, second, meanwhile) = tokio::join!(first, second, seen);
        assert!(first.is_err() && second.is_err());
        assert_eq!(meanwhile, 2, "one who leaves takes nobody along");
        tokio::time::sleep(soon).await;
        assert_eq!(Arc::strong_count(&running), 1);
        assert!(shared.calls.lock().unwrap().entries.is_empty());
        // Who asks again gets an answer and not the end of that.
        shared.get("a", WITHIN, || async { Ok(()) }).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_bounded() {
        let counted = Metrics::default().calls(Source::Shard);
        let shared = Coalesced::holding(&counted, 10, |weight: &usize| *weight);
        let calls = AtomicUsize::new(0);
        let ask = async |weight: usize| {
            let fetch = || {
                calls.fetch_add(1, Ordering::SeqCst);
                async move { Ok(weight) }
            };
            assert_eq!(shared.get(weight, WITHIN, fetch).await.unwrap().value, weight);
            // Its weight is known soon after.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let calls = shared.calls.lock().unwrap();
            let mut held: Vec<usize> = calls.entries.keys().copied().collect();
            held.sort_unstable();
            held
        };
        assert_eq!(ask(4).await, [4]);
        assert_eq!(ask(5).await, [4, 5]);
        assert_eq!(ask(4).await, [4, 5]);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!(ask(3).await, [3, 5]);
        assert!(ask(11).await.is_empty());
    }
}
