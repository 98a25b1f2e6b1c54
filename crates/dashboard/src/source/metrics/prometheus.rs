//! Prometheus' HTTP API.

use std::collections::HashMap;

use futures_util::{FutureExt as _, future::BoxFuture};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::{Metrics, Query, Sample, Span, Track};
use crate::source::web::Web;

/// A Prometheus, or what speaks like one.
#[derive(Clone, Debug)]
pub(crate) struct Prometheus {
    url: String,
    web: Web,
}

impl Prometheus {
    /// At this URL; dials nothing yet.
    #[must_use]
    pub(crate) fn new(url: &str, web: Web) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), web }
    }

    async fn ask<T: for<'de> Deserialize<'de>>(
        self,
        path: &'static str,
        parameters: Vec<(&'static str, String)>,
    ) -> Result<Vec<T>, String> {
        let encode = |(name, value): &(&str, String)| {
            format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
        };
        let parameters: Vec<String> = parameters.iter().map(encode).collect();
        let uri = format!("{}/api/v1/{path}?{}", self.url, parameters.join("&"));
        let body = self.web.get(&uri, "application/json").await?;
        let answer: Answer<T> = serde_json::from_slice(&body)
            .map_err(|error| format!("its answer is not understood: {error}"))?;
        match answer {
            Answer { status, data: Some(data), .. } if status == "success" => Ok(data.result),
            Answer { error, .. } => Err(error.unwrap_or_else(|| "no data".to_owned())),
        }
    }
}

impl Metrics for Prometheus {
    fn instant(&self, query: Query) -> BoxFuture<'static, Result<Vec<Sample>, String>> {
        let this = self.clone();
        async move {
            let result = this.ask::<Instant>("query", vec![("query", query.to_string())]).await?;
            let sample = |one: Instant| Sample {
                labels: labels(&query, one.metric),
                value: number(&one.value.1),
            };
            Ok(result.into_iter().map(sample).collect())
        }
        .boxed()
    }

    fn range(&self, query: Query, span: Span) -> BoxFuture<'static, Result<Vec<Track>, String>> {
        let this = self.clone();
        async move {
            let parameters = vec![
                ("query", query.to_string()),
                ("start", span.start.to_string()),
                ("end", span.end().to_string()),
                ("step", span.step.to_string()),
            ];
            let result = this.ask::<Matrix>("query_range", parameters).await?;
            let track = |one: Matrix| {
                let mut values = vec![None; span.count];
                for (second, value) in &one.values {
                    let at = span.index(*second as i64);
                    if let Some(slot) = at.and_then(|at| values.get_mut(at)) {
                        *slot = Some(number(value));
                    }
                }
                Track { labels: labels(&query, one.metric), values }
            };
            Ok(result.into_iter().map(track).collect())
        }
        .boxed()
    }

    fn name(&self) -> &'static str {
        "prometheus"
    }
}

/// `NaN`, `+Inf` and the rest, as Prometheus writes them.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

fn labels(query: &Query, mut metric: HashMap<String, String>) -> Vec<String> {
    query.by.iter().map(|label| metric.remove(*label).unwrap_or_default()).collect()
}

#[derive(Deserialize)]
struct Answer<T> {
    status: String,
    data: Option<Data<T>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Data<T> {
    result: Vec<T>,
}

#[derive(Deserialize)]
struct Instant {
    #[serde(default)]
    metric: HashMap<String, String>,
    value: (f64, String),
}

#[derive(Deserialize)]
struct Matrix {
    #[serde(default)]
    metric: HashMap<String, String>,
    values: Vec<(f64, String)>,
}
