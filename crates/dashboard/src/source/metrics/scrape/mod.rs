//! Metrics without Prometheus: the processes' own pages, every five seconds, an hour of them kept
//! in memory. For laptops and the demo; it knows the dashboard's questions and no others.

mod evaluate;
mod exposition;
mod store;

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use self::store::Store;
use super::{Metrics, Query, Sample, Span, Track};
use crate::source::web::Web;

/// Time between two looks, and the most that one may take.
const INTERVAL: Duration = Duration::from_secs(5);

const ACCEPT: &str = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

/// A process to scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is called: the label `pod`.
    pub name: String,
    /// Its `host:port`.
    pub addr: String,
}

impl Target {
    /// This process.
    #[must_use]
    pub fn new(name: impl Into<String>, addr: impl Into<String>) -> Self {
        Self { name: name.into(), addr: addr.into() }
    }
}

/// `NAME=ADDR`, or an address that is its own name.
impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, addr) = text.split_once('=').unwrap_or((text, text));
        if name.is_empty() {
            return Err(format!("{text:?} has no name; write shard-0=127.0.0.1:8780"));
        }
        bigfleet_net::grpc::check_address(addr).map_err(|error| error.to_string())?;
        Ok(Self::new(name, addr))
    }
}

/// Looks at every target until it is dropped.
pub(crate) struct Scraper {
    store: Arc<Mutex<Store>>,
    _tasks: JoinSet<()>,
}

impl Scraper {
    /// Begins to look.
    #[must_use]
    pub(crate) fn start(targets: Vec<Target>, web: &Web) -> Self {
        let store = Arc::new(Mutex::new(Store::new(INTERVAL)));
        let mut tasks = JoinSet::new();
        for target in targets {
            tasks.spawn(follow(target, web.clone(), store.clone()));
        }
        Self { store, _tasks: tasks }
    }
}

async fn follow(target: Target, web: Web, store: Arc<Mutex<Store>>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let uri = format!("http://{}/metrics", target.addr);
    let mut failing = false;
    loop {
        ticks.tick().await;
        let page = timeout(INTERVAL, web.get(&uri, ACCEPT)).await;
        let page = page.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        match page {
            Ok(page) => {
                let text = String::from_utf8_lossy(&page);
                let at = Timestamp::now().as_duration().as_secs_f64();
                lock(&store).add(&target.name, at, exposition::parse(&text));
                failing = false;
            }
            Err(problem) if !failing => {
                failing = true;
                tracing::warn!(target = target.name, problem, "metrics cannot be scraped");
            }
            Err(_) => {}
        }
    }
}

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics for Scraper {
    fn instant(&self, query: Query) -> BoxFuture<'static, Result<Vec<Sample>, String>> {
        let now = Timestamp::now().as_duration().as_secs_f64();
        let samples = evaluate::at(&lock(&self.store), &query, now);
        async { Ok(samples) }.boxed()
    }

    fn range(&self, query: Query, span: Span) -> BoxFuture<'static, Result<Vec<Track>, String>> {
        let tracks = evaluate::over(&lock(&self.store), &query, span);
        async { Ok(tracks) }.boxed()
    }

    fn name(&self) -> &'static str {
        "scrape"
    }
}

impl fmt::Debug for Scraper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scraper")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_and_an_address() {
        assert_eq!("shard-0=127.0.0.1:8780".parse(), Ok(Target::new("shard-0", "127.0.0.1:8780")));
        assert_eq!("localhost:1".parse(), Ok(Target::new("localhost:1", "localhost:1")));
        for wrong in ["=a:1", "a=b", "a", "a=:1"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }
}
