//! What a shard decided, and what became of it.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::DecisionRecord;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::{
    api::{
        Answer, Params, Refusal,
        params::{limit, required},
    },
    auth::Viewer,
    source::decisions::{KEPT, Stretch, Wanted},
    view::decision::Decision,
};

/// So many times the number that is wanted are looked at first, where not all are wanted.
const FEW: usize = 8;

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

impl Which {
    fn wanted(&self, viewer: &Viewer) -> Wanted {
        let kinds = self.kind.split(',').filter(|kind| !kind.is_empty());
        let wanted = Wanted {
            kinds: kinds.map(str::to_owned).collect(),
            cluster: self.cluster.clone(),
            machine: self.machine.clone(),
            outcome: self.outcome.clone(),
            min_priority: self.min_priority,
            ..Wanted::default()
        };
        wanted.seen_by(viewer)
    }
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
    let after = match which.after.as_deref().filter(|after| !after.is_empty()) {
        None => None,
        Some(after) => {
            let bad = || Refusal::BadParameter(format!("after {after:?}: not a sequence number"));
            Some(after.parse::<i64>().map_err(|_| bad())?)
        }
    };
    let wanted = which.wanted(&viewer);
    let shards = &app.sources.shards;
    let read = match after {
        Some(after) => shards.decisions(id, Stretch::After(after, limit), wanted.clone()).await?,
        None => {
            // Where some are left out, there is no saying how many must be looked at: few, then
            // all. They are read for everybody, whatever is left out.
            let few = if wanted.all() { limit } else { limit.saturating_mul(FEW) };
            let newest = |count| shards.decisions(id, Stretch::newest(count), Wanted::default());
            let read = newest(few).await?;
            let found = read.value.records.iter().filter(|one| wanted.takes(one));
            if read.value.cut && found.take(limit).count() < limit {
                newest(KEPT).await?
            } else {
                read
            }
        }
    };
    let told = &read.value;
    let mut records: Vec<&DecisionRecord> =
        told.records.iter().filter(|one| wanted.takes(one)).collect();
    let mut gap = told.gap;
    if after.is_none() {
        gap |= told.cut && records.len() < limit;
        records.drain(..records.len().saturating_sub(limit));
    }
    let given = which.after.as_ref().filter(|_| after.is_some_and(|after| after > 0));
    let body = Page {
        shard: id,
        decisions: records.into_iter().map(|one| Decision::new(one, &viewer)).collect(),
        next: told.last.map(|last| last.to_string()).or_else(|| given.cloned()),
        more: told.more,
        gap,
    };
    Ok(Answer::at(read.at, body).into_response())
}
