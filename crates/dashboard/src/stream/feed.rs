//! Watching shards and the coordinator on behalf of everybody who looks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, WatchDecisionsRequest, WatchSummaryRequest,
};
use bytes::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, watch},
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use tonic::Request;

use super::{
    board::{Board, Since},
    event::{Event, Kind, Topic},
};
use crate::{
    App,
    api::Refusal,
    routes::look_at_topology,
    source::shards::WITHIN,
    view::{
        decision::Decision,
        summary::{NeedsNotice, Summary},
    },
};

/// Viewers at once.
const MOST_VIEWERS: usize = 512;

/// Events that a slow viewer may lag behind.
const QUEUE: usize = 4_096;

/// How often the coordinator is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Watching goes on for this long after the last viewer left: screens change.
const LINGER: Duration = Duration::from_secs(30);

/// Notices of one shard's needs come no closer than this.
const NOTICES_APART: Duration = Duration::from_secs(2);

/// Time between two attempts at a source that fails, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What is watched, and where.
type Watched = (Topic, Option<String>);

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
    wanted: Mutex<BTreeMap<Topic, usize>>,
    /// Where the logs of shards end, by their last frames.
    heads: watch::Sender<BTreeMap<String, i64>>,
    changed: Notify,
    running: Mutex<bool>,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        let hub = &app.hub;
        let busy = |_| Refusal::Busy(format!("{MOST_VIEWERS} viewers are connected; poll instead"));
        let place = hub.viewers.clone().try_acquire_owned().map_err(busy)?;
        hub.open.inc();
        hub.want(&topics);
        hub.watch(app);
        let since = last_id.map_or(Since::New, |id| hub.since(id));
        let board = lock(&hub.board);
        let (backlog, missed) = board.backlog(&topics, since);
        let receiver = hub.sender.subscribe();
        drop(board);
        Ok(Subscriber { hub: hub.clone(), topics, backlog, missed, receiver, _place: place })
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

    fn publish(&self, event: Event) {
        let mut board = lock(&self.board);
        // Under the lock, so that nobody who joins now gets it twice or never.
        let _ = self.sender.send(board.put(event));
    }

    fn tell(&self, topic: Topic, shard: Option<&str>, body: &impl Serialize) {
        let Ok(data) = serde_json::to_vec(body) else { return };
        let (shard, cluster) = (shard.map(str::to_owned), String::new());
        let (kind, data) = (Kind::News, Bytes::from(data));
        self.publish(Event { number: 0, topic, shard, cluster, kind, data, scoped: None });
    }

    fn tell_decision(&self, shard: &str, record: &DecisionRecord) {
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
    fn tell_source(&self, (topic, shard): &Watched, error: Option<&str>) {
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
    async fn head(&self, shard: &str) -> i64 {
        let mut heads = self.heads.subscribe();
        let told = timeout(WITHIN / 2, heads.wait_for(|heads| heads.contains_key(shard))).await;
        told.ok().and_then(|heads| heads.ok()?.get(shard).copied()).unwrap_or(0)
    }

    /// Sees to it that somebody watches.
    fn watch(&self, app: &Arc<App>) {
        let mut running = lock(&self.running);
        if !*running {
            *running = true;
            lock(&self.board).forget();
            self.heads.send_replace(BTreeMap::new());
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

/// Tasks that end when this goes.
#[derive(Default)]
struct Tasks(BTreeMap<Watched, AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// Watches what is wanted until nobody has wanted anything for a while.
async fn supervise(app: Weak<App>, stop: Shutdown) {
    let mut tasks = Tasks::default();
    let mut idle_since: Option<Instant> = None;
    loop {
        let Some(app) = app.upgrade() else { return };
        let wanted: BTreeSet<Topic> = lock(&app.hub.wanted).keys().cloned().collect();
        let desired = desired(&app, &wanted).await;
        if let Some(desired) = desired {
            let gone: Vec<Watched> =
                tasks.0.keys().filter(|watched| !desired.contains(*watched)).cloned().collect();
            for watched in gone {
                if let Some(task) = tasks.0.remove(&watched) {
                    task.abort();
                }
                if let (topic, Some(shard)) = &watched {
                    lock(&app.hub.board).forget_shard(shard);
                    if *topic == Topic::Summary {
                        app.hub.heads.send_modify(|heads| {
                            heads.remove(shard);
                        });
                    }
                }
            }
            for watched in desired {
                let app = Arc::downgrade(&app);
                tasks
                    .0
                    .entry(watched.clone())
                    .or_insert_with(|| tokio::spawn(keep_watching(app, watched)).abort_handle());
            }
        }
        if wanted.is_empty() {
            let since = *idle_since.get_or_insert_with(Instant::now);
            let mut running = lock(&app.hub.running);
            if since.elapsed() >= LINGER && lock(&app.hub.wanted).is_empty() {
                *running = false;
                return;
            }
        } else {
            idle_since = None;
        }
        let hub = app.hub.clone();
        drop(app);
        tokio::select! {
            () = sleep(LOOK) => {}
            () = hub.changed.notified() => {}
            () = stop.requested() => return,
        }
    }
}

/// What should be watched for these topics; unknown while no shard is.
async fn desired(app: &Arc<App>, wanted: &BTreeSet<Topic>) -> Option<BTreeSet<Watched>> {
    let mut desired = BTreeSet::new();
    if wanted.contains(&Topic::Topology) {
        desired.insert((Topic::Topology, None));
    }
    let of_shards = wanted.iter().any(|topic| *topic != Topic::Topology);
    if !of_shards {
        return Some(desired);
    }
    let listed = app.sources.shards.listed().await.ok()?;
    for shard in listed.iter().map(|entry| &entry.shard_id) {
        let decisions = wanted.contains(&Topic::Decisions);
        // Its frames say as well from where on decisions are followed.
        let summary = wanted.contains(&Topic::Summary)
            || wanted.contains(&Topic::Needs(shard.clone()))
            || decisions;
        if summary {
            desired.insert((Topic::Summary, Some(shard.clone())));
        }
        if decisions {
            desired.insert((Topic::Decisions, Some(shard.clone())));
        }
    }
    Some(desired)
}

/// One watch, begun again whenever it ends.
async fn keep_watching(app: Weak<App>, watched: Watched) {
    let mut wait = RETRY.0;
    let mut failing = false;
    let mut after = 0;
    loop {
        let Some(app) = app.upgrade() else { return };
        let mut lived = || {
            if std::mem::take(&mut failing) {
                app.hub.tell_source(&watched, None);
            }
            wait = RETRY.0;
        };
        let ended = match (&watched.0, &watched.1) {
            (Topic::Summary, Some(id)) => summaries(&app, id, &mut lived).await,
            (Topic::Decisions, Some(id)) => decisions(&app, id, &mut after, &mut lived).await,
            _ => topology(&app, &mut lived).await,
        };
        let problem = match ended {
            Ok(()) => "the stream ended".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        if !std::mem::replace(&mut failing, true) {
            app.hub.tell_source(&watched, Some(&problem));
        }
        drop(app);
        sleep(wait).await;
        wait = (wait * 2).min(RETRY.1);
    }
}

async fn summaries(app: &Arc<App>, id: &str, lived: &mut impl FnMut()) -> Result<(), Refusal> {
    let shard = app.sources.shards.find(id).await?;
    let mut client = shard.observe();
    let answer = timeout(WITHIN, client.watch_summary(Request::new(WatchSummaryRequest {}))).await;
    let answer = answer.map_err(|_| shard.late())?;
    let mut frames = answer.map_err(|status| shard.refused(&status))?.into_inner();
    let mut noticed: Option<Instant> = None;
    while let Some(frame) = frames.message().await.map_err(|status| shard.refused(&status))? {
        lived();
        let head = frame.last_decision_sequence;
        app.hub.heads.send_modify(|heads| {
            heads.insert(id.to_owned(), head);
        });
        app.hub.tell(Topic::Summary, Some(id), &Summary::new(id, &frame));
        if noticed.is_none_or(|at| at.elapsed() >= NOTICES_APART) {
            noticed = Some(Instant::now());
            notice(&app.hub, id, &frame);
        }
    }
    Ok(())
}

fn notice(hub: &Hub, id: &str, frame: &CycleSummary) {
    hub.tell(Topic::Needs(id.to_owned()), Some(id), &NeedsNotice::new(id, frame));
}

async fn decisions(
    app: &Arc<App>,
    id: &str,
    after: &mut i64,
    lived: &mut impl FnMut(),
) -> Result<(), Refusal> {
    let shard = app.sources.shards.find(id).await?;
    // From now on would lose what is decided between a watch that ends and the next one.
    if *after == 0 {
        *after = app.hub.head(id).await;
    }
    let request = WatchDecisionsRequest { after_sequence: *after, ..Default::default() };
    let mut client = shard.observe();
    let answer = timeout(WITHIN, client.watch_decisions(Request::new(request))).await;
    let answer = answer.map_err(|_| shard.late())?;
    let mut records = answer.map_err(|status| shard.refused(&status))?.into_inner();
    // There may be no decision for hours; that the shard answers is enough.
    lived();
    while let Some(record) = records.message().await.map_err(|status| shard.refused(&status))? {
        *after = record.sequence;
        app.hub.tell_decision(id, &record);
    }
    Ok(())
}

async fn topology(app: &Arc<App>, lived: &mut impl FnMut()) -> Result<(), Refusal> {
    let mut last = None;
    loop {
        let now = look_at_topology(app, "").await?;
        lived();
        if last.as_ref() != Some(now.body()) {
            app.hub.tell(Topic::Topology, None, &now);
            last = Some(now.into_body());
        }
        sleep(LOOK).await;
    }
}
