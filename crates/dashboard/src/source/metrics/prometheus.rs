//! Prometheus' HTTP API.

use std::{collections::HashMap, fmt};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::{FutureExt as _, future::BoxFuture};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;

use super::{Metrics, Query, Sample, Span, Track};
use crate::source::web::Web;

/// A Prometheus, or what speaks like one.
#[derive(Clone)]
pub(crate) struct Prometheus {
    url: String,
    /// `Authorization`, if the URL has a name and a password.
    authorization: Option<String>,
    web: Web,
}

impl Prometheus {
    /// At this URL; dials nothing yet.
    #[must_use]
    pub(crate) fn new(url: &str, web: Web) -> Self {
        let (url, login) = without_login(url.trim_end_matches('/'));
        let basic = |login: &str| {
            let decoded: Vec<u8> = percent_decode_str(login).collect();
            format!("Basic {}", BASE64_STANDARD.encode(decoded))
        };
        Self { url, authorization: login.map(basic), web }
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
        let authorization = self.authorization.as_deref();
        let body = self.web.get_as(authorization, &uri, "application/json").await?;
        let answer: Answer<T> = serde_json::from_slice(&body)
            .map_err(|error| format!("its answer is not understood: {error}"))?;
        match answer {
            Answer { status, data: Some(data), .. } if status == "success" => Ok(data.result),
            Answer { error, .. } => Err(error.unwrap_or_else(|| "no data".to_owned())),
        }
    }
}

/// Its login is told to nobody but itself.
impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A URL without the name and password that it may have, and these.
fn without_login(url: &str) -> (String, Option<&str>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        None => (url.to_owned(), None),
        Some((login, host)) => (format!("{scheme}://{host}{path}"), Some(login)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_sent_and_not_shown() {
        for (url, shown, login) in [
            ("http://host:9090/", "http://host:9090", None),
            ("https://me:p%40ss@host/prom", "https://host/prom", Some("me:p@ss")),
            ("http://host/a@b", "http://host/a@b", None),
        ] {
            let prometheus = Prometheus::new(url, Web::new().unwrap());
            let basic = login.map(|login| format!("Basic {}", BASE64_STANDARD.encode(login)));
            assert_eq!((prometheus.url.as_str(), &prometheus.authorization), (shown, &basic));
            let text = format!("{prometheus:?}");
            assert!(!text.contains("me:") && !text.contains("Basic"), "{text}");
        }
    }
}
