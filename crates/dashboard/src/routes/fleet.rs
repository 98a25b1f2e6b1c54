//! The fleet as a whole.

use std::time::Duration;

use axum::{extract::State, response::IntoResponse};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Shared,
    numbers::{Age, By, age, by, greatest, label, sum, values},
};
use crate::{
    api::{Asked, Params, Refusal, params::Over},
    source::metrics::{How, Query, Sample, Span, names},
    view::finite,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Overview<'a> {
    shards: Option<usize>,
    clusters: Option<f64>,
    machines: Option<f64>,
    machines_by_state: By<'a>,
    machines_by_capacity_type: By<'a>,
    shortfalls: Option<f64>,
    needs_unmet_by_reason: By<'a>,
    cycle_p99_seconds: Option<f64>,
    dollars_per_hour: Option<f64>,
    #[serde(flatten)]
    age: Age,
}

/// Is the fleet healthy?
pub(super) async fn overview(State(app): State<Shared>) -> Result<impl IntoResponse, Refusal> {
    let ask = |metric, how, by| app.sources.metrics.instant(Query::new(metric, how, by));
    let (moved, sessions, states, types, shortfalls, unmet, cycle, cost, age) = tokio::join!(
        ask(names::CYCLES, How::Rate(120), &["pod"]),
        ask(names::SESSIONS, How::Sum, &[]),
        ask(names::MACHINES, How::Sum, &["state"]),
        ask(names::MACHINES, How::Sum, &["capacity_type"]),
        ask(names::SHORTFALLS, How::Sum, &[]),
        ask(names::NEEDS_UNMET, How::Sum, &["reason"]),
        ask(names::CYCLE, How::Quantile(0.99, 300), &["pod"]),
        ask(names::COST, How::Sum, &[]),
        age(&app),
    );
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let (moved, sessions) = (asked.take(moved)?, asked.take(sessions)?);
    let (states, types) = (asked.take(states)?, asked.take(types)?);
    let (shortfalls, unmet) = (asked.take(shortfalls)?, asked.take(unmet)?);
    let (cycle, cost) = (asked.take(cycle)?, asked.take(cost)?);
    let body = Overview {
        shards: moving(&moved.value),
        clusters: sum(&sessions.value),
        machines: sum(&states.value),
        machines_by_state: by(&states.value),
        machines_by_capacity_type: by(&types.value),
        shortfalls: sum(&shortfalls.value),
        needs_unmet_by_reason: by(&unmet.value),
        cycle_p99_seconds: greatest(&cycle.value),
        dollars_per_hour: sum(&cost.value),
        age,
    };
    Ok(asked.answer(body).into_response())
}

/// How many counters moved; unknown where there is none, for a fleet that nobody scrapes has shards
/// all the same.
fn moving(rates: &[Sample]) -> Option<usize> {
    let known: Vec<f64> = rates.iter().filter_map(|sample| finite(sample.value)).collect();
    (!known.is_empty()).then(|| known.iter().filter(|rate| **rate > 0.0).count())
}

/// Bounds of every plot but money's.
pub(super) const DAY: Over = Over {
    usual: Duration::from_secs(3600),
    longest: Duration::from_secs(86_400),
    widest: Duration::from_secs(3600),
};

/// A question over time.
#[derive(Deserialize)]
pub(super) struct OverTime {
    pub(super) duration: Option<String>,
    pub(super) step: Option<String>,
}

impl OverTime {
    /// Its instants, up to now, and a window for rates that none of them falls between.
    pub(super) fn span(&self, bounds: Over) -> Result<(Span, u32), Refusal> {
        let (duration, step) = bounds.read(self.duration.as_deref(), self.step.as_deref())?;
        let window = u32::try_from(step.as_secs()).unwrap_or(u32::MAX).max(60);
        Ok((Span::until(Timestamp::now(), duration, step), window))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Actions<'a> {
    timestamps: Vec<i64>,
    kinds: Vec<&'a str>,
    values: Vec<Vec<Option<f64>>>,
    step_seconds: i64,
    #[serde(flatten)]
    age: Age,
}

/// Actions by kind, per second.
pub(super) async fn actions(
    State(app): State<Shared>,
    Params(params): Params<OverTime>,
) -> Result<impl IntoResponse, Refusal> {
    let (span, window) = params.span(DAY)?;
    let query = Query::new(names::ACTIONS, How::Rate(window), &["kind"]);
    let (tracks, age) = tokio::join!(app.sources.metrics.range(query, span), age(&app));
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let tracks = asked.take(tracks)?;
    let body = Actions {
        timestamps: span.instants().collect(),
        kinds: tracks.value.iter().map(|track| label(&track.labels)).collect(),
        values: tracks.value.iter().map(values).collect(),
        step_seconds: span.step,
        age,
    };
    Ok(asked.answer(body).into_response())
}
