//! Shards, as their metrics show them.

use std::collections::{BTreeMap, BTreeSet};

use axum::{extract::State, response::IntoResponse};
use serde::Serialize;

use super::{
    Shared,
    fleet::{DAY, OverTime},
    numbers::{Age, By, ByTwo, age, age_of, by, by_two, levels_by, only_track, sum, tracks_by},
};
use crate::{
    api::{Asked, InPath, Params, Refusal},
    source::metrics::{How, Query, names},
};

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    pod: &'a str,
    cycle_p99_seconds: Option<f64>,
    machines: Option<f64>,
    shortfalls: Option<f64>,
    active_sessions: Option<f64>,
    dollars_per_hour: Option<f64>,
    paused: Option<bool>,
    fenced: Option<bool>,
    live: Option<bool>,
}

#[derive(Serialize)]
struct List<'a> {
    shards: Vec<Row<'a>>,
    #[serde(flatten)]
    age: Age,
}

/// Which shard is slow or short?
pub(super) async fn list(State(app): State<Shared>) -> Result<impl IntoResponse, Refusal> {
    let ask = |metric, how| app.sources.metrics.instant(Query::new(metric, how, &["pod"]));
    let (moved, cycle, machines, shortfalls, sessions, cost, paused, fenced, age) = tokio::join!(
        ask(names::CYCLES, How::Rate(120)),
        ask(names::CYCLE, How::Quantile(0.99, 300)),
        ask(names::MACHINES, How::Sum),
        ask(names::SHORTFALLS, How::Sum),
        ask(names::SESSIONS, How::Sum),
        ask(names::COST, How::Sum),
        ask(names::PAUSED, How::Max),
        ask(names::FENCED, How::Max),
        age(&app),
    );
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let (moved, cycle, machines) = (asked.take(moved)?, asked.take(cycle)?, asked.take(machines)?);
    let (shortfalls, sessions) = (asked.take(shortfalls)?, asked.take(sessions)?);
    let (cost, paused, fenced) = (asked.take(cost)?, asked.take(paused)?, asked.take(fenced)?);
    let (moved, cycle, machines) = (by(&moved.value), by(&cycle.value), by(&machines.value));
    let (shortfalls, sessions) = (by(&shortfalls.value), by(&sessions.value));
    let (cost, paused, fenced) = (by(&cost.value), by(&paused.value), by(&fenced.value));
    let value = |all: &By<'_>, pod: &str| all.get(pod).copied().flatten();
    // Every process with a number of a shard is one.
    let pods = [&moved, &cycle, &machines, &shortfalls, &sessions].into_iter().flat_map(By::keys);
    let pods: BTreeSet<&str> = pods.copied().collect();
    let shards = pods
        .into_iter()
        .map(|pod| Row {
            pod,
            cycle_p99_seconds: value(&cycle, pod),
            machines: value(&machines, pod),
            shortfalls: value(&shortfalls, pod),
            active_sessions: value(&sessions, pod),
            dollars_per_hour: value(&cost, pod),
            paused: value(&paused, pod).map(|paused| paused > 0.0),
            fenced: value(&fenced, pod).map(|fenced| fenced > 0.0),
            live: value(&moved, pod).map(|moved| moved > 0.0),
        })
        .collect();
    Ok(asked.answer(List { shards, age }).into_response())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    cycle_p99_by_phase_seconds: By<'a>,
    machines_by_state: By<'a>,
    machines_by_capacity_type: By<'a>,
    machines_by_state_and_type: ByTwo<'a>,
    actions_by_kind_rate_per_sec: By<'a>,
    occ_committed_per_sec: Option<f64>,
    occ_conflict_per_sec: Option<f64>,
    #[serde(flatten)]
    age: Age,
}

/// One shard.
pub(super) async fn detail(
    State(app): State<Shared>,
    InPath(pod): InPath<String>,
) -> Result<impl IntoResponse, Refusal> {
    let ask =
        |metric, how, by| app.sources.metrics.instant(Query::new(metric, how, by).of_pod(&pod));
    let (moved, cycle, phases, matrix, states, types, age) = tokio::join!(
        ask(names::CYCLES, How::Rate(120), &[]),
        ask(names::CYCLE, How::Quantile(0.99, 300), &[]),
        ask(names::CYCLE_PHASE, How::Quantile(0.99, 300), &["phase"]),
        ask(names::MACHINES, How::Sum, &["state", "capacity_type"]),
        ask(names::MACHINES, How::Sum, &["state"]),
        ask(names::MACHINES, How::Sum, &["capacity_type"]),
        age_of(&app, &pod),
    );
    let (shortfalls, sessions, cost, paused, fenced, actions, occ) = tokio::join!(
        ask(names::SHORTFALLS, How::Sum, &[]),
        ask(names::SESSIONS, How::Sum, &[]),
        ask(names::COST, How::Sum, &[]),
        ask(names::PAUSED, How::Max, &[]),
        ask(names::FENCED, How::Max, &[]),
        ask(names::ACTIONS, How::Rate(300), &["kind"]),
        ask(names::OCC, How::Rate(300), &["outcome"]),
    );
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let (moved, cycle, phases) = (asked.take(moved)?, asked.take(cycle)?, asked.take(phases)?);
    let (matrix, states, types) = (asked.take(matrix)?, asked.take(states)?, asked.take(types)?);
    let (shortfalls, sessions) = (asked.take(shortfalls)?, asked.take(sessions)?);
    let (cost, paused, fenced) = (asked.take(cost)?, asked.take(paused)?, asked.take(fenced)?);
    let (actions, occ) = (asked.take(actions)?, asked.take(occ)?);
    if sessions.value.is_empty() && moved.value.is_empty() && states.value.is_empty() {
        return Err(Refusal::NotFound(format!("no shard {pod:?} has metrics; see /shards")));
    }
    // A rate needs two samples; a counter that is not there was never counted.
    let occ_of = |outcome: &str| {
        let known = by(&occ.value).get(outcome).copied().flatten();
        known.or_else(|| sum(&moved.value).map(|_| 0.0))
    };
    let body = Detail {
        row: Row {
            pod: &pod,
            cycle_p99_seconds: sum(&cycle.value),
            machines: sum(&states.value),
            shortfalls: sum(&shortfalls.value),
            active_sessions: sum(&sessions.value),
            dollars_per_hour: sum(&cost.value),
            paused: sum(&paused.value).map(|paused| paused > 0.0),
            fenced: sum(&fenced.value).map(|fenced| fenced > 0.0),
            live: sum(&moved.value).map(|moved| moved > 0.0),
        },
        cycle_p99_by_phase_seconds: by(&phases.value),
        machines_by_state: by(&states.value),
        machines_by_capacity_type: by(&types.value),
        machines_by_state_and_type: by_two(&matrix.value),
        actions_by_kind_rate_per_sec: by(&actions.value),
        occ_committed_per_sec: occ_of("committed"),
        occ_conflict_per_sec: occ_of("conflict"),
        age,
    };
    Ok(asked.answer(body).into_response())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trends<'a> {
    pod: &'a str,
    timestamps: Vec<i64>,
    cycle_p99_seconds: Vec<Option<f64>>,
    action_rates: BTreeMap<&'a str, Vec<Option<f64>>>,
    machines_by_state: BTreeMap<&'a str, Vec<Option<f64>>>,
    shortfalls: Vec<Option<f64>>,
    dollars_per_hour: Vec<Option<f64>>,
    step_seconds: i64,
    #[serde(flatten)]
    age: Age,
}

/// One shard over time.
pub(super) async fn trends(
    State(app): State<Shared>,
    InPath(pod): InPath<String>,
    Params(params): Params<OverTime>,
) -> Result<impl IntoResponse, Refusal> {
    let (span, window) = params.span(DAY)?;
    let ask =
        |metric, how, by| app.sources.metrics.range(Query::new(metric, how, by).of_pod(&pod), span);
    let now = app.sources.metrics.instant(Query::new(names::SESSIONS, How::Sum, &[]).of_pod(&pod));
    let (cycle, actions, machines, shortfalls, cost, now, age) = tokio::join!(
        ask(names::CYCLE, How::Quantile(0.99, window.max(300)), &[]),
        ask(names::ACTIONS, How::Rate(window), &["kind"]),
        ask(names::MACHINES, How::Sum, &["state"]),
        ask(names::SHORTFALLS, How::Sum, &[]),
        ask(names::COST, How::Sum, &[]),
        now,
        age_of(&app, &pod),
    );
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let now = asked.take(now)?;
    let (cycle, actions) = (asked.take(cycle)?, asked.take(actions)?);
    let (machines, shortfalls, cost) =
        (asked.take(machines)?, asked.take(shortfalls)?, asked.take(cost)?);
    // One that has just begun has no past, and is there.
    let past = [&cycle, &machines, &shortfalls].into_iter().any(|it| !it.value.is_empty());
    if !past && now.value.is_empty() {
        return Err(Refusal::NotFound(format!("no shard {pod:?} has metrics; see /shards")));
    }
    let body = Trends {
        pod: &pod,
        timestamps: span.instants().collect(),
        cycle_p99_seconds: only_track(&cycle.value, span.count),
        action_rates: tracks_by(&actions.value),
        machines_by_state: levels_by(&machines.value),
        shortfalls: only_track(&shortfalls.value, span.count),
        dollars_per_hour: only_track(&cost.value, span.count),
        step_seconds: span.step,
        age,
    };
    Ok(asked.answer(body).into_response())
}
