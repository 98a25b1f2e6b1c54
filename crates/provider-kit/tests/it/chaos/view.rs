//! What a careful reader of the provider knows, and checks.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use bigfleet_model::gate::inventory;
use bigfleet_provider_kit::{Config, Kind, Service};
use bigfleet_wire::v1alpha1::{
    CapacityType, ListFilter, Machine, MachineState, TransitionAck,
    capacity_provider_server::CapacityProvider,
};
use tokio::time::Instant;
use tonic::Code;

use super::{cloud::Truth, request};

pub(super) struct View {
    /// Kept by deltas alone.
    by_delta: BTreeMap<String, Machine>,
    cursor: Vec<u8>,
    marks: HashMap<(String, String), (i64, i64)>,
    /// Since when a machine has been in a transitional state, and how long it may.
    since: HashMap<String, (MachineState, Instant)>,
    /// The last operation of a kind.
    operations: HashMap<(String, u64), String>,
    timeout: Duration,
    longest_drain: Duration,
}

impl View {
    pub(super) fn new(config: &Config) -> Self {
        // The longest grace that is sent here, and the margin of a drain.
        let longest_drain = config.timeouts.of(Kind::Drain, Duration::from_secs(1800));
        Self {
            by_delta: BTreeMap::new(),
            cursor: Vec::new(),
            marks: HashMap::new(),
            since: HashMap::new(),
            operations: HashMap::new(),
            timeout: config.timeouts.create,
            longest_drain,
        }
    }

    pub(super) fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.by_delta.values()
    }

    /// Time without a provider does not count against a transition. Marks of unknown
    /// machines do not survive.
    pub(super) fn restarted(&mut self) {
        self.since.clear();
        self.marks.retain(|(machine, _), _| self.by_delta.contains_key(machine));
    }

    /// Invariant 1: FAILED_PRECONDITION exactly for stale tokens.
    pub(super) fn called(&mut self, machine: &str, shard: &str, token: (i64, i64), code: Code) {
        let mark =
            self.marks.entry((machine.to_owned(), shard.to_owned())).or_insert((i64::MIN, 0));
        let stale = token <= *mark;
        assert_eq!(
            code == Code::FailedPrecondition,
            stale,
            "invariant 1: {machine} {shard} {token:?} after {mark:?} answered {code:?}"
        );
        *mark = token.max(*mark);
        let expected = [
            Code::Ok,
            Code::FailedPrecondition,
            Code::NotFound,
            Code::Internal,
            Code::AlreadyExists,
            Code::ResourceExhausted,
        ];
        assert!(expected.contains(&code), "{code:?}");
    }

    pub(super) fn acknowledged(&mut self, kind: u64, ack: &TransitionAck) {
        let machine = ack.machine.as_ref().unwrap();
        check_shape(machine);
        let known = self.operations.insert((machine.id.clone(), kind), ack.operation_id.clone());
        if known.as_ref() != Some(&ack.operation_id) {
            // A new cycle, though nobody may have looked in between.
            self.since.remove(&machine.id);
        }
    }

    /// Invariants 2, 4, 5, 6, 7 and 8, as of now.
    pub(super) async fn look(&mut self, service: &Service, truth: &Truth) {
        let list =
            async |filter: ListFilter| service.list(request(filter)).await.unwrap().into_inner();
        let since_revision = std::mem::take(&mut self.cursor);
        let delta = list(ListFilter { since_revision, ..ListFilter::default() }).await;
        for machine in &delta.machines {
            self.by_delta.insert(machine.id.clone(), machine.clone());
        }
        self.cursor = delta.revision;
        let full = list(ListFilter::default()).await;
        if full.revision == self.cursor {
            let full: BTreeMap<_, _> =
                full.machines.into_iter().map(|machine| (machine.id.clone(), machine)).collect();
            assert_eq!(full, self.by_delta, "invariant 7");
        }
        for machine in self.by_delta.values() {
            check_shape(machine);
            assert!(truth.hosts(&machine.id).len() <= 1, "invariant 2: {}", machine.id);
            if machine.state() == MachineState::Configured {
                let operation = &self.operations[&(machine.id.clone(), 1)];
                assert!(truth.was_ready(operation), "invariant 8: {} {operation}", machine.id);
            }
        }
        assert_eq!(truth.violation(), None, "invariant 2");
        self.check_time();
    }

    fn check_time(&mut self) {
        for machine in self.by_delta.values() {
            let state = machine.state();
            let settled = matches!(
                state,
                MachineState::Speculative
                    | MachineState::Idle
                    | MachineState::Configured
                    | MachineState::Failed
            );
            if settled {
                self.since.remove(&machine.id);
                continue;
            }
            let entry =
                self.since.entry(machine.id.clone()).or_insert_with(|| (state, Instant::now()));
            if entry.0 != state {
                *entry = (state, Instant::now());
            }
            let limit = match state {
                MachineState::Draining => self.longest_drain,
                _ => self.timeout,
            } + Duration::from_secs(5);
            assert!(entry.1.elapsed() <= limit, "invariant 5: {} stays {state:?}", machine.id);
        }
    }
}

/// Invariants 4 and 6 for one record.
fn check_shape(machine: &Machine) {
    let accepted = inventory::machine(machine.clone())
        .unwrap_or_else(|rejected| panic!("invariant 4: {rejected}: {machine:?}"));
    assert!(!accepted.stray_binding, "invariant 4: {machine:?}");
    assert_eq!(
        machine.cluster.is_empty(),
        machine.shard_metadata.is_empty(),
        "invariant 6: {machine:?}"
    );
    let failed = machine.state() == MachineState::Failed;
    assert_eq!(failed, !machine.last_error.is_empty(), "invariant 4: {machine:?}");
    assert!(machine.last_error.len() <= 1024);
    let bound = matches!(
        machine.state(),
        MachineState::Configuring | MachineState::Configured | MachineState::Draining
    );
    assert!(failed || bound != machine.cluster.is_empty(), "invariant 4: {machine:?}");
    assert_eq!(machine.instance_type, "chaos.large");
    assert_eq!(machine.capacity_type(), CapacityType::Spot);
    assert!(machine.interruption_probability > 0.0 && machine.price_per_hour > 0.0);
}
