//! What a dashboard counts of itself.

use bigfleet_net::metrics::Names;
use http::StatusCode;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::api::{Refusal, Source};

const PREFIX: &str = "bigfleet_web_dashboard";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: &'static str,
    outcome: &'static str,
}

/// All metrics of a dashboard. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<OfRoute, Counter>,
    calls: Family<OfSource, Counter>,
    /// Streams that are open.
    pub(crate) viewers: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let (requests, calls) = (Family::default(), Family::default());
        let metrics = Self { requests, calls, viewers: Gauge::default() };
        // Zero is news too: a series that is absent cannot be watched.
        for source in Source::ALL {
            drop(metrics.calls(source));
        }
        metrics
    }
}

impl Metrics {
    /// Under their names.
    pub fn register(&self, registry: &mut Registry) {
        let mut names = Names::new(registry, PREFIX);
        names.plain("requests", "Answers of the API, by route and status", &self.requests);
        names.plain("source_calls", "Calls of sources, by how they ended", &self.calls);
        names.plain("stream_viewers", "Streams that are open", &self.viewers);
    }

    /// A route answered.
    pub(crate) fn answered(&self, route: &'static str, status: StatusCode) {
        self.requests.get_or_create(&OfRoute { route, code: status.as_u16() }).inc();
    }

    /// The counters of one source.
    pub(crate) fn calls(&self, source: Source) -> Calls {
        let of = |outcome| {
            let labels = OfSource { source: source.label(), outcome };
            self.calls.get_or_create_owned(&labels)
        };
        Calls { source, ok: of("ok"), failed: of("failed") }
    }
}

/// Counts how calls of one source end.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    /// Which.
    pub(crate) source: Source,
    ok: Counter,
    failed: Counter,
}

impl Calls {
    /// A call ended. One that was answered with a refusal of the question went well.
    pub(crate) fn ended<T>(&self, outcome: &Result<T, Refusal>) {
        match outcome {
            Err(Refusal::Failed { .. }) => self.failed.inc(),
            _ => self.ok.inc(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_source_refuses_is_not_its_failure() {
        let (metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        let calls = metrics.calls(Source::Shard);
        calls.ended(&Ok(()));
        calls.ended::<()>(&Err(Refusal::NotFound("no such need".to_owned())));
        calls.ended::<()>(&Err(Refusal::failed(Source::Shard, "gone")));
        metrics.answered("/needs", StatusCode::BAD_GATEWAY);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for series in [
            "requests_total{route=\"/needs\",code=\"502\"} 1",
            "source_calls_total{source=\"shard\",outcome=\"ok\"} 2",
            "source_calls_total{source=\"shard\",outcome=\"failed\"} 1",
            "source_calls_total{source=\"kubeconfig\",outcome=\"failed\"} 0",
            "stream_viewers 0",
        ] {
            assert!(text.contains(&format!("\n{PREFIX}_{series}\n")), "{series}\n{text}");
        }
    }
}
