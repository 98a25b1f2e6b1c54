//! What an issuer publishes, looked at once for everybody who asks.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::token::Jwk;

/// Time for one look.
const WITHIN: Duration = Duration::from_secs(10);

/// After a look that failed, nobody looks again for so long: whoever signs in meanwhile is told at
/// once what was wrong.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Its addresses and keys.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) document: Document,
    pub(super) keys: Vec<Jwk>,
}

/// Where it is asked what.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Document {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) jwks_uri: String,
}

type Looked = Result<Arc<Published>, String>;

/// The last look, and the one that is under way.
#[derive(Default)]
pub(super) struct Looks(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    known: Option<(Instant, Arc<Published>)>,
    failed: Option<(Instant, String)>,
    under_way: Option<Shared<BoxFuture<'static, Looked>>>,
}

impl Looks {
    /// What was seen no longer ago than this; what was seen before, where nothing is to be seen
    /// now, for keys outlive a bad hour of their issuer.
    pub(super) async fn get<F>(&self, no_older: Duration, look: impl FnOnce() -> F + Send) -> Looked
    where
        F: Future<Output = Result<Published, String>> + Send + 'static,
    {
        let under_way = {
            let mut state = lock(&self.0);
            if let Some((at, known)) = &state.known
                && at.elapsed() < no_older
            {
                return Ok(known.clone());
            }
            match (&state.under_way, &state.failed) {
                (Some(under_way), _) => under_way.clone(),
                (None, Some((at, problem))) if at.elapsed() < AFTER_FAILURE => {
                    return state.or_before(problem);
                }
                _ => {
                    let under_way = self.start(look());
                    state.under_way = Some(under_way.clone());
                    under_way
                }
            }
        };
        under_way.await
    }

    /// Goes on when whoever asked first has left, for others may have joined.
    fn start(
        &self,
        look: impl Future<Output = Result<Published, String>> + Send + 'static,
    ) -> Shared<BoxFuture<'static, Looked>> {
        let state = self.0.clone();
        let task = tokio::spawn(async move {
            let looked = timeout(WITHIN, look).await;
            let looked = looked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            let mut state = lock(&state);
            state.under_way = None;
            match looked {
                Ok(new) => {
                    let new = Arc::new(new);
                    (state.known, state.failed) = (Some((Instant::now(), new.clone())), None);
                    Ok(new)
                }
                Err(problem) => {
                    tracing::warn!(problem, "the issuer does not say what it publishes");
                    let looked = state.or_before(&problem);
                    state.failed = Some((Instant::now(), problem));
                    looked
                }
            }
        });
        task.map(|joined| joined.unwrap_or_else(|error| Err(error.to_string()))).boxed().shared()
    }
}

impl State {
    fn or_before(&self, problem: &str) -> Looked {
        self.known.as_ref().map(|(_, known)| known.clone()).ok_or_else(|| problem.to_owned())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Looks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Looks")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use super::*;

    const FRESH: Duration = Duration::from_secs(3600);

    fn published(name: &str) -> Published {
        let text = || name.to_owned();
        let document = Document {
            issuer: text(),
            authorization_endpoint: text(),
            token_endpoint: text(),
            jwks_uri: text(),
        };
        Published { document, keys: Vec::new() }
    }

    /// Everybody who asks at once waits for one look, and nobody in line.
    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_hangs_is_asked_once() {
        let (looks, asked) = (Looks::default(), AtomicUsize::new(0));
        let ask = || {
            looks.get(FRESH, || {
                asked.fetch_add(1, SeqCst);
                pending()
            })
        };
        let begun = Instant::now();
        let all = futures_util::future::join_all((0..20).map(|_| ask())).await;
        assert!(all.iter().all(Result::is_err));
        assert_eq!((asked.load(SeqCst), begun.elapsed().as_secs()), (1, WITHIN.as_secs()));
        // What is wrong is known by now.
        assert!(ask().await.is_err());
        assert_eq!((asked.load(SeqCst), begun.elapsed().as_secs()), (1, WITHIN.as_secs()));
        tokio::time::advance(AFTER_FAILURE).await;
        assert!(ask().await.is_err());
        assert_eq!(asked.load(SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_outlive_a_bad_hour() {
        let looks = Looks::default();
        let name = async |look: Result<Published, String>| {
            looks
                .get(FRESH, || async move { look })
                .await
                .map(|known| known.document.issuer.clone())
        };
        assert_eq!(name(Ok(published("a"))).await, Ok("a".to_owned()));
        assert_eq!(name(Ok(published("b"))).await, Ok("a".to_owned()), "fresh");
        tokio::time::advance(FRESH).await;
        assert_eq!(name(Err("down".to_owned())).await, Ok("a".to_owned()));
        assert_eq!(name(Ok(published("b"))).await, Ok("a".to_owned()), "not asked again at once");
        tokio::time::advance(AFTER_FAILURE).await;
        assert_eq!(name(Ok(published("b"))).await, Ok("b".to_owned()));
    }

    /// Its first asker left.
    #[tokio::test(start_paused = true)]
    async fn a_look_goes_on_without_its_asker() {
        let looks = Looks::default();
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(published("a"))
        };
        let left = timeout(Duration::from_secs(1), looks.get(FRESH, slow)).await;
        assert!(left.is_err());
        tokio::time::sleep(Duration::from_secs(2)).await;
        let known = looks.get(FRESH, || async { Err("asked again".to_owned()) }).await;
        assert_eq!(known.unwrap().document.issuer, "a");
    }
}
