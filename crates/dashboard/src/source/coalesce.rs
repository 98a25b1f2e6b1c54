//! Askers of the same within two seconds share one call of a source.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use crate::{api::Refusal, metrics::Calls as Counted};

/// For how long an answer is shared.
pub(crate) const SHARED_FOR: Duration = Duration::from_secs(2);

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
    running: HashMap<K, (u64, Call<V>)>,
    next: u64,
}

impl<K, V> Coalesced<K, V>
where
    K: Eq + Hash + Clone + Send + 'static,
    V: Send + Sync + 'static,
{
    /// None so far.
    #[must_use]
    pub(crate) fn new(counted: &Counted) -> Self {
        let calls = Calls { running: HashMap::new(), next: 0 };
        Self { calls: Arc::new(Mutex::new(calls)), counted: counted.clone() }
    }

    /// The answer to `key`: a shared one, or that of the call made here. The call is bounded
    /// by `within` and goes on when its first asker leaves, for others may have joined.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        within: Duration,
        fetch: impl FnOnce() -> F + Send,
    ) -> Outcome<V>
    where
        F: Future<Output = Result<V, Refusal>> + Send + 'static,
    {
        let call = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            match calls.running.get(&key) {
                Some((_, call)) => call.clone(),
                None => {
                    let turn = calls.next;
                    calls.next += 1;
                    let call = self.start(key.clone(), turn, within, fetch());
                    calls.running.insert(key, (turn, call.clone()));
                    call
                }
            }
        };
        call.await
    }

    fn start<F>(&self, key: K, turn: u64, within: Duration, fetch: F) -> Call<V>
    where
        F: Future<Output = Result<V, Refusal>> + Send + 'static,
    {
        let (calls, counted) = (self.calls.clone(), self.counted.clone());
        let source = counted.source;
        let (at, begun) = (Timestamp::now(), Instant::now());
        let task = tokio::spawn(async move {
            let seconds = within.as_secs();
            let late = |_| Err(Refusal::failed(source, format!("no answer within {seconds} s")));
            let outcome = tokio::time::timeout(within, fetch).await.unwrap_or_else(late);
            counted.ended(&outcome);
            outcome.map(|value| Arc::new(Fetched { value, at }))
        });
        let task = task
            .map(move |joined| joined.unwrap_or_else(|error| Err(Refusal::failed(source, error))));
        let call = task.boxed().shared();
        let ended = call.clone();
        // Large answers must not outlive their use.
        tokio::spawn(async move {
            let _ = ended.await;
            sleep_until(begun + SHARED_FOR).await;
            let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.running.get(&key).is_some_and(|(other, _)| *other == turn) {
                calls.running.remove(&key);
            }
        });
        call
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
        assert!(shared.calls.lock().unwrap().running.is_empty());
    }
}
