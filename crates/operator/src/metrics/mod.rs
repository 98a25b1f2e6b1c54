//! What an operator counts (kubernetes chapter §10).
//!
//! Metrics without labels are fields; those with labels have a method each, so
//! that no caller writes a label by hand.

mod labels;
mod register;

use std::{
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use bigfleet_net::buckets::Buckets;
pub use labels::{
    DrainOutcome, EvictionOutcome, HoldReason, IgnoredFrame, NodeStatePhase, ReloadOutcome,
    RenderOutcome, RollupPhase, WriteOp, WriteOutcome,
};
use labels::{OfOutcome, OfPhase, OfReason, OfUnmet, OfWrite};
use prometheus_client::metrics::{
    counter::Counter,
    family::{Family, MetricConstructor},
    gauge::Gauge,
    histogram::Histogram,
};

use crate::rollup::{Phase, Skipped};

/// A roll-up: 1 s at 25,000 requests is the contract, 50 ms the aim.
const ROLLUP: Buckets =
    Buckets::doubling(0.001, 16).with(&[0.04, 0.045, 0.05, 0.055, 0.06, 0.8, 0.9, 1.0, 1.1, 1.2]);
/// A batch of acks: 12 s.
const ACKNOWLEDGE: Buckets = Buckets::doubling(0.01, 16).with(&[10.0, 11.0, 12.0, 13.0, 14.0]);
/// A node state frame: 100 ms, alert at 1 s.
const NODE_STATE: Buckets =
    Buckets::doubling(0.001, 17).with(&[0.08, 0.09, 0.1, 0.11, 0.12, 0.8, 0.9, 1.0, 1.1, 1.2]);
/// A drain: up to the longest grace.
const DRAIN: Buckets = Buckets::doubling(0.1, 14);

type Histograms<L> = Family<L, Histogram, Buckets>;

/// All metrics of an operator. Share it in an `Arc`; the fields' own clones count
/// together, too.
#[derive(Debug)]
pub struct Metrics {
    /// A roll-up without its acks, in seconds.
    pub rollup_duration: Histogram,
    rollup_phase_duration: Histograms<OfPhase>,
    /// A batch of acknowledgements, in seconds.
    pub acknowledge_duration: Histogram,
    /// Requests stamped Acknowledged.
    pub acknowledged: Counter,
    /// Sessions that ended and are dialled anew.
    pub session_reconnects: Counter,
    /// Answers that found the outbox full.
    pub outbox_dropped: Counter,
    node_state_update_duration: Histograms<OfPhase>,
    upcoming_node_writes: Family<OfWrite, Counter>,
    /// Frames that a handler has.
    pub dispatch_inflight: Gauge,
    /// 1 while a session stands.
    pub session_connected: Gauge,
    /// 1 while this process holds the lease.
    pub leader: Gauge,
    rollup_held: Family<OfReason, Gauge>,
    /// Needs of the newest roll-up.
    pub rollup_needs: Gauge,
    /// Size of the newest roll-up.
    pub rollup_bytes: Gauge,
    capacity_requests: Family<OfPhase, Gauge>,
    capacity_requests_skipped: Family<OfReason, Counter>,
    /// Names in reclaim instructions that stand for no node.
    pub reclaim_unresolved_nodes: Counter,
    /// Drains under way.
    pub drains_inflight: Gauge,
    drain_duration: Histograms<OfOutcome>,
    evictions: Family<OfOutcome, Counter>,
    /// Machines said to be Configured whose node is not Ready.
    pub configured_not_ready_nodes: Gauge,
    bootstrap_renders: Family<OfOutcome, Counter>,
    bootstrap_reloads: Family<OfOutcome, Counter>,
    /// Roll-ups that the shard refused.
    pub rollups_rejected: Counter,
    needs_unmet: Family<OfUnmet, Gauge>,
    /// Conditions and events left out by the limits.
    pub pod_status_skipped: Counter,
    node_frames_ignored: Family<OfReason, Counter>,
    /// Nodes given back to the scheduler.
    pub nodes_uncordoned: Counter,
    /// Nodes removed after their machine left.
    pub nodes_deleted: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            rollup_duration: ROLLUP.new_metric(),
            rollup_phase_duration: Family::new_with_constructor(ROLLUP),
            acknowledge_duration: ACKNOWLEDGE.new_metric(),
            acknowledged: Counter::default(),
            session_reconnects: Counter::default(),
            outbox_dropped: Counter::default(),
            node_state_update_duration: Family::new_with_constructor(NODE_STATE),
            upcoming_node_writes: Family::default(),
            dispatch_inflight: Gauge::default(),
            session_connected: Gauge::default(),
            leader: Gauge::default(),
            rollup_held: Family::default(),
            rollup_needs: Gauge::default(),
            rollup_bytes: Gauge::default(),
            capacity_requests: Family::default(),
            capacity_requests_skipped: Family::default(),
            reclaim_unresolved_nodes: Counter::default(),
            drains_inflight: Gauge::default(),
            drain_duration: Family::new_with_constructor(DRAIN),
            evictions: Family::default(),
            configured_not_ready_nodes: Gauge::default(),
            bootstrap_renders: Family::default(),
            bootstrap_reloads: Family::default(),
            rollups_rejected: Counter::default(),
            needs_unmet: Family::default(),
            pod_status_skipped: Counter::default(),
            node_frames_ignored: Family::default(),
            nodes_uncordoned: Counter::default(),
            nodes_deleted: Counter::default(),
        };
        metrics.begin();
        metrics
    }
}

impl Metrics {
    /// A series that does not exist cannot be told from one that is zero.
    fn begin(&self) {
        self.hold(None);
        for name in bigfleet_model::unmet::NAMES {
            self.needs_unmet(name, 0);
        }
        for phase in RollupPhase::ALL {
            drop(self.rollup_phase_duration.get_or_create(&OfPhase { phase: phase.label() }));
        }
        for phase in Phase::ALL {
            self.capacity_requests(*phase, 0);
        }
        for reason in Skipped::ALL {
            drop(
                self.capacity_requests_skipped.get_or_create(&OfReason { reason: reason.label() }),
            );
        }
        for (op, outcome) in WriteOp::ALL.iter().flat_map(|op| {
            WriteOutcome::ALL.iter().map(move |outcome| (op.label(), outcome.label()))
        }) {
            drop(self.upcoming_node_writes.get_or_create(&OfWrite { op, outcome }));
        }
        for phase in NodeStatePhase::ALL {
            drop(self.node_state_update_duration.get_or_create(&OfPhase { phase: phase.label() }));
        }
        for outcome in DrainOutcome::ALL {
            drop(self.drain_duration.get_or_create(&OfOutcome { outcome: outcome.label() }));
        }
        for outcome in EvictionOutcome::ALL {
            drop(self.evictions.get_or_create(&OfOutcome { outcome: outcome.label() }));
        }
        for outcome in RenderOutcome::ALL {
            drop(self.bootstrap_renders.get_or_create(&OfOutcome { outcome: outcome.label() }));
        }
        for outcome in ReloadOutcome::ALL {
            drop(self.bootstrap_reloads.get_or_create(&OfOutcome { outcome: outcome.label() }));
        }
        for reason in IgnoredFrame::ALL {
            drop(self.node_frames_ignored.get_or_create(&OfReason { reason: reason.label() }));
        }
    }

    /// A part of a roll-up took so long.
    pub fn rollup_phase(&self, phase: RollupPhase, took: Duration) {
        let phase = OfPhase { phase: phase.label() };
        self.rollup_phase_duration.get_or_create(&phase).observe(took.as_secs_f64());
    }

    /// Roll-ups are held for this reason, or for none.
    pub fn hold(&self, reason: Option<HoldReason>) {
        for one in HoldReason::ALL {
            let held = i64::from(reason == Some(*one));
            self.rollup_held.get_or_create(&OfReason { reason: one.label() }).set(held);
        }
    }

    /// So many requests are in this phase.
    pub fn capacity_requests(&self, phase: Phase, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.capacity_requests.get_or_create(&OfPhase { phase: phase.label() }).set(count);
    }

    /// A generation of a request could not be translated.
    pub fn request_skipped(&self, reason: Skipped) {
        self.capacity_requests_skipped.get_or_create(&OfReason { reason: reason.label() }).inc();
    }

    /// So many needs are unmet for the reason of this name.
    pub fn needs_unmet(&self, name: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let reason = name.to_ascii_lowercase();
        self.needs_unmet.get_or_create(&OfUnmet { reason }).set(count);
    }

    /// A part of handling a node state frame took so long.
    pub fn node_state_update(&self, phase: NodeStatePhase, took: Duration) {
        let phase = OfPhase { phase: phase.label() };
        self.node_state_update_duration.get_or_create(&phase).observe(took.as_secs_f64());
    }

    /// A write to an UpcomingNode, done or saved.
    pub fn upcoming_node_write(&self, op: WriteOp, outcome: WriteOutcome) {
        let labels = OfWrite { op: op.label(), outcome: outcome.label() };
        self.upcoming_node_writes.get_or_create(&labels).inc();
    }

    /// A drain ended after so long.
    pub fn drain_ended(&self, outcome: DrainOutcome, took: Duration) {
        let outcome = OfOutcome { outcome: outcome.label() };
        self.drain_duration.get_or_create(&outcome).observe(took.as_secs_f64());
    }

    /// An eviction was answered.
    pub fn eviction(&self, outcome: EvictionOutcome) {
        self.evictions.get_or_create(&OfOutcome { outcome: outcome.label() }).inc();
    }

    /// A bootstrap request was answered.
    pub fn bootstrap_render(&self, outcome: RenderOutcome) {
        self.bootstrap_renders.get_or_create(&OfOutcome { outcome: outcome.label() }).inc();
    }

    /// A file behind bootstrap blobs changed.
    pub fn bootstrap_reload(&self, outcome: ReloadOutcome) {
        self.bootstrap_reloads.get_or_create(&OfOutcome { outcome: outcome.label() }).inc();
    }

    /// A node state frame was not followed.
    pub fn node_frame_ignored(&self, reason: IgnoredFrame) {
        self.node_frames_ignored.get_or_create(&OfReason { reason: reason.label() }).inc();
    }
}

/// Holds a gauge up by one for as long as it lives.
#[derive(Debug)]
pub struct Inflight(Gauge<i64, AtomicI64>);

impl Inflight {
    /// One more.
    #[must_use]
    pub fn of(gauge: &Gauge<i64, AtomicI64>) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Inflight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// How everybody holds them.
pub type SharedMetrics = Arc<Metrics>;

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text, registry::Registry};

    use super::*;

    fn scrape(metrics: &Metrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut body = String::new();
        text::encode(&mut body, &registry).unwrap();
        body
    }

    #[test]
    fn every_series_of_the_specification_is_there_from_the_start() {
        let spec = include_str!("../../../../docs/spec/kubernetes.md");
        let (_, spec) = spec.split_once("Operator series, prefix").unwrap();
        let (spec, _) = spec.split_once("\n\nUPC:").unwrap();
        let body = scrape(&Metrics::default());
        let mut names = 0;
        for quoted in spec.split('`').skip(3).step_by(2) {
            let name = quoted.split('{').next().unwrap();
            names += 1;
            let line = format!("bigfleet_operator_{name}");
            assert!(
                body.lines()
                    .any(|text| text.starts_with(&line) || text.contains(&format!("{line} "))),
                "{name} is not served"
            );
        }
        assert!(names > 25, "{names}");
    }

    #[test]
    fn one_reason_holds_at_a_time() {
        let metrics = Metrics::default();
        metrics.hold(Some(HoldReason::DemandSource));
        metrics.hold(Some(HoldReason::CrdMissing));
        let body = scrape(&metrics);
        assert!(body.contains("bigfleet_operator_rollup_held{reason=\"crd_missing\"} 1"));
        assert!(body.contains("bigfleet_operator_rollup_held{reason=\"demand_source\"} 0"));
        metrics.hold(None);
        assert!(!scrape(&metrics).contains("} 1\n"));
    }

    #[test]
    fn objectives_are_resolved() {
        for (buckets, objective) in [
            (ROLLUP, 0.05),
            (ROLLUP, 1.0),
            (ACKNOWLEDGE, 12.0),
            (NODE_STATE, 0.1),
            (NODE_STATE, 1.0),
        ] {
            assert!(buckets.resolve(objective), "{objective}");
        }
    }

    #[test]
    fn inflight_counts_down_by_itself() {
        let metrics = Metrics::default();
        let one = Inflight::of(&metrics.dispatch_inflight);
        assert_eq!(metrics.dispatch_inflight.get(), 1);
        drop(one);
        assert_eq!(metrics.dispatch_inflight.get(), 0);
    }
}
