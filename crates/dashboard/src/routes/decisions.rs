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
    source::decisions::{KEPT, Stretch},
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
    fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kind.split(',').filter(|kind| !kind.is_empty())
    }

    /// Whether every record is wanted.
    fn wants_all(&self) -> bool {
        let texts = [&self.cluster, &self.machine, &self.outcome];
        self.kinds().next().is_none()
            && texts.iter().all(|text| text.is_empty())
            && self.min_priority == 0
    }

    /// As the shard's own filter reads them.
    fn wants(&self, record: &DecisionRecord) -> bool {
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        (self.kinds().next().is_none() || self.kinds().any(|kind| kind == record.kind))
            && is(&self.cluster, &record.cluster_id)
            && is(&self.machine, &record.machine_id)
            && is(&self.outcome, &record.outcome)
            && (self.min_priority == 0 || record.priority >= self.min_priority)
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
    let seen = |record: &&DecisionRecord| viewer.sees(&record.cluster_id) && which.wants(record);
    // Where some are left out, there is no saying how many must be looked at: few, then all.
    let all = which.wants_all() && !viewer.is_scoped();
    let few = if all { limit } else { limit.saturating_mul(FEW).min(KEPT) };
    let shards = &app.sources.shards;
    let read = match after {
        Some(after) => {
            let count = if all { limit } else { KEPT };
            shards.decisions(id, Stretch::After(after, count)).await?
        }
        None => {
            let read = shards.decisions(id, Stretch::Newest(few)).await?;
            let found = read.value.records.iter().filter(seen).take(limit).count();
            if found < limit && read.value.cut {
                shards.decisions(id, Stretch::Newest(KEPT)).await?
            } else {
                read
            }
        }
    };
    let told = &read.value;
    let mut records: Vec<&DecisionRecord> = told.records.iter().filter(seen).collect();
    let (mut more, mut gap, mut last) = (told.more, told.gap, told.records.back());
    if after.is_none() {
        gap |= told.cut && records.len() < limit;
        records.drain(..records.len().saturating_sub(limit));
    } else if records.len() > limit {
        records.truncate(limit);
        (more, last) = (true, records.last().copied());
    }
    let given = which.after.as_ref().filter(|_| after.is_some_and(|after| after > 0));
    let body = Page {
        shard: id,
        decisions: records.into_iter().map(|one| Decision::new(one, &viewer)).collect(),
        next: last.map(|record| record.sequence.to_string()).or_else(|| given.cloned()),
        more,
        gap,
    };
    Ok(Answer::at(read.at, body).into_response())
}
