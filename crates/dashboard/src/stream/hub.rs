//! What all viewers share: who is here, what they want to be told, and what was told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::DecisionRecord;
use bytes::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, watch},
    time::timeout,
};

use super::{
    board::{Board, Since},
    event::{Event, Kind, Topic},
    feed::supervise,
    watches::Watched,
};
use crate::{App, api::Refusal, source::shards::WITHIN, view::decision::Decision};

/// Viewers at once.
const MOST_VIEWERS: usize = 512;

/// Events that a slow viewer may lag behind.
pub(super) const QUEUE: usize = 4_096;

/// Tells viewers what happens.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Tells this process's numbers from another's.
    pub(super) boot: String,
    pub(super) stop: Shutdown,
    board: Mutex<Board>,
    sender: broadcast::Sender<Arc<Event>>,
    viewers: Arc<Semaphore>,
    open: Gauge,
    pub(super) wanted: Mutex<BTreeMap<Topic, usize>>,
    /// Where the logs of shards end, by their last frames.
    pub(super) heads: watch::Sender<BTreeMap<String, i64>>,
    pub(super) changed: Notify,
    pub(super) running: Mutex<bool>,
}

/// A viewer's end.
#[derive(Debug)]
pub(crate) struct Subscriber {
    hub: Arc<Hub>,
    pub(super) topics: Vec<Topic>,
    pub(super) backlog: Vec<Arc<Event>>,
    pub(super) missed: bool,
    pub(super) receiver: broadcast::Receiver<Arc<Event>>,
    _place: OwnedSemaphorePermit,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Watches nobody yet.
    #[must_use]
    pub(crate) fn new(boot: String, stop: Shutdown, open: Gauge) -> Self {
        Self {
            boot,
            stop,
            board: Mutex::default(),
            sender: broadcast::Sender::new(QUEUE),
            viewers: Arc::new(Semaphore::new(MOST_VIEWERS)),
            open,
            wanted: Mutex::default(),
            heads: watch::Sender::default(),
            changed: Notify::new(),
            running: Mutex::new(false),
        }
    }

    /// A viewer of these topics, who has seen what the id says.
    pub(crate) fn subscribe(
        app: &Arc<App>,
        topics: Vec<Topic>,
        last_id: Option<&str>,
    ) -> Result<Subscriber, Refusal> {
        let subscriber = app.hub.join(topics, last_id)?;
        app.hub.watch(app);
        Ok(subscriber)
    }

    /// The same, whether or not anything is watched for them.
    pub(super) fn join(
        self: &Arc<Self>,
        topics: Vec<Topic>,
        last_id: Option<&str>,
    ) -> Result<Subscriber, Refusal> {
        let busy = |_| Refusal::Busy(format!("{MOST_VIEWERS} viewers are connected; poll instead"));
        let place = self.viewers.clone().try_acquire_owned().map_err(busy)?;
        self.open.inc();
        // Before the board is looked at: a watch that ends meanwhile is told there, and one that
        // does not stays.
        self.want(&topics);
        let since = last_id.map_or(Since::New, |id| self.since(id));
        let mut board = lock(&self.board);
        let (backlog, missed) = board.backlog(&topics, since);
        let receiver = self.sender.subscribe();
        drop(board);
        Ok(Subscriber { hub: self.clone(), topics, backlog, missed, receiver, _place: place })
    }

    fn since(&self, id: &str) -> Since {
        let number = id.split_once('.').filter(|(boot, _)| *boot == self.boot);
        let number = number.and_then(|(_, number)| number.parse().ok());
        number.map_or(Since::Elsewhere, Since::Seen)
    }

    fn want(&self, topics: &[Topic]) {
        let mut wanted = lock(&self.wanted);
        for topic in topics {
            *wanted.entry(topic.clone()).or_default() += 1;
        }
        self.changed.notify_one();
    }

    /// Forgets what a watch told that has ended.
    pub(super) fn forget(&self, (topic, shard): &Watched) {
        lock(&self.board).forget(topic, shard.as_deref());
        if let (Topic::Summary, Some(shard)) = (topic, shard) {
            self.heads.send_modify(|heads| {
                heads.remove(shard);
            });
        }
    }

    pub(super) fn publish(&self, event: Event) {
        let mut board = lock(&self.board);
        // Under the lock, so that nobody who joins now gets it twice or never.
        let _ = self.sender.send(board.put(event));
    }

    pub(super) fn tell(&self, topic: Topic, shard: Option<&str>, body: &impl Serialize) {
        let Ok(data) = serde_json::to_vec(body) else { return };
        let (shard, cluster) = (shard.map(str::to_owned), String::new());
        let (kind, data) = (Kind::News, Bytes::from(data));
        self.publish(Event { number: 0, topic, shard, cluster, kind, data, scoped: None });
    }

    pub(super) fn tell_decision(&self, shard: &str, record: &DecisionRecord) {
        #[derive(Serialize)]
        struct OfShard<'a> {
            shard: &'a str,
            #[serde(flatten)]
            decision: Decision<'a>,
        }
        let json = |decision| serde_json::to_vec(&OfShard { shard, decision }).map(Bytes::from);
        let (Ok(data), Ok(scoped)) = (json(record.into()), json(Decision::scoped(record))) else {
            return;
        };
        self.publish(Event {
            number: 0,
            topic: Topic::Decisions,
            shard: Some(shard.to_owned()),
            cluster: record.cluster_id.clone(),
            kind: Kind::News,
            scoped: Some(scoped).filter(|scoped| *scoped != data),
            data,
        });
    }

    /// Says that what is watched fails, or works again. Notices of needs come from summaries, and
    /// whoever follows them alone must learn it, too.
    pub(super) fn tell_source(&self, (topic, shard): &Watched, error: Option<&str>) {
        let shard = shard.as_deref();
        self.tell_state(topic, shard, error);
        if let (Topic::Summary, Some(id)) = (topic, shard) {
            self.tell_state(&Topic::Needs(id.to_owned()), shard, error);
        }
    }

    fn tell_state(&self, topic: &Topic, shard: Option<&str>, error: Option<&str>) {
        #[derive(Serialize)]
        struct State<'a> {
            topic: &'a str,
            shard: Option<&'a str>,
            state: &'static str,
            error: Option<&'a str>,
        }
        let state = if error.is_some() { "failed" } else { "ok" };
        let body = State { topic: &topic.to_string(), shard, state, error };
        let Ok(data) = serde_json::to_vec(&body) else { return };
        let (topic, shard) = (topic.clone(), shard.map(str::to_owned));
        let (cluster, data) = (String::new(), Bytes::from(data));
        let kind = Kind::Source;
        self.publish(Event { number: 0, topic, shard, cluster, kind, data, scoped: None });
    }

    /// Where the log of a shard ends, or 0 for one that does not say in time: from now on.
    pub(super) async fn head(&self, shard: &str) -> i64 {
        let mut heads = self.heads.subscribe();
        let told = timeout(WITHIN / 2, heads.wait_for(|heads| heads.contains_key(shard))).await;
        told.ok().and_then(|heads| heads.ok()?.get(shard).copied()).unwrap_or(0)
    }

    /// Sees to it that somebody watches.
    fn watch(&self, app: &Arc<App>) {
        let mut running = lock(&self.running);
        if !*running {
            *running = true;
            tokio::spawn(supervise(Arc::downgrade(app), self.stop.clone()));
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.hub.open.dec();
        let mut wanted = lock(&self.hub.wanted);
        for topic in &self.topics {
            if let Some(count) = wanted.get_mut(topic) {
                *count -= 1;
                if *count == 0 {
                    wanted.remove(topic);
                }
            }
        }
        self.hub.changed.notify_one();
    }
}
