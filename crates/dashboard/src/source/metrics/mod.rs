//! Metrics of the fleet: from Prometheus, or scraped by the dashboard itself where there is none.

pub(crate) mod names;
mod prometheus;
mod query;
mod scrape;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jiff::Timestamp;

pub use self::scrape::Target;
pub(crate) use self::{
    prometheus::Prometheus,
    query::{How, Query},
    scrape::Scraper,
};
use super::coalesce::{Coalesced, Outcome};
use crate::{
    api::{Refusal, Source},
    metrics::Calls,
};

/// Time for an instant, and for a range.
const WITHIN: Duration = Duration::from_secs(5);
const RANGE_WITHIN: Duration = Duration::from_secs(10);

/// One value, with those labels that the query breaks down by, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Values of the labels.
    pub(crate) labels: Vec<String>,
    /// May be NaN.
    pub(crate) value: f64,
}

/// The same over time: one value per instant of the span, none where there is no sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Track {
    /// Values of the labels.
    pub(crate) labels: Vec<String>,
    /// By instant.
    pub(crate) values: Vec<Option<f64>>,
}

/// Instants at equal distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    /// The first, in unix seconds: a multiple of the step, so that sharers meet.
    pub(crate) start: i64,
    /// Seconds between two.
    pub(crate) step: i64,
    /// How many.
    pub(crate) count: usize,
}

impl Span {
    /// The instants up to now.
    #[must_use]
    pub(crate) fn until(now: Timestamp, duration: Duration, step: Duration) -> Self {
        let step = i64::try_from(step.as_secs()).unwrap_or(i64::MAX).max(1);
        let steps = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX) / step;
        let end = now.as_second() / step * step;
        Self { start: end - steps * step, step, count: usize::try_from(steps + 1).unwrap_or(1) }
    }

    /// All of them, in unix seconds.
    pub(crate) fn instants(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |at| self.start + i64::try_from(at).unwrap_or(0) * self.step)
    }

    /// The last.
    #[must_use]
    pub(crate) fn end(self) -> i64 {
        self.instants().last().unwrap_or(self.start)
    }

    /// Which one this is.
    #[must_use]
    pub(crate) fn index(self, second: i64) -> Option<usize> {
        let at = second.checked_sub(self.start)?.checked_div_euclid(self.step)?;
        usize::try_from(at).ok().filter(|at| *at < self.count)
    }
}

/// Who answers questions about metrics.
pub(crate) trait Metrics: Send + Sync + fmt::Debug {
    /// As of now.
    fn instant(&self, query: Query) -> BoxFuture<'static, Result<Vec<Sample>, String>>;
    /// Over time.
    fn range(&self, query: Query, span: Span) -> BoxFuture<'static, Result<Vec<Track>, String>>;
    /// What `/config` calls it.
    fn name(&self) -> &'static str;
}

/// Metrics, if they are wired; calls are shared and bounded.
#[derive(Debug)]
pub(crate) struct MetricsSource {
    metrics: Option<Arc<dyn Metrics>>,
    instants: Coalesced<String, Vec<Sample>>,
    ranges: Coalesced<(String, Span), Vec<Track>>,
}

impl MetricsSource {
    /// Over this, if anything.
    #[must_use]
    pub(crate) fn new(metrics: Option<Arc<dyn Metrics>>, calls: &Calls) -> Self {
        let (instants, ranges) = (Coalesced::new(calls), Coalesced::new(calls));
        Self { metrics, instants, ranges }
    }

    /// What `/config` calls it, if it is wired.
    #[must_use]
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.metrics.as_ref().map(|metrics| metrics.name())
    }

    fn wired(&self) -> Result<&Arc<dyn Metrics>, Refusal> {
        self.metrics.as_ref().ok_or(Refusal::Unwired(Source::Prometheus))
    }

    /// As of now.
    pub(crate) async fn instant(&self, query: Query) -> Outcome<Vec<Sample>> {
        let metrics = self.wired()?.clone();
        let call = |query: Query| async move {
            metrics.instant(query).await.map_err(|error| Refusal::failed(Source::Prometheus, error))
        };
        self.instants.get(query.to_string(), WITHIN, || call(query)).await
    }

    /// Over time.
    pub(crate) async fn range(&self, query: Query, span: Span) -> Outcome<Vec<Track>> {
        let metrics = self.wired()?.clone();
        let call = |query: Query| async move {
            let tracks = metrics.range(query, span).await;
            tracks.map_err(|error| Refusal::failed(Source::Prometheus, error))
        };
        self.ranges.get((query.to_string(), span), RANGE_WITHIN, || call(query)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_at_the_last_whole_step() {
        let now = Timestamp::from_second(1_000_007).unwrap();
        let span = Span::until(now, Duration::from_secs(60), Duration::from_secs(20));
        assert_eq!(span.instants().collect::<Vec<_>>(), [999_940, 999_960, 999_980, 1_000_000]);
        assert_eq!(
            (span.end(), span.index(999_960), span.index(999_939)),
            (1_000_000, Some(1), None)
        );
        assert_eq!(span.index(1_000_020), None);
    }
}
