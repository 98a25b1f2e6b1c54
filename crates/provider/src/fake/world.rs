//! What a fake knows, behind its lock.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use bigfleet_model::{Class, HostRef, Machine, MachineId, MachineState};

use super::{
    calls::{LoggedCall, Script},
    options::FakeOptions,
    rng::Rng,
};
use crate::{
    error::Error,
    mutant::{Mutant, active},
    protocol::{
        Admission, Binding, Call, Effects, Event, FenceBook, Kind, Known, News, OpBook, Operation,
        OperationId, Refused, Reject, RevIndex, Step, admit, step,
    },
    provider::{Ack, Attempt},
};

/// What the host of every machine is called after.
const PROVIDER: &str = "fake";

pub(super) struct World {
    pub(super) options: FakeOptions,
    pub(super) machines: BTreeMap<MachineId, Machine>,
    pub(super) fence: FenceBook,
    pub(super) operations: OpBook,
    pub(super) revisions: RevIndex,
    pub(super) rng: Rng,
    pub(super) log: VecDeque<LoggedCall>,
    pub(super) scripts: Vec<Script>,
    pub(super) failures: Vec<(MachineId, MachineState, Error)>,
    classes: HashSet<Arc<Class>>,
    /// Work that completes by itself, by when.
    due: BTreeMap<(Duration, u64), (MachineId, Kind, OperationId)>,
    minted: u64,
    pub(super) now: Duration,
    /// Whole seconds whose failures have happened.
    aged: u64,
}

/// A mutation with sound arguments.
pub(super) struct Mutation<'a> {
    pub(super) kind: Kind,
    pub(super) machine: &'a MachineId,
    pub(super) binding: Option<Binding>,
    pub(super) grace: Duration,
}

impl World {
    pub(super) fn new(options: FakeOptions) -> Self {
        // Random even where the seed is fixed: no other fake's cursor is ours.
        let store_life = RandomState::new().hash_one(0);
        Self {
            options,
            machines: BTreeMap::new(),
            fence: FenceBook::new(options.fence),
            operations: OpBook::default(),
            revisions: RevIndex::new(store_life, 0),
            rng: Rng::new(options.seed),
            log: VecDeque::new(),
            scripts: Vec::new(),
            failures: Vec::new(),
            classes: HashSet::new(),
            due: BTreeMap::new(),
            minted: 0,
            now: Duration::ZERO,
            aged: 0,
        }
    }

    pub(super) fn insert(&mut self, mut machine: Machine) {
        machine.class = self.shared(machine.class);
        self.fence.promote(&machine.id);
        self.revisions.bump(&machine.id);
        self.machines.insert(machine.id.clone(), machine);
    }

    pub(super) fn shared(&mut self, class: Arc<Class>) -> Arc<Class> {
        if let Some(known) = self.classes.get(&class) {
            return known.clone();
        }
        self.classes.insert(class.clone());
        class
    }

    pub(super) fn remove(&mut self, machine: &str) -> bool {
        self.revisions.remove(machine);
        self.fence.forget(machine);
        self.operations.forget(machine);
        self.machines.remove(machine).is_some()
    }

    pub(super) fn state(&self, machine: &str) -> Option<MachineState> {
        self.machines.get(machine).map(|machine| machine.state)
    }

    pub(super) fn ids(&self, state: MachineState) -> impl Iterator<Item = &MachineId> {
        self.machines.values().filter(move |machine| machine.state == state).map(|one| &one.id)
    }

    /// Steps 3 to 7 of a mutation.
    pub(super) fn mutate(&mut self, attempt: &Attempt, call: Mutation<'_>) -> Result<Ack, Error> {
        let id = call.machine;
        let known = self.machines.get(id).map(|machine| Known {
            state: machine.state,
            cluster: machine.cluster.as_deref(),
            recorded: self.operations.get(id, call.kind).is_some(),
        });
        let cluster = call.binding.as_ref().map(|binding| &*binding.cluster);
        let asked = Call { kind: call.kind, machine: id, cluster, token: &attempt.token };
        let Admission { advance, outcome } = admit(&self.fence, asked, known);
        if let Some(advance) = advance {
            self.fence.advance(advance);
        }
        if let Some(failure) = self.scripted_failure(id, call.kind, &outcome) {
            return Err(failure);
        }
        match outcome? {
            Step::Start(effects) => self.accept(call, effects),
            _ => self.ack(id, call.kind),
        }
    }

    /// Consumed by the first call that would be judged by its position.
    fn scripted_failure(
        &mut self,
        machine: &MachineId,
        kind: Kind,
        outcome: &Result<Step, Refused>,
    ) -> Option<Error> {
        let judged = matches!(
            outcome,
            Ok(Step::Start(_)) | Err(Refused::Lifecycle(Reject::Position { .. }))
        );
        let meant = |(id, target, _): &(MachineId, MachineState, Error)| {
            id == machine && *target == kind.target()
        };
        let found = self.failures.iter().position(meant).filter(|_| judged)?;
        Some(self.failures.remove(found).2)
    }

    fn accept(&mut self, call: Mutation<'_>, effects: Effects) -> Result<Ack, Error> {
        let Mutation { kind, machine: id, binding, grace } = call;
        self.minted += 1;
        let text = format!("op-{}", self.minted);
        let operation = OperationId::parse(&text).ok_or(Error::Internal(text))?;
        let record = Operation { id: operation.clone(), started: self.now, grace };
        self.operations.start(id.clone(), kind, record);
        self.apply(id, effects, News { binding, ..News::default() });
        let unready = kind == Kind::Configure && active(Mutant::ConfiguredBeforeReady);
        if !self.options.waits(kind) || unready {
            self.finish(id, kind);
        } else if !self.options.latency.of(kind).is_zero() {
            let at = self.now + self.options.latency.of(kind);
            self.due.insert((at, self.minted), (id.clone(), kind, operation));
        }
        self.ack(id, kind)
    }

    fn ack(&self, id: &MachineId, kind: Kind) -> Result<Ack, Error> {
        let operation = self.operations.get(id, kind);
        let operation_id = operation.map(|operation| operation.id.to_string()).unwrap_or_default();
        let machine = self.machines.get(id).cloned();
        let machine = machine.ok_or_else(|| Refused::NotFound(id.to_string()))?;
        Ok(Ack { operation_id, machine: Ok(machine) })
    }

    /// Lets the work that is under way end well.
    pub(super) fn complete(&mut self, machine: &MachineId) -> bool {
        let Some(kind) = self.state(machine).and_then(Kind::running) else { return false };
        self.finish(machine, kind);
        true
    }

    fn finish(&mut self, machine: &MachineId, kind: Kind) {
        let reference = machine.to_string();
        let host = Some(HostRef { provider: PROVIDER.to_owned(), reference });
        let done = Event::Done { kind, current: true };
        self.happen(machine, done, News { host, ..News::default() });
    }

    /// Anything but a call.
    pub(super) fn happen(&mut self, machine: &MachineId, event: Event, news: News) {
        let Some(state) = self.state(machine) else { return };
        if let Ok(Step::Move(effects)) = step(state, event) {
            self.apply(machine, effects, news);
        }
    }

    fn apply(&mut self, id: &MachineId, effects: Effects, news: News) {
        let Some(machine) = self.machines.get_mut(id) else { return };
        effects.apply(machine, news);
        if effects.forget_operations {
            self.operations.forget(id);
        }
        self.revisions.bump(id);
    }

    /// Time goes on; it never goes back.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), (machine, kind, operation)) = entry.remove_entry();
            self.age(at);
            let current = self.operations.is_current(&machine, kind, &operation);
            if current && self.state(&machine) == Some(kind.transitional()) {
                self.finish(&machine, kind);
            }
        }
        self.age(now);
    }

    /// Each second takes its toll of the configured machines.
    fn age(&mut self, now: Duration) {
        self.now = self.now.max(now);
        let rate = self.options.failure_rate;
        while rate > 0.0 && self.aged < self.now.as_secs() {
            self.aged += 1;
            let configured = self.ids(MachineState::Configured).count();
            for _ in 0..self.rng.poisson(rate * configured as f64) {
                let Some(victim) = self.random(MachineState::Configured) else { break };
                let error = "failed by itself".to_owned();
                self.happen(&victim, Event::Broke, News { error, ..News::default() });
            }
        }
        self.aged = self.now.as_secs();
    }

    pub(super) fn random(&mut self, state: MachineState) -> Option<MachineId> {
        let count = self.ids(state).count();
        let pick = if count == 0 { return None } else { self.rng.below(count) };
        self.ids(state).nth(pick).cloned()
    }
}
