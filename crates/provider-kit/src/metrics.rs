//! What a provider counts (provider chapter §9).

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use bigfleet_model::{CapacityType, MachineState};
use bigfleet_provider::protocol::Kind;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use crate::book::Book;

/// Around 250 ms, the objective, no bucket is wider than a fifth of it.
const FAST: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.225, 0.25, 0.3, 1.0, 5.0];
/// From an instant cloud to a long drain.
const SLOW: [f64; 12] =
    [0.05, 0.25, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 240.0, 300.0, 600.0, 1800.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rpc {
    method: &'static str,
    code: &'static str,
}

macro_rules! one_label {
    ($name:ident, $label:ident) => {
        #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        struct $name {
            $label: &'static str,
        }
    };
}
one_label!(Method, method);
one_label!(OfKind, kind);
one_label!(OfOp, op);
one_label!(Outcome, outcome);
one_label!(Field, field);
one_label!(Mode, mode);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindOutcome {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpOutcome {
    op: &'static str,
    outcome: &'static str,
}

/// Makes histograms with these buckets.
#[derive(Clone, Copy, Debug)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

type Histograms<L> = Family<L, Histogram, Buckets>;

/// All of them; clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    rpc: Family<Rpc, Counter>,
    rpc_seconds: Histograms<Method>,
    transitions: Family<KindOutcome, Counter>,
    transition_seconds: Histograms<OfKind>,
    pub(crate) fenced: Counter,
    pub(crate) inflight: Gauge,
    store_commit_seconds: Histogram,
    pub(crate) store_errors: Counter,
    sweep: Family<Outcome, Counter>,
    pub(crate) hosts_lost: Counter,
    repairs: Family<Outcome, Counter>,
    cloud_calls: Family<OpOutcome, Counter>,
    cloud_seconds: Histograms<OfOp>,
    shape_rejected: Family<Field, Counter>,
    pub(crate) panics: Counter,
    pub(crate) denied: Counter,
    readiness_gate: Family<Mode, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            rpc: Family::default(),
            rpc_seconds: Family::new_with_constructor(Buckets(&FAST)),
            transitions: Family::default(),
            transition_seconds: Family::new_with_constructor(Buckets(&SLOW)),
            fenced: Counter::default(),
            inflight: Gauge::default(),
            store_commit_seconds: Histogram::new(FAST),
            store_errors: Counter::default(),
            sweep: Family::default(),
            hosts_lost: Counter::default(),
            repairs: Family::default(),
            cloud_calls: Family::default(),
            cloud_seconds: Family::new_with_constructor(Buckets(&SLOW)),
            shape_rejected: Family::default(),
            panics: Counter::default(),
            denied: Counter::default(),
            readiness_gate: Family::default(),
        }
    }
}

impl Metrics {
    /// In the registry with the prefix `bigfleet_provider`.
    pub(crate) fn register(&self, registry: &mut Registry, book: &Arc<Book>) {
        let seconds = |name| (name, Unit::Seconds);
        registry.register("rpc", "Calls by method and status code", self.rpc.clone());
        let (name, unit) = seconds("rpc");
        registry.register_with_unit(name, "Time to answer", unit, self.rpc_seconds.clone());
        registry.register("transitions", "Transitions ended", self.transitions.clone());
        let (name, unit) = seconds("transition");
        let help = "Time from acceptance to the end";
        registry.register_with_unit(name, help, unit, self.transition_seconds.clone());
        registry.register("fenced", "Calls refused for a stale token", self.fenced.clone());
        registry.register("inflight", "Transitions under way", self.inflight.clone());
        let (name, unit) = seconds("store_commit");
        let help = "Time to make a group of changes durable";
        registry.register_with_unit(name, help, unit, self.store_commit_seconds.clone());
        registry.register("store_errors", "Commits that failed", self.store_errors.clone());
        registry.register("sweep", "Sweeps by outcome", self.sweep.clone());
        registry.register("hosts_lost", "Hosts that vanished", self.hosts_lost.clone());
        registry.register("repairs", "Repairs of failed machines", self.repairs.clone());
        registry.register("cloud_calls", "Calls of the cloud", self.cloud_calls.clone());
        let (name, unit) = seconds("cloud");
        registry.register_with_unit(name, "Time in the cloud", unit, self.cloud_seconds.clone());
        let help = "Offers refused in a sweep, by field";
        registry.register("shape_rejected", help, self.shape_rejected.clone());
        registry.register("panics", "Panics in handlers and cloud calls", self.panics.clone());
        registry.register("identity_rejected", "Calls by a wrong identity", self.denied.clone());
        let help = "1 for how CONFIGURED is gated: observed or ungated";
        registry.register("readiness_gate", help, self.readiness_gate.clone());
        registry.register_collector(Box::new(Machines { book: Arc::downgrade(book) }));
    }

    pub(crate) fn rpc(&self, method: &'static str, code: &'static str, took: Duration) {
        self.rpc.get_or_create(&Rpc { method, code }).inc();
        self.rpc_seconds.get_or_create(&Method { method }).observe(took.as_secs_f64());
    }

    pub(crate) fn transition(&self, kind: Kind, outcome: &'static str, took: Duration) {
        let kind = kind.name();
        self.transitions.get_or_create(&KindOutcome { kind, outcome }).inc();
        self.transition_seconds.get_or_create(&OfKind { kind }).observe(took.as_secs_f64());
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.store_commit_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn swept(&self, outcome: &'static str) {
        self.sweep.get_or_create(&Outcome { outcome }).inc();
    }

    pub(crate) fn repaired(&self, outcome: &'static str) {
        self.repairs.get_or_create(&Outcome { outcome }).inc();
    }

    pub(crate) fn cloud_call(&self, op: &'static str, outcome: &'static str, took: Duration) {
        self.cloud_calls.get_or_create(&OpOutcome { op, outcome }).inc();
        self.cloud_seconds.get_or_create(&OfOp { op }).observe(took.as_secs_f64());
    }

    pub(crate) fn misshapen(&self, field: &'static str) {
        self.shape_rejected.get_or_create(&Field { field }).inc();
    }

    pub(crate) fn readiness_gate(&self, mode: &'static str) {
        self.readiness_gate.get_or_create(&Mode { mode }).set(1);
    }
}

/// Counts machines when somebody asks.
#[derive(Debug)]
struct Machines {
    book: Weak<Book>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateAndCapacity {
    state: &'static str,
    capacity_type: &'static str,
}

impl Collector for Machines {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(book) = self.book.upgrade() else { return Ok(()) };
        let mut counts: BTreeMap<(MachineState, CapacityType), i64> = BTreeMap::new();
        book.for_each(|record| {
            let machine = &record.machine;
            *counts.entry((machine.state, machine.class.capacity_type)).or_default() += 1;
        });
        let gauge = ConstGauge::new(0_i64);
        let help = "Machines by state and capacity type";
        let mut family = encoder.encode_descriptor("machines", help, None, gauge.metric_type())?;
        for ((state, capacity_type), count) in counts {
            let labels = StateAndCapacity {
                state: state.wire_name(),
                capacity_type: capacity_name(capacity_type),
            };
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

const fn capacity_name(capacity_type: CapacityType) -> &'static str {
    match capacity_type {
        CapacityType::Unspecified => "UNSPECIFIED",
        CapacityType::BareMetal => "BARE_METAL",
        CapacityType::Reserved => "RESERVED",
        CapacityType::OnDemand => "ON_DEMAND",
        CapacityType::Spot => "SPOT",
    }
}
