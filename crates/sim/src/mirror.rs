//! Drives the engine that remembers: tells it what changed since the last picture,
//! as a shard does.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::{
    Action, CycleInput, CycleOutput, Engine, HeldBack, NeedKey, NoAcquire, Tracked,
};
use bigfleet_model::{ClusterId, MachineId, Need};

use crate::provider::Provider;

/// An engine, and what it has been told.
#[derive(Default)]
pub(crate) struct Mirror {
    engine: Option<Engine>,
    machines: BTreeMap<MachineId, Tracked>,
    pending: BTreeMap<MachineId, Vec<Action>>,
    demand: BTreeMap<ClusterId, Vec<Need>>,
    ready: BTreeSet<ClusterId>,
    no_acquire: BTreeMap<NeedKey, NoAcquire>,
    held_back: BTreeMap<MachineId, HeldBack>,
}

impl Mirror {
    /// Decides from a picture of which only the changes are told.
    pub(crate) fn decide(&mut self, input: &CycleInput) -> CycleOutput {
        let mut engine = match self.engine.take() {
            Some(mut engine) => {
                self.tell(&mut engine, input);
                engine
            }
            None => Engine::load(input),
        };
        self.remember(input);
        engine.cycle(input.now);
        let output = engine.output();
        self.engine = Some(engine);
        output
    }

    /// Stamps follow claims on both sides.
    pub(crate) fn restamp(&mut self, provider: &Provider) {
        if let Some(engine) = &mut self.engine {
            engine.restamp();
        }
        self.machines = by_id(provider.machines());
        self.pending = by_machine(&provider.pending());
    }

    fn tell(&self, engine: &mut Engine, input: &CycleInput) {
        let machines = by_id(input.snapshot.iter());
        for gone in self.machines.keys().filter(|id| !machines.contains_key(*id)) {
            engine.remove(gone);
        }
        for (id, tracked) in &machines {
            if self.machines.get(id) != Some(tracked) {
                engine.upsert(tracked);
            }
        }
        let pending = by_machine(&input.pending);
        for id in self.pending.keys().filter(|id| self.pending.get(*id) != pending.get(*id)) {
            engine.unpend(id);
        }
        for (id, actions) in pending {
            if self.pending.get(&id) != Some(&actions) {
                actions.into_iter().for_each(|action| engine.pend(action));
            }
        }
        let demand = by_cluster(&input.demand);
        let named: BTreeSet<&ClusterId> = self.demand.keys().chain(demand.keys()).collect();
        for cluster in named {
            let needs = demand.get(cluster).map_or(&[][..], Vec::as_slice);
            if self.demand.get(cluster).map_or(&[][..], Vec::as_slice) != needs {
                engine.replace(cluster, needs);
                engine.set_ready(cluster, input.ready.contains(cluster));
            }
        }
        for cluster in self.ready.symmetric_difference(&input.ready) {
            engine.set_ready(cluster, input.ready.contains(cluster));
        }
        let keys = self.no_acquire.keys().chain(input.no_acquire.keys());
        keys.for_each(|key| engine.hold(key, input.no_acquire.get(key).copied()));
        let ids = self.held_back.keys().chain(input.held_back.keys());
        ids.for_each(|id| engine.hold_back(id, input.held_back.get(id).copied()));
    }

    fn remember(&mut self, input: &CycleInput) {
        self.demand = by_cluster(&input.demand);
        self.ready.clone_from(&input.ready);
        self.no_acquire.clone_from(&input.no_acquire);
        self.held_back.clone_from(&input.held_back);
    }
}

fn by_id<'a>(machines: impl Iterator<Item = &'a Tracked>) -> BTreeMap<MachineId, Tracked> {
    machines.map(|tracked| (tracked.machine.id.clone(), tracked.clone())).collect()
}

fn by_machine(actions: &[Action]) -> BTreeMap<MachineId, Vec<Action>> {
    let mut pending: BTreeMap<MachineId, Vec<Action>> = BTreeMap::new();
    for action in actions {
        pending.entry(action.machine.clone()).or_default().push(action.clone());
    }
    pending
}

fn by_cluster(needs: &[Need]) -> BTreeMap<ClusterId, Vec<Need>> {
    let mut demand: BTreeMap<ClusterId, Vec<Need>> = BTreeMap::new();
    for need in needs {
        demand.entry(need.cluster.clone()).or_default().push(need.clone());
    }
    demand
}
