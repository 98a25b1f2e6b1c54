//! Watching shards and the coordinator on behalf of everybody who looks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{CycleSummary, WatchDecisionsRequest, WatchSummaryRequest};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use tonic::Request;

use super::{
    event::Topic,
    hub::{Hub, Watched, lock},
};
use crate::{
    App,
    api::Refusal,
    routes::look_at_topology,
    source::shards::WITHIN,
    view::summary::{NeedsNotice, Summary},
};

/// How often the coordinator is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Watching goes on for this long after the last viewer left: screens change.
const LINGER: Duration = Duration::from_secs(30);

/// Notices of one shard's needs come no closer than this.
const NOTICES_APART: Duration = Duration::from_secs(2);

/// Time between two attempts at a source that fails, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Tasks that end when this goes.
#[derive(Default)]
struct Tasks(BTreeMap<Watched, AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// Watches what is wanted until nobody has wanted anything for a while.
pub(super) async fn supervise(app: Weak<App>, stop: Shutdown) {
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
