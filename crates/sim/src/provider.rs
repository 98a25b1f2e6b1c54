//! The asynchronous provider together with the shard's workers: what was decided
//! becomes visible late, lasts, and ends in no particular order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigfleet_engine::{
    Action, ActionKind, Drain, Time, Tracked, action::Acquisition, output::NeedIdx,
};
use bigfleet_model::{ClusterId, HostRef, MachineId, MachineState, Stamp};

use crate::{
    latency::{AfterCreate, Latency},
    random::Random,
    restamp::serves,
};

/// An action that nobody sees yet.
#[derive(Clone, Debug)]
struct Queued {
    action: Action,
    left: u32,
}

/// All machines, and what is under way with them.
#[derive(Clone, Debug)]
pub struct Provider {
    latency: Latency,
    random: Random,
    machines: BTreeMap<MachineId, Tracked>,
    queue: Vec<Queued>,
    /// Cycles left in a transitional state.
    left: BTreeMap<MachineId, u32>,
    /// Machines whose stamp names a need that the last decision knew.
    wanted: BTreeSet<MachineId>,
    /// Purchases that turned Idle and were not bound since.
    fresh: BTreeSet<MachineId>,
    /// The stamp last sent in Configure; all that survives a restart.
    echo: BTreeMap<MachineId, Arc<Stamp>>,
}

impl Provider {
    /// With machines, and with actions already under way.
    pub fn new(seed: u64, latency: Latency, snapshot: Vec<Tracked>, pending: Vec<Action>) -> Self {
        let mut provider = Self {
            latency,
            random: Random::new(seed),
            machines: BTreeMap::new(),
            queue: Vec::new(),
            left: BTreeMap::new(),
            wanted: BTreeSet::new(),
            fresh: BTreeSet::new(),
            echo: BTreeMap::new(),
        };
        for tracked in snapshot {
            let machine = &tracked.machine;
            if let (Some(stamp), Some(_)) = (&machine.stamp, &machine.cluster) {
                provider.echo.insert(machine.id.clone(), stamp.clone());
            }
            let dwell = latency.of(machine.state).draw(&mut provider.random);
            provider.left.insert(machine.id.clone(), dwell);
            provider.machines.insert(machine.id.clone(), tracked);
        }
        provider.enqueue(pending);
        provider
    }

    /// Every machine.
    pub fn snapshot(&self) -> Vec<Tracked> {
        self.machines.values().cloned().collect()
    }

    /// One machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Tracked> {
        self.machines.get(id)
    }

    /// Every machine, by id.
    pub fn machines(&self) -> impl Iterator<Item = &Tracked> {
        self.machines.values()
    }

    /// How many machines are in a state.
    pub fn count(&self, state: MachineState) -> usize {
        self.machines().filter(|tracked| tracked.machine.state == state).count()
    }

    /// Actions not yet visible.
    pub fn pending(&self) -> Vec<Action> {
        self.queue.iter().map(|queued| queued.action.clone()).collect()
    }

    /// Nothing is queued and no machine is between two states.
    pub fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.machines().all(|tracked| !is_passing(tracked.machine.state))
    }

    /// Other latencies from now on; what has begun keeps its own.
    pub const fn set_latency(&mut self, latency: Latency) {
        self.latency = latency;
    }

    /// More machines, for instance of a new offer.
    pub fn add(&mut self, tracked: Tracked) {
        self.machines.insert(tracked.machine.id.clone(), tracked);
    }

    /// The machine is gone from the next picture.
    pub fn vanish(&mut self, id: &MachineId) -> Option<Tracked> {
        self.forget(id);
        self.machines.remove(id)
    }

    /// The machine is broken from the next picture on.
    pub fn fail(&mut self, id: &MachineId) {
        self.forget(id);
        if let Some(tracked) = self.machines.get_mut(id) {
            tracked.machine.state = MachineState::Failed;
            tracked.machine.last_error = "lost".to_owned();
            tracked.drain = None;
        }
    }

    fn forget(&mut self, id: &MachineId) {
        self.queue.retain(|queued| queued.action.machine != *id);
        self.left.remove(id);
        self.wanted.remove(id);
        self.fresh.remove(id);
        self.echo.remove(id);
    }

    /// The shard starts anew: what only its memory held is lost (shard chapter §2),
    /// the provider's own transitions go on.
    pub(crate) fn restart(&mut self, now: Time) {
        self.queue.clear();
        self.wanted.clear();
        for tracked in self.machines.values_mut() {
            let machine = &mut tracked.machine;
            tracked.drain = None;
            tracked.idle_since = (machine.state == MachineState::Idle).then_some(now);
            let echo = self.echo.get(&machine.id).filter(|_| machine.cluster.is_some());
            machine.stamp =
                echo.map(|stamp| Arc::new(Stamp { for_cluster: None, ..Stamp::clone(stamp) }));
        }
    }

    /// Takes over what was decided.
    pub(crate) fn enqueue(&mut self, actions: Vec<Action>) {
        for action in actions {
            if matches!(action.kind, ActionKind::Provision(_)) {
                self.wanted.insert(action.machine.clone());
            }
            let left = self.latency.queue.draw(&mut self.random);
            self.queue.push(Queued { action, left });
        }
    }

    /// How many of the actions bind a machine that was bought and not yet bound.
    pub(crate) fn completions(&mut self, actions: &[Action]) -> u64 {
        let completes = |action: &&Action| match action.kind {
            ActionKind::Bootstrap(_) => self.fresh.remove(&action.machine),
            _ => false,
        };
        actions.iter().filter(completes).count() as u64
    }

    /// Machines that may carry a claimant's stamp, pending acquisitions included,
    /// each with its binding.
    pub(crate) fn serving(&self) -> Vec<(MachineId, Option<ClusterId>)> {
        let seen = |tracked: &Tracked| {
            let machine = &tracked.machine;
            match self.queued(&machine.id).map(|queued| &queued.action.kind) {
                Some(ActionKind::Bootstrap(acquisition)) => Some(Some(acquisition.cluster.clone())),
                Some(ActionKind::Provision(_)) => Some(None),
                _ if serves(machine.state) => Some(machine.cluster.clone()),
                _ => None,
            }
            .map(|bound| (machine.id.clone(), bound))
        };
        self.machines().filter_map(seen).collect()
    }

    /// Where the stamp of a machine is kept: with the action that will bring it, or
    /// with the machine.
    pub(crate) fn stamp_mut(&mut self, id: &MachineId) -> Option<StampSlot<'_>> {
        let tracked = self.machines.get_mut(id)?;
        let state = tracked.machine.state;
        let starts = |queued: &&mut Queued| {
            queued.action.machine == *id && queued.action.kind.start() == state
        };
        let queued = self.queue.iter_mut().find(starts).map(|queued| &mut queued.action.kind);
        Some(match queued {
            Some(ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition)) => {
                StampSlot::Pending(&mut acquisition.stamp)
            }
            _ => StampSlot::Machine(&mut tracked.machine.stamp),
        })
    }

    /// Notes whether anybody is left for whom a machine is being created. If not, it
    /// rests once it exists and is there for everybody.
    pub(crate) fn want(&mut self, id: &MachineId, wanted: bool) {
        if wanted {
            self.wanted.insert(id.clone());
        } else {
            self.wanted.remove(id);
        }
    }

    /// One cycle passes. The next picture shows what became visible.
    pub(crate) fn advance(&mut self, now: Time) {
        for mut queued in std::mem::take(&mut self.queue) {
            if queued.left > 0 {
                queued.left -= 1;
                self.queue.push(queued);
            } else {
                self.start(queued.action, now);
            }
        }
        let passing: Vec<MachineId> = self
            .machines()
            .filter(|tracked| is_passing(tracked.machine.state))
            .map(|tracked| tracked.machine.id.clone())
            .collect();
        for id in passing {
            self.pass(&id, now);
        }
    }

    fn queued(&self, id: &MachineId) -> Option<&Queued> {
        let state = self.machines.get(id)?.machine.state;
        self.queue
            .iter()
            .find(|queued| queued.action.machine == *id && queued.action.kind.start() == state)
    }

    /// The first visible effect. An action whose machine has moved on means nothing.
    fn start(&mut self, action: Action, now: Time) {
        let Some(tracked) = self.machines.get_mut(&action.machine) else { return };
        if tracked.machine.state != action.kind.start() {
            return;
        }
        let id = action.machine;
        let machine = &mut tracked.machine;
        match action.kind {
            ActionKind::Bootstrap(acquisition) => {
                machine.cluster = Some(acquisition.cluster);
                machine.stamp = Some(acquisition.stamp);
                tracked.idle_since = None;
                self.enter(&id, MachineState::Configuring);
            }
            ActionKind::Provision(acquisition) => {
                machine.stamp = Some(acquisition.stamp);
                self.enter(&id, MachineState::Creating);
            }
            ActionKind::Preempt { grace, preemptor_priority, preemptor, .. } => {
                tracked.drain = Some(Drain {
                    deadline: Some(now.after(grace)),
                    preemptor_priority: Some(preemptor_priority),
                    preemptor: Some(preemptor),
                });
                self.enter(&id, MachineState::Draining);
            }
            ActionKind::Reclaim { grace, .. } => {
                tracked.drain = Some(Drain {
                    deadline: Some(now.after(grace)),
                    preemptor_priority: None,
                    preemptor: None,
                });
                self.enter(&id, MachineState::Draining);
            }
            ActionKind::Delete => {
                tracked.idle_since = None;
                self.enter(&id, MachineState::Deleting);
            }
        }
    }

    fn enter(&mut self, id: &MachineId, state: MachineState) {
        let Some(tracked) = self.machines.get_mut(id) else { return };
        tracked.machine.state = state;
        self.left.insert(id.clone(), self.latency.of(state).draw(&mut self.random));
        // Configure sends the stamp as it stands; a later re-stamp does not reach it.
        if let (MachineState::Configuring, Some(stamp)) = (state, &tracked.machine.stamp) {
            self.echo.insert(id.clone(), stamp.clone());
        }
    }

    /// Waits one cycle, or leaves a transitional state, perhaps several at once.
    fn pass(&mut self, id: &MachineId, now: Time) {
        loop {
            let Some(tracked) = self.machines.get(id) else { return };
            let state = tracked.machine.state;
            if !is_passing(state) {
                return;
            }
            if let Some(left) = self.left.get_mut(id).filter(|left| **left > 0) {
                *left -= 1;
                return;
            }
            self.finish(id, state, now);
        }
    }

    fn finish(&mut self, id: &MachineId, state: MachineState, now: Time) {
        let Some(tracked) = self.machines.get_mut(id) else { return };
        let machine = &mut tracked.machine;
        match state {
            MachineState::Creating => {
                machine.host =
                    Some(HostRef { provider: "sim".to_owned(), reference: id.to_string() });
                let wanted = self.wanted.remove(id);
                let second_half = machine.stamp.clone().filter(|_| wanted).and_then(second_half);
                match (self.latency.after_create, second_half) {
                    (AfterCreate::Configure, Some(acquisition)) => {
                        machine.cluster = Some(acquisition.cluster);
                        self.enter(id, MachineState::Configuring);
                    }
                    (AfterCreate::Rest, Some(acquisition)) => {
                        rest(tracked, now);
                        self.enqueue(vec![bootstrap(id, acquisition)]);
                    }
                    (_, None) => {
                        self.fresh.insert(id.clone());
                        rest(tracked, now);
                    }
                }
            }
            MachineState::Configuring => machine.state = MachineState::Configured,
            MachineState::Draining => {
                self.echo.remove(id);
                rest(tracked, now);
            }
            MachineState::Deleting => {
                self.fresh.remove(id);
                machine.host = None;
                machine.state = MachineState::Speculative;
            }
            _ => {}
        }
    }
}

/// The place of a stamp.
pub(crate) enum StampSlot<'a> {
    /// In a pending acquisition.
    Pending(&'a mut Arc<Stamp>),
    /// On the machine.
    Machine(&'a mut Option<Arc<Stamp>>),
}

impl StampSlot<'_> {
    /// What stands there.
    pub(crate) fn get(&self) -> Option<&Stamp> {
        match self {
            Self::Pending(stamp) => Some(stamp),
            Self::Machine(stamp) => stamp.as_deref(),
        }
    }

    /// Writes it anew.
    pub(crate) fn set(&mut self, new: Arc<Stamp>) {
        match self {
            Self::Pending(stamp) => **stamp = new,
            Self::Machine(stamp) => **stamp = Some(new),
        }
    }
}

/// Whether a machine in this state leaves it without a decision.
const fn is_passing(state: MachineState) -> bool {
    matches!(
        state,
        MachineState::Creating
            | MachineState::Configuring
            | MachineState::Draining
            | MachineState::Deleting
    )
}

/// What is left of a purchase once the machine exists: its stamp says for whom it
/// was bought.
fn second_half(stamp: Arc<Stamp>) -> Option<Acquisition> {
    let cluster = stamp.for_cluster.clone()?;
    Some(Acquisition { cluster, stamp, need: NeedIdx::default() })
}

fn bootstrap(id: &MachineId, acquisition: Acquisition) -> Action {
    Action {
        machine: id.clone(),
        kind: ActionKind::Bootstrap(acquisition),
        cost: 0.0,
        runner_up_cost: None,
        domain_rule: 0,
    }
}

fn rest(tracked: &mut Tracked, now: Time) {
    tracked.machine.state = MachineState::Idle;
    tracked.machine.cluster = None;
    tracked.machine.stamp = None;
    tracked.drain = None;
    tracked.idle_since = Some(now);
}
