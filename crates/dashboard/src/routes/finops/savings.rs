//! What choosing the cheaper machine saved.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::DecisionRecord;
use serde::{Deserialize, Serialize};

use super::super::{Shared, numbers::total};
use crate::{
    api::{
        Answer, Params, Refusal,
        params::{limit, required},
    },
    auth::Viewer,
    source::decisions::{KEPT, Stretch, Wanted},
    view::{dollars, instant},
};

/// Decisions that choose a machine.
const CHOICES: [&str; 2] = ["Bootstrap", "Provision"];

/// Which shard, and how many lines.
#[derive(Deserialize)]
pub(crate) struct Which {
    #[serde(default)]
    shard: String,
    limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Savings<'a> {
    shard: &'a str,
    decisions: usize,
    compared: usize,
    saved_per_hour: Option<f64>,
    gap: bool,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    sequence: String,
    time_unix_nanos: Option<i64>,
    cycle: i64,
    kind: &'a str,
    machine_id: &'a str,
    cluster_id: &'a str,
    reason: &'a str,
    cost: f64,
    runner_up_cost: f64,
    saved_per_hour: f64,
}

/// A decision that had a choice.
fn row(record: &DecisionRecord) -> Option<Row<'_>> {
    let (cost, runner_up) = (dollars(record.effective_cost)?, dollars(record.runner_up_cost)?);
    (record.of_sequence == 0).then(|| Row {
        sequence: record.sequence.to_string(),
        time_unix_nanos: instant(record.time_unix_nanos),
        cycle: record.cycle,
        kind: &record.kind,
        machine_id: &record.machine_id,
        cluster_id: &record.cluster_id,
        reason: &record.reason,
        cost,
        runner_up_cost: runner_up,
        saved_per_hour: runner_up - cost,
    })
}

/// What did decisions save?
pub(crate) async fn savings(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let id = required("shard", &which.shard)?;
    let limit = limit(which.limit, 500, 5_000)? as usize;
    let read = app.sources.shards.decisions(id, Stretch::newest(KEPT), Wanted::default()).await?;
    let told = &read.value;
    let seen = |record: &&DecisionRecord| {
        viewer.sees(&record.cluster_id) && CHOICES.contains(&record.kind.as_str())
    };
    let records: Vec<&DecisionRecord> = told.records.iter().filter(seen).collect();
    let mut rows: Vec<Row<'_>> = records.iter().rev().copied().filter_map(row).collect();
    let body = Savings {
        shard: id,
        decisions: records.iter().filter(|record| record.of_sequence == 0).count(),
        compared: rows.len(),
        saved_per_hour: total(rows.iter().map(|row| Some(row.saved_per_hour))),
        gap: told.gap || told.cut || told.more,
        rows: {
            rows.truncate(limit);
            rows
        },
    };
    Ok(Answer::at(read.at, body).into_response())
}
