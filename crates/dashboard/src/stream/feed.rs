//! Watching shards and the coordinator on behalf of everybody who looks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{CycleSummary, WatchDecisionsRequest, WatchSummaryRequest};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep, sleep_until, timeout},
};
use tonic::Request;

use super::{
    event::Topic,
    hub::{Hub, lock},
    watches::{Watched, Watches, desired, of_shards},
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
    let (mut tasks, mut watches) = (Tasks::default(), Watches::default());
    loop {
        let Some(app) = app.upgrade() else { return };
        let asks = of_shards(lock(&app.hub.wanted).keys());
        let listed = if asks { app.sources.shards.listed().await.ok() } else { None };
        let mut next = Instant::now() + LOOK;
        {
            // Held until watches have ended, so that nobody relies on one of them meanwhile.
            let wanted = lock(&app.hub.wanted);
            if listed.is_some() || !of_shards(wanted.keys()) {
                let ids = listed.iter().flat_map(|listed| listed.iter());
                let desired = desired(wanted.keys(), ids.map(|entry| entry.shard_id.as_str()));
                let changes = watches.settle(desired, Instant::now());
                for watched in changes.end {
                    if let Some(task) = tasks.0.remove(&watched) {
                        task.abort();
                    }
                    app.hub.forget(&watched);
                }
                for watched in changes.begin {
                    let task = keep_watching(Arc::downgrade(&app), watched.clone());
                    tasks.0.insert(watched, tokio::spawn(task).abort_handle());
                }
                next = watches.next_end().map_or(next, |end| end.min(next));
            }
            let mut running = lock(&app.hub.running);
            if wanted.is_empty() && watches.is_empty() {
                *running = false;
                return;
            }
        }
        let hub = app.hub.clone();
        drop(app);
        tokio::select! {
            () = sleep_until(next) => {}
            () = hub.changed.notified() => {}
            () = stop.requested() => return,
        }
    }
}

/// One watch, begun again whenever it ends.
async fn keep_watching(app: Weak<App>, watched: Watched) {
    let mut wait = RETRY.0;
    // Nobody knows until it was tried, and then both are news: who comes back may remember what
    // an earlier watch told.
    let mut works: Option<bool> = None;
    let mut after = 0;
    loop {
        let Some(app) = app.upgrade() else { return };
        let mut lived = || {
            if works.replace(true) != Some(true) {
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
        if works.replace(false) != Some(false) {
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
