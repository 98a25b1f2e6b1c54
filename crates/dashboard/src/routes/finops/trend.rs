//! Money over time.

use std::time::Duration;

use axum::{extract::State, response::IntoResponse};
use serde::Serialize;

use super::super::{
    Shared,
    fleet::OverTime,
    numbers::{Age, age, levels},
};
use crate::{
    api::{Asked, Params, Refusal, params::Over},
    source::metrics::{How, Query, names},
};

const MONTH: Over = Over {
    usual: Duration::from_secs(30 * 86_400),
    longest: Duration::from_secs(30 * 86_400),
    widest: Duration::from_secs(86_400),
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trend<'a> {
    timestamps: Vec<i64>,
    series: Vec<Series<'a>>,
    step_seconds: i64,
    #[serde(flatten)]
    age: Age,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Series<'a> {
    capacity_type: &'a str,
    state: &'a str,
    values: Vec<Option<f64>>,
}

/// Dollars an hour by capacity type and state.
pub(crate) async fn trend(
    State(app): State<Shared>,
    Params(params): Params<OverTime>,
) -> Result<impl IntoResponse, Refusal> {
    let (span, _) = params.span(MONTH)?;
    let query = Query::new(names::COST, How::Sum, &["capacity_type", "state"]);
    let (tracks, age) = tokio::join!(app.sources.metrics.range(query, span), age(&app));
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let tracks = asked.take(tracks)?;
    let series =
        levels(&tracks.value).filter_map(|(track, values)| match track.labels.as_slice() {
            [capacity_type, state] => Some(Series { capacity_type, state, values }),
            _ => None,
        });
    let body = Trend {
        timestamps: span.instants().collect(),
        series: series.collect(),
        step_seconds: span.step,
        age,
    };
    Ok(asked.answer(body).into_response())
}
