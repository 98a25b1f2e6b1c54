//! What a shard decided, and what became of it.

use std::{collections::VecDeque, time::Duration};

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::{DecisionRecord, WatchDecisionsRequest, WatchSummaryRequest};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};
use tonic::{Code, Request};

use super::Shared;
use crate::{
    api::{
        Answer, Params, Refusal, Source,
        params::{limit, required},
    },
    auth::Viewer,
    source::shards::{Shard, WITHIN},
    view::decision::Decision,
};

/// A shard sends what it has without a pause: so long a silence means that nothing is left.
const QUIET: Duration = Duration::from_millis(250);

/// A sequence number is an epoch and, in so many bits, a count (shard chapter §10).
const SEQUENCE_BITS: u32 = 40;

/// From the oldest record kept.
const OLDEST: i64 = -1;

/// Which decisions.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Which {
    shard: String,
    after: Option<String>,
    kind: String,
    cluster: String,
    machine: String,
    outcome: String,
    min_priority: i32,
    limit: Option<u32>,
}

#[derive(Serialize)]
struct Page<'a> {
    shard: &'a str,
    decisions: Vec<Decision<'a>>,
    next: Option<String>,
    more: bool,
    gap: bool,
}

/// Records read from a shard.
pub(super) struct Read {
    pub(super) records: VecDeque<DecisionRecord>,
    /// There may be more after them.
    pub(super) more: bool,
    /// Older ones were lost.
    pub(super) gap: bool,
}

/// Which end of what is kept is wanted.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    First,
    Last,
}

/// Where to begin to find the newest: with the first record of the shard's present process, for its
/// audit file may hold years.
pub(super) async fn newest_from(shard: &Shard) -> Result<i64, Refusal> {
    let mut client = shard.observe();
    let first = async {
        let answer = client.watch_summary(Request::new(WatchSummaryRequest {})).await?;
        answer.into_inner().message().await
    };
    match timeout(WITHIN / 2, first).await {
        Ok(Ok(Some(frame))) if frame.shard_epoch > 0 => {
            Ok(frame.shard_epoch.saturating_mul(1 << SEQUENCE_BITS))
        }
        Ok(Err(status)) => Err(shard.refused(&status)),
        // No cycle yet, and no decision of this process.
        Ok(Ok(_)) | Err(_) => Ok(OLDEST),
    }
}

/// Reads what a shard has kept, as far as the viewer may see it; the stream itself has no end.
pub(super) async fn read(
    shard: &Shard,
    request: WatchDecisionsRequest,
    viewer: &Viewer,
    end: End,
    limit: usize,
) -> Result<Read, Refusal> {
    let refused = |status: tonic::Status| shard.refused(&status);
    let late = || Refusal::failed(Source::Shard, format!("{}: no answer in time", shard.id));
    let answer = timeout(WITHIN, shard.observe().watch_decisions(Request::new(request))).await;
    let mut stream = answer.map_err(|_| late())?.map_err(refused)?.into_inner();
    let deadline = Instant::now() + WITHIN;
    let mut read = Read { records: VecDeque::new(), more: false, gap: false };
    while let Ok(message) = timeout(QUIET, stream.message()).await {
        let record = match message {
            Ok(Some(record)) => record,
            Ok(None) => break,
            // It wrote faster than was read here: what is here is good, and there is more.
            Err(status) if status.code() == Code::ResourceExhausted && !read.records.is_empty() => {
                read.more = true;
                break;
            }
            Err(status) => return Err(refused(status)),
        };
        read.gap |= record.gap && read.records.is_empty();
        if !viewer.sees(&record.cluster_id) {
            continue;
        }
        if read.records.len() == limit {
            if end == End::First {
                read.more = true;
                break;
            }
            read.records.pop_front();
        }
        read.records.push_back(record);
        if Instant::now() >= deadline {
            read.more = true;
            break;
        }
    }
    Ok(read)
}

/// What did BigFleet just do, and why?
pub(super) async fn decisions(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let id = required("shard", &which.shard)?;
    viewer.check(&which.cluster)?;
    let limit = limit(which.limit, 500, 5_000)? as usize;
    let (after, end) = match which.after.as_deref().filter(|after| !after.is_empty()) {
        None => (0, End::Last),
        Some(after) => {
            let bad = || Refusal::BadParameter(format!("after {after:?}: not a sequence number"));
            let after: i64 = after.parse().map_err(|_| bad())?;
            // 0 would mean to wait for what comes, and nothing would.
            (if after <= 0 { OLDEST } else { after }, End::First)
        }
    };
    let request = WatchDecisionsRequest {
        after_sequence: after,
        kinds: which.kind.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned).collect(),
        cluster_id: which.cluster.clone(),
        machine_id: which.machine.clone(),
        outcome: which.outcome.clone(),
        min_priority: which.min_priority,
    };
    let at = Timestamp::now();
    let shard = app.sources.shards.find(id).await?;
    let request = match end {
        End::Last => {
            WatchDecisionsRequest { after_sequence: newest_from(&shard).await?, ..request }
        }
        End::First => request,
    };
    let read = read(&shard, request, &viewer, end, limit).await?;
    let given = which.after.filter(|after| !after.is_empty() && after != "0" && after != "-1");
    let last = read.records.back().map(|record| record.sequence.to_string());
    let body = Page {
        shard: id,
        decisions: read.records.iter().map(Decision::from).collect(),
        next: last.or(given),
        more: read.more,
        gap: read.gap,
    };
    Ok(Answer::at(at, body).into_response())
}
