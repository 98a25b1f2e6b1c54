//! What a coordinator counts (coordinator chapter §11), as far as the service knows it.
//! Metrics with labels have a method each, so that no caller writes a label by hand.

mod register;

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use bigfleet_net::buckets::Buckets;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
};

use crate::{
    rebalance::{Move, Skip, tier},
    reports::{Liveness, Now, Reports, Tally},
    state::{Effect, Refused, State, TransferKind, TransferPhase},
};

/// All metrics of the service. Share it in an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    /// The coordinator term, on every replica.
    pub raft_term: Gauge,
    /// Whether this replica leads.
    pub is_leader: Gauge,
    /// Whether a newer generation of the fleet has been seen.
    pub superseded: Gauge,
    /// Leaderships that this replica has seen begin.
    pub leader_changes: Counter,
    commit_index: Gauge,
    applied_index: Gauge,
    snapshot_bytes: Gauge,
    apply_duration: Histogram,
    fsync_duration: Histogram,
    /// Reports of a process that another one has succeeded.
    pub stale_epoch: Counter,
    /// When the leader's backup was last found or made current, in unix seconds.
    pub last_export: Gauge,
    /// Backups that could not be written.
    pub export_failures: Counter,
    recovering: Gauge,
    applies: Family<OfOutcome, Counter>,
    pending: Family<OfShard, Gauge>,
    pending_shards: Mutex<BTreeSet<String>>,
    shards: Family<OfState, Gauge>,
    domains: Gauge,
    clusters: Gauge,
    transfer_machines: Gauge,
    transfers: Family<OfPhase, Gauge>,
    oldest_instruction_age: Gauge,
    oldest_transfer_age: Gauge,
    oldest_releasing_age: Gauge,
    rows_releasing: Gauge,
    reports: Family<OfReport, Counter>,
    report_duration: Histogram,
    identity_rejected: Family<OfRpc, Counter>,
    binding_conflicts: Counter,
    foreign_fleet: Counter,
    adoption_conflicts: Counter,
    shortfalls_dropped: Counter,
    instructions_given_up: Counter,
    shortfalls_escalated: Family<OfSame, Gauge>,
    rebalance_duration: Histogram,
    rebalance_moves: Family<OfMove, Counter>,
    rebalance_skipped: Family<OfReason, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReport {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfShard {
    shard: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRpc {
    rpc: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSame {
    same: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfMove {
    tier: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

/// Around the objective of 20 ms no wider than a fifth of it.
#[derive(Clone, Copy, Debug)]
struct ReportBuckets;

impl MetricConstructor<Histogram> for ReportBuckets {
    fn new_metric(&self) -> Histogram {
        let mut bounds: Vec<f64> = exponential_buckets(0.000_25, 2.0, 15).collect();
        bounds.extend([0.018, 0.02, 0.022, 0.024]);
        bounds.sort_by(f64::total_cmp);
        Histogram::new(bounds)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            raft_term: Gauge::default(),
            is_leader: Gauge::default(),
            superseded: Gauge::default(),
            leader_changes: Counter::default(),
            commit_index: Gauge::default(),
            applied_index: Gauge::default(),
            snapshot_bytes: Gauge::default(),
            apply_duration: Histogram::new(exponential_buckets(0.000_25, 2.0, 15)),
            fsync_duration: Histogram::new(exponential_buckets(0.000_05, 2.0, 16)),
            stale_epoch: Counter::default(),
            last_export: Gauge::default(),
            export_failures: Counter::default(),
            recovering: Gauge::default(),
            applies: Family::default(),
            pending: Family::default(),
            pending_shards: Mutex::default(),
            shards: Family::default(),
            domains: Gauge::default(),
            clusters: Gauge::default(),
            transfer_machines: Gauge::default(),
            transfers: Family::default(),
            oldest_instruction_age: Gauge::default(),
            oldest_transfer_age: Gauge::default(),
            oldest_releasing_age: Gauge::default(),
            rows_releasing: Gauge::default(),
            reports: Family::default(),
            report_duration: ReportBuckets.new_metric(),
            identity_rejected: Family::default(),
            binding_conflicts: Counter::default(),
            foreign_fleet: Counter::default(),
            adoption_conflicts: Counter::default(),
            shortfalls_dropped: Counter::default(),
            instructions_given_up: Counter::default(),
            shortfalls_escalated: Family::default(),
            rebalance_duration: Histogram::new(
                Buckets::doubling(0.001, 12).with(&[0.4, 0.45, 0.5, 0.55, 0.6]).bounds(),
            ),
            rebalance_moves: Family::default(),
            rebalance_skipped: Family::default(),
        }
    }
}

impl Metrics {
    /// A command was committed, this long after it was proposed.
    pub fn applied(&self, outcome: &Result<Effect, Refused>, took: Duration) {
        let outcome = if outcome.is_ok() { "success" } else { "fsm_error" };
        self.applies.get_or_create(&OfOutcome { outcome }).inc();
        self.apply_duration.observe(took.as_secs_f64());
    }

    /// A batch of the log is on stable storage.
    pub fn fsynced(&self, took: Duration) {
        self.fsync_duration.observe(took.as_secs_f64());
    }

    /// How far the log is, and how large its last snapshot.
    pub fn progress(&self, commit_index: u64, applied_index: u64, snapshot_bytes: u64) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.commit_index.set(whole(commit_index));
        self.applied_index.set(whole(applied_index));
        self.snapshot_bytes.set(whole(snapshot_bytes));
    }

    /// A command was not committed, or nobody knows.
    pub fn apply_failed(&self) {
        self.applies.get_or_create(&OfOutcome { outcome: "error" }).inc();
    }

    /// A report was answered with this code.
    pub fn reported(&self, code: impl Into<String>, took: Duration) {
        self.reports.get_or_create(&OfReport { outcome: code.into() }).inc();
        self.report_duration.observe(took.as_secs_f64());
    }

    /// The counter of callers that an RPC turned away.
    #[must_use]
    pub fn identity_rejected(&self, rpc: &'static str) -> Counter {
        self.identity_rejected.get_or_create_owned(&OfRpc { rpc })
    }

    /// What the soft state counted.
    pub fn count(&self, tally: Tally) {
        self.foreign_fleet.inc_by(tally.foreign_fleet);
        self.stale_epoch.inc_by(tally.stale_epoch);
        self.binding_conflicts.inc_by(tally.binding_conflicts);
        self.adoption_conflicts.inc_by(tally.adoption_conflicts);
        self.shortfalls_dropped.inc_by(tally.shortfalls_dropped);
        self.instructions_given_up.inc_by(tally.instructions_given_up);
    }

    /// A pass of rebalancing took this long.
    pub fn rebalanced(&self, took: Duration) {
        self.rebalance_duration.observe(took.as_secs_f64());
    }

    /// What became of a transfer.
    pub fn moved(&self, kind: TransferKind, outcome: Move) {
        let of = OfMove { tier: tier(kind), outcome: outcome.label() };
        self.rebalance_moves.get_or_create(&of).inc();
    }

    /// So many shortfalls, or a whole pass, went without.
    pub fn skipped(&self, why: Skip, count: u64) {
        self.rebalance_skipped.get_or_create(&OfReason { reason: why.label() }).inc_by(count);
    }

    /// What is replicated; on every replica.
    pub fn publish_state(&self, state: &State) {
        self.recovering.set(i64::from(state.recovering()));
        let counts = state.counts();
        self.domains.set(whole(counts.domains));
        self.clusters.set(whole(counts.clusters));
        self.rows_releasing.set(whole(counts.rows_releasing));
        self.transfer_machines.set(whole(counts.transfer_machines));
        for phase in TransferPhase::ALL {
            let count = state.transfers().values().filter(|one| one.phase == phase).count();
            let phase = phase.name();
            self.transfers.get_or_create(&OfPhase { phase }).set(whole(count));
        }
    }

    /// How a leader sees its shards.
    pub fn publish(&self, reports: &Reports, state: &State, now: Now) {
        self.is_leader.set(1);
        for wanted in Liveness::ALL {
            let of = |id: &&crate::state::ShardId| reports.liveness(id, now) == wanted;
            let count = state.shards().keys().filter(of).count();
            self.shards.get_or_create(&OfState { state: wanted.label() }).set(whole(count));
        }
        let seconds = |age: Option<Duration>| {
            i64::try_from(age.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
        };
        self.oldest_instruction_age.set(seconds(reports.oldest_instruction(now)));
        self.oldest_releasing_age.set(seconds(reports.oldest_releasing(state, now)));
        self.oldest_transfer_age.set(seconds(reports.overdue_transfer(state, now)));
        let escalated = reports.escalated();
        for (same, count) in [("true", escalated.same), ("false", escalated.other)] {
            self.shortfalls_escalated.get_or_create(&OfSame { same }).set(count.into());
        }
        self.publish_pending(reports.pending().map(|(id, count)| (id.to_string(), count)));
    }

    /// Another replica leads: what only a leader knows is not shown.
    pub fn deposed(&self) {
        self.is_leader.set(0);
        self.publish_pending(std::iter::empty());
        for state in Liveness::ALL.map(Liveness::label) {
            self.shards.remove(&OfState { state });
        }
        for same in ["true", "false"] {
            self.shortfalls_escalated.remove(&OfSame { same });
        }
        self.oldest_instruction_age.set(0);
        self.oldest_transfer_age.set(0);
        self.oldest_releasing_age.set(0);
    }

    /// Series of shards that are not named any more end.
    fn publish_pending(&self, pending: impl Iterator<Item = (String, usize)>) {
        let mut shown =
            self.pending_shards.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut now = BTreeSet::new();
        for (shard, count) in pending {
            self.pending.get_or_create(&OfShard { shard: shard.clone() }).set(whole(count));
            now.insert(shard);
        }
        for shard in shown.difference(&now) {
            self.pending.remove(&OfShard { shard: shard.clone() });
        }
        *shown = now;
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
