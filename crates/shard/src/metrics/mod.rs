//! What a shard counts (shard chapter §18).
//!
//! Metrics without labels are fields; those with labels have a method each, so
//! that no caller writes a label by hand.

mod buckets;
mod cluster;
mod labels;
mod level;
mod register;

use std::time::{Duration, Instant};

use bigfleet_engine::Reason;
use bigfleet_model::{
    CapacityType, ClusterId, MachineState, PenaltyBucket, gate::inventory::RejectReason,
};
use bigfleet_provider::protocol;
use buckets::{Buckets, CONFIGURE, CYCLE, PHASE, PROVISIONING, STEP, WAIT};
pub use cluster::CLUSTER_SERIES_KEPT;
use cluster::Clusters;
pub use labels::{
    AgeBucket, Holding, Phase, PriorityClass, Proposal, ReportOutcome, SessionEvent, WatchMethod,
    capacity_label, reason_label, state_label,
};
use labels::{
    OfAge, OfBucket, OfChange, OfClass, OfCost, OfEvent, OfExecution, OfHolding, OfKind,
    OfMachines, OfMethod, OfOutcome, OfPhase, OfReason, OfState, REASONS, bucket_label,
};
use level::{Fraction, Levels};
use prometheus_client::metrics::{
    counter::Counter,
    family::{Family, MetricConstructor},
    gauge::Gauge,
    histogram::Histogram,
};

use crate::outcome::{Kind, Outcome};

type Histograms<L> = Family<L, Histogram, Buckets>;

/// All metrics of a shard. Share it in an `Arc`; the fields' own clones count
/// together, too.
#[derive(Debug)]
pub struct Metrics {
    /// A whole cycle, in seconds.
    pub cycle_duration: Histogram,
    phase_duration: Histograms<OfPhase>,
    /// First roll-up of a need → first machine Configured for it, in seconds.
    pub provisioning_latency: Histogram,
    /// Configure → Configured, in seconds.
    pub configure_phase: Histogram,
    /// Blob asked for → delivered, in seconds.
    pub request_bootstrap: Histogram,
    /// Drain → Idle, in seconds.
    pub drain_phase: Histogram,
    inventory: Levels<OfMachines, Gauge>,
    demand: Levels<OfBucket, Gauge>,
    cost: Levels<OfCost, Fraction>,
    need_wait: Histograms<OfClass>,
    needs_unmet: Levels<OfReason, Gauge>,
    /// Entries of the ledger.
    pub shortfalls: Gauge,
    shortfalls_aged: Levels<OfAge, Gauge>,
    shortfalls_by_priority: Levels<OfClass, Gauge>,
    actions: Family<OfKind, Counter>,
    outcomes: Family<OfExecution, Counter>,
    /// Actions left for the next cycle by the action limit.
    pub actions_deferred: Counter,
    /// Actions that found the queue full.
    pub actions_dropped: Counter,
    /// Actions whose machine had one already or had moved on.
    pub actions_deduped: Counter,
    /// Actions that wait for a worker.
    pub action_queue_depth: Gauge,
    /// Actions that may wait.
    pub action_queue_capacity: Gauge,
    /// Actions that a worker has.
    pub execute_inflight: Gauge,
    /// Reclaims left for a later cycle by the cap.
    pub reclaims_capped: Counter,
    /// Machines given back, counted at Speculative.
    pub idle_releases: Counter,
    clusters: Clusters,
    suppressed: Family<OfKind, Counter>,
    dryrun: Family<OfKind, Counter>,
    /// 1 while the kill switch is on.
    pub actuation_paused: Gauge,
    machines_rejected: Family<OfReason, Counter>,
    /// Clusters connected.
    pub active_sessions: Gauge,
    session_lifecycle: Family<OfEvent, Counter>,
    /// Callers with a wrong identity: any value is a security event.
    pub session_identity_rejected: Counter,
    proposals: Family<OfOutcome, Counter>,
    /// Stays 0: there is no commit broker.
    pub phase1_occ_displacements: Counter,
    /// Stays 0: there is no commit broker.
    pub phase1_occ_retries_exhausted: Counter,
    /// 1 once another process holds a higher epoch.
    pub fenced: Gauge,
    /// Age of the last good reconcile, in seconds.
    pub last_reconcile_age: Gauge<f64, std::sync::atomic::AtomicU64>,
    /// Removals that the mass-disappearance guard holds.
    pub removals_held: Gauge,
    /// Frames that wait in all outboxes.
    pub outbox_depth: Gauge,
    machines_stuck: Levels<OfState, Gauge>,
    holdings: Family<OfHolding, Gauge>,
    holdings_age: Family<OfHolding, Gauge<f64, std::sync::atomic::AtomicU64>>,
    /// Of a shared provider: without the label that says whose they are.
    pub machines_without_owner: Gauge,
    reconcile_forced: Family<OfChange, Counter>,
    coordinator_reports: Family<OfOutcome, Counter>,
    /// First reclaim acks that did not come in time.
    pub reclaim_ack_timeouts: Counter,
    /// Fenced calls that a fresh sequence number cleared.
    pub fence_false_alarms: Counter,
    /// Audit lines that found the buffer full.
    pub audit_dropped: Counter,
    /// Failed writes of the audit log.
    pub audit_errors: Counter,
    watchers: Family<OfMethod, Gauge>,
    watchers_ended: Family<OfMethod, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            cycle_duration: CYCLE.new_metric(),
            phase_duration: Family::new_with_constructor(PHASE),
            provisioning_latency: PROVISIONING.new_metric(),
            configure_phase: CONFIGURE.new_metric(),
            request_bootstrap: STEP.new_metric(),
            drain_phase: STEP.new_metric(),
            inventory: Levels::default(),
            demand: Levels::default(),
            cost: Levels::default(),
            need_wait: Family::new_with_constructor(WAIT),
            needs_unmet: Levels::default(),
            shortfalls: Gauge::default(),
            shortfalls_aged: Levels::default(),
            shortfalls_by_priority: Levels::default(),
            actions: Family::default(),
            outcomes: Family::default(),
            actions_deferred: Counter::default(),
            actions_dropped: Counter::default(),
            actions_deduped: Counter::default(),
            action_queue_depth: Gauge::default(),
            action_queue_capacity: Gauge::default(),
            execute_inflight: Gauge::default(),
            reclaims_capped: Counter::default(),
            idle_releases: Counter::default(),
            clusters: Clusters::default(),
            suppressed: Family::default(),
            dryrun: Family::default(),
            actuation_paused: Gauge::default(),
            machines_rejected: Family::default(),
            active_sessions: Gauge::default(),
            session_lifecycle: Family::default(),
            session_identity_rejected: Counter::default(),
            proposals: Family::default(),
            phase1_occ_displacements: Counter::default(),
            phase1_occ_retries_exhausted: Counter::default(),
            fenced: Gauge::default(),
            last_reconcile_age: Gauge::default(),
            removals_held: Gauge::default(),
            outbox_depth: Gauge::default(),
            machines_stuck: Levels::default(),
            holdings: Family::default(),
            holdings_age: Family::default(),
            machines_without_owner: Gauge::default(),
            reconcile_forced: Family::default(),
            coordinator_reports: Family::default(),
            reclaim_ack_timeouts: Counter::default(),
            fence_false_alarms: Counter::default(),
            audit_dropped: Counter::default(),
            audit_errors: Counter::default(),
            watchers: Family::default(),
            watchers_ended: Family::default(),
        };
        metrics.begin_at_zero();
        metrics
    }
}

impl Metrics {
    /// Series whose labels are few and known begin at 0: an increase from
    /// nothing to 1 is none to a query.
    fn begin_at_zero(&self) {
        for kind in Kind::ALL.iter().map(|kind| kind.label()) {
            drop(self.actions.get_or_create(&OfKind { kind }));
            drop(self.suppressed.get_or_create(&OfKind { kind }));
            drop(self.dryrun.get_or_create(&OfKind { kind }));
        }
        let refused =
            [RejectReason::Price, RejectReason::InterruptionProbability, RejectReason::Structural];
        for reason in refused.map(RejectReason::label) {
            drop(self.machines_rejected.get_or_create(&OfReason { reason }));
        }
        for event in SessionEvent::ALL.iter().map(|event| event.label()) {
            drop(self.session_lifecycle.get_or_create(&OfEvent { event }));
        }
        for outcome in Proposal::ALL.iter().map(|outcome| outcome.label()) {
            drop(self.proposals.get_or_create(&OfOutcome { outcome }));
        }
        for outcome in ReportOutcome::ALL.iter().map(|outcome| outcome.label()) {
            drop(self.coordinator_reports.get_or_create(&OfOutcome { outcome }));
        }
        for method in WatchMethod::ALL.iter().map(|method| method.label()) {
            drop(self.watchers.get_or_create(&OfMethod { method }));
            drop(self.watchers_ended.get_or_create(&OfMethod { method }));
        }
        for holding in Holding::ALL {
            self.holding(*holding, 0, Duration::ZERO);
        }
        self.needs_unmet(|_| 0);
        self.shortfalls_aged(|_| 0);
        self.shortfalls_by_priority(|_| 0);
        self.machines_stuck(|_| 0);
    }

    /// A phase of a cycle took so long.
    pub fn phase(&self, phase: Phase, took: Duration) {
        let phase = phase.label();
        self.phase_duration.get_or_create(&OfPhase { phase }).observe(took.as_secs_f64());
    }

    /// All machines, counted; combinations that are not there any more go to 0.
    pub fn inventory(
        &self,
        counts: impl IntoIterator<Item = ((MachineState, CapacityType, PenaltyBucket), usize)>,
    ) {
        self.inventory.publish(counts.into_iter().map(|((state, capacity, bucket), count)| {
            let labels = OfMachines {
                state: state_label(state),
                capacity_type: capacity_label(capacity),
                interruption_penalty_bucket: bucket_label(bucket),
            };
            (labels, whole(count))
        }));
    }

    /// All Need rows, counted.
    pub fn demand(&self, counts: impl IntoIterator<Item = (PenaltyBucket, usize)>) {
        self.demand.publish(counts.into_iter().map(|(bucket, count)| {
            (OfBucket { interruption_penalty_bucket: bucket_label(bucket) }, whole(count))
        }));
    }

    /// Declared prices of all machines with a host, summed.
    pub fn cost(&self, sums: impl IntoIterator<Item = ((CapacityType, MachineState), f64)>) {
        self.cost.publish(sums.into_iter().map(|((capacity, state), dollars)| {
            let labels =
                OfCost { capacity_type: capacity_label(capacity), state: state_label(state) };
            (labels, dollars)
        }));
    }

    /// A need was satisfied this long after it was first seen unmet.
    pub fn need_waited(&self, class: PriorityClass, waited: Duration) {
        let labels = OfClass { priority_class: class.label() };
        self.need_wait.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// Needs unmet, by base reason.
    pub fn needs_unmet(&self, count: impl Fn(Reason) -> usize) {
        self.needs_unmet.publish(
            REASONS.map(|reason| (OfReason { reason: reason_label(reason) }, whole(count(reason)))),
        );
    }

    /// Shortfalls by age.
    pub fn shortfalls_aged(&self, count: impl Fn(AgeBucket) -> usize) {
        self.shortfalls_aged.publish(
            AgeBucket::ALL.iter().map(|age| (OfAge { bucket: age.label() }, whole(count(*age)))),
        );
    }

    /// Shortfalls by class.
    pub fn shortfalls_by_priority(&self, count: impl Fn(PriorityClass) -> usize) {
        self.shortfalls_by_priority.publish(
            PriorityClass::ALL
                .iter()
                .map(|class| (OfClass { priority_class: class.label() }, whole(count(*class)))),
        );
    }

    /// Machines unchanged in a state for too long.
    pub fn machines_stuck(&self, count: impl Fn(MachineState) -> usize) {
        let transitional = protocol::Kind::ALL.map(protocol::Kind::transitional);
        self.machines_stuck.publish(
            transitional.map(|state| (OfState { state: state_label(state) }, whole(count(state)))),
        );
    }

    /// So many are between two owners, the oldest for so long.
    pub fn holding(&self, holding: Holding, count: usize, oldest: Duration) {
        let labels = OfHolding { holding: holding.label() };
        self.holdings.get_or_create(&labels).set(whole(count));
        self.holdings_age.get_or_create(&labels).set(oldest.as_secs_f64());
    }

    /// Emitted for execution.
    pub fn action(&self, kind: Kind) {
        self.actions.get_or_create(&OfKind { kind: kind.label() }).inc();
    }

    /// An execution ended.
    pub fn executed(&self, kind: Kind, outcome: Outcome) {
        let labels = OfExecution { kind: kind.label(), outcome: outcome.label() };
        self.outcomes.get_or_create(&labels).inc();
    }

    /// Withheld by the kill switch.
    pub fn suppressed(&self, kind: Kind) {
        self.suppressed.get_or_create(&OfKind { kind: kind.label() }).inc();
    }

    /// Withheld by shadow mode.
    pub fn dryrun(&self, kind: Kind) {
        self.dryrun.get_or_create(&OfKind { kind: kind.label() }).inc();
    }

    /// The inventory gate rejected a record.
    pub fn machine_rejected(&self, reason: RejectReason) {
        self.machines_rejected.get_or_create(&OfReason { reason: reason.label() }).inc();
    }

    /// The counter of something that happens to sessions.
    #[must_use]
    pub fn session_counter(&self, event: SessionEvent) -> Counter {
        self.session_lifecycle.get_or_create_owned(&OfEvent { event: event.label() })
    }

    /// Reconcile adopted a change that the shard itself could not have made.
    pub fn reconcile_forced(&self, from: MachineState, to: MachineState) {
        let labels = OfChange { from: state_label(from), to: state_label(to) };
        self.reconcile_forced.get_or_create(&labels).inc();
    }

    /// A report to the coordinator went so.
    pub fn coordinator_report(&self, outcome: ReportOutcome) {
        self.coordinator_reports.get_or_create(&OfOutcome { outcome: outcome.label() }).inc();
    }

    /// The gauge of readers of a stream; add on start, take off at the end.
    #[must_use]
    pub fn watchers(&self, method: WatchMethod) -> Gauge {
        self.watchers.get_or_create_owned(&OfMethod { method: method.label() })
    }

    /// A reader was too slow and its stream ended.
    pub fn watcher_dropped(&self, method: WatchMethod) {
        self.watchers_ended.get_or_create(&OfMethod { method: method.label() }).inc();
    }

    /// So many roll-ups of the cluster are held in a row.
    pub fn rollup_quarantined(&self, cluster: &ClusterId, in_a_row: u32) {
        self.clusters.quarantined(cluster, in_a_row.into());
    }

    /// A roll-up of the cluster was rejected.
    pub fn rollup_rejected(&self, cluster: &ClusterId) {
        self.clusters.rejected(cluster);
    }

    /// The cluster's demand is this old.
    pub fn rollup_age(&self, cluster: &ClusterId, age: Duration) {
        self.clusters.age(cluster, age);
    }

    /// Ends the series of clusters that have had neither session nor demand for
    /// [`CLUSTER_SERIES_KEPT`]. For each cycle.
    pub fn retire_clusters(&self, now: Instant, present: impl FnMut(&ClusterId) -> bool) {
        self.clusters.retire(now, present);
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
