//! What the pod controller counts (§10).

use std::time::Duration;

use bigfleet_net::metrics::Names;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

const PREFIX: &str = "bigfleet_unschedulable_pod_controller";

/// How a look at one pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its request was made.
    Created,
    /// Its request is as it should be.
    Exists,
    /// Its request was changed.
    Updated,
    /// A request was deleted that should not be there.
    Deleted,
    /// The pod is no more.
    PodGone,
    /// The pod is over.
    PodTerminal,
    /// The pod has no request.
    PodSkipped,
    /// Tried again later.
    Error,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Created,
        Self::Exists,
        Self::Updated,
        Self::Deleted,
        Self::PodGone,
        Self::PodTerminal,
        Self::PodSkipped,
        Self::Error,
    ];

    /// Its label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Created => "cr_created",
            Self::Exists => "cr_exists",
            Self::Updated => "cr_updated",
            Self::Deleted => "cr_deleted",
            Self::PodGone => "pod_gone",
            Self::PodTerminal => "pod_terminal",
            Self::PodSkipped => "pod_skipped",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    outcome: &'static str,
}

/// All metrics of the pod controller. Share it in an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    reconciles: Family<OfOutcome, Counter>,
    reconcile_duration: Histogram,
    /// Pods that wait for a worker.
    pub queue_depth: Gauge,
    /// 1 once every pod has been seen to in this term.
    pub synced: Gauge,
    /// 1 while this process acts.
    pub leader: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let reconciles = Family::default();
        // Zero is news too: a series that is absent cannot be watched.
        for outcome in Outcome::ALL {
            drop(reconciles.get_or_create(&OfOutcome { outcome: outcome.label() }));
        }
        Self {
            reconciles,
            reconcile_duration: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            queue_depth: Gauge::default(),
            synced: Gauge::default(),
            leader: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Under their names.
    pub fn register(&self, registry: &mut Registry) {
        let mut names = Names::new(registry, PREFIX);
        names.plain("reconciles", "Looks at one pod, by how they ended", &self.reconciles);
        names.seconds("reconcile_duration", "One look at one pod", &self.reconcile_duration);
        names.plain("queue_depth", "Pods that wait for a worker", &self.queue_depth);
        names.plain("synced", "Whether every pod has been seen to in this term", &self.synced);
        names.plain("leader", "Whether this process acts", &self.leader);
    }

    /// A look at one pod ended.
    pub fn reconciled(&self, outcome: Outcome, took: Duration) {
        self.count(outcome);
        self.reconcile_duration.observe(took.as_secs_f64());
    }

    /// Something was done without a look at a pod.
    pub fn count(&self, outcome: Outcome) {
        self.reconciles.get_or_create(&OfOutcome { outcome: outcome.label() }).inc();
    }

    /// How often looks ended so.
    #[must_use]
    pub fn outcomes(&self, outcome: Outcome) -> u64 {
        self.reconciles.get_or_create(&OfOutcome { outcome: outcome.label() }).get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_are_those_of_the_specification() {
        let (metrics, mut registry) = (Metrics::default(), Registry::default());
        metrics.register(&mut registry);
        metrics.reconciled(Outcome::Created, Duration::from_millis(3));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for series in [
            "reconciles_total{outcome=\"cr_created\"} 1",
            "reconciles_total{outcome=\"cr_exists\"} 0",
            "reconciles_total{outcome=\"pod_gone\"} 0",
            "reconciles_total{outcome=\"pod_terminal\"} 0",
            "reconciles_total{outcome=\"error\"} 0",
            "reconciles_total{outcome=\"cr_updated\"} 0",
            "reconciles_total{outcome=\"cr_deleted\"} 0",
            "reconciles_total{outcome=\"pod_skipped\"} 0",
            "queue_depth 0",
            "synced 0",
            "leader 0",
            "reconcile_duration_seconds_bucket{le=\"0.001\"} 0",
            "reconcile_duration_seconds_bucket{le=\"32.768\"} 1",
        ] {
            assert!(text.contains(&format!("\n{PREFIX}_{series}\n")), "{series}\n{text}");
        }
    }
}
