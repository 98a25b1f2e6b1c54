//! The engine as an inventory: what it says of its machines is what it was told,
//! whatever happens in between.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod cycles;
mod hints;
mod machines;
mod what_if;

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::{ActionKind, Engine, HeldBack, MachineView, Time, Tracked};
use bigfleet_model::{ClusterId, Machine, MachineId, MachineState, Need};
use bigfleet_oracle::worlds::{self, SplitMix64};

/// Worlds per test; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 600;
const STEPS: u64 = 12;

/// An engine, and what it was told of its machines.
struct History {
    engine: Engine,
    told: BTreeMap<MachineId, Machine>,
    /// Clusters whose demand was replaced.
    replaced: BTreeSet<ClusterId>,
    random: SplitMix64,
    now: Time,
}

impl History {
    fn of(seed: u64) -> Self {
        let world = worlds::world(seed);
        let machines = world.snapshot.iter().map(|one| (one.machine.id.clone(), &one.machine));
        Self {
            engine: Engine::load(&world),
            told: machines.map(|(id, machine)| (id, machine.clone())).collect(),
            replaced: BTreeSet::new(),
            random: SplitMix64::new(seed),
            now: world.now,
        }
    }

    fn any_id(&mut self) -> Option<MachineId> {
        let ids: Vec<MachineId> = self.told.keys().cloned().collect();
        (!ids.is_empty()).then(|| self.random.one(&ids).clone())
    }

    /// Lets something happen.
    fn step(&mut self) {
        let other = worlds::world(self.random.below(50_000));
        match self.random.below(11) {
            0 | 1 => {
                for tracked in other.snapshot.iter().take(5) {
                    let mut tracked = tracked.clone();
                    // As often as not somebody known.
                    if self.random.chance(50) {
                        tracked.machine.id = self.any_id().unwrap_or(tracked.machine.id);
                    } else {
                        tracked.machine.id = format!("new-{}", self.random.below(20)).into();
                    }
                    self.engine.upsert(&tracked);
                    self.told.insert(tracked.machine.id.clone(), tracked.machine);
                }
            }
            2 => {
                if let Some(id) = self.any_id() {
                    self.engine.remove(&id);
                    self.told.remove(&id);
                }
            }
            3 => {
                for action in self.engine.actions() {
                    if self.random.chance(60) {
                        self.engine.pend(action);
                    }
                }
            }
            4 => {
                if let Some(id) = self.any_id() {
                    self.engine.unpend(&id);
                }
            }
            5 => {
                if let Some(id) = self.any_id() {
                    let why = *self.random.one(&[None, Some(HeldBack::Quota)]);
                    self.engine.hold_back(&id, why);
                }
            }
            6 => self.engine.restamp(),
            7 => {
                if let Some(need) = other.demand.first() {
                    let of_cluster = other.demand.iter().filter(|one| one.cluster == need.cluster);
                    let needs: Vec<Need> = of_cluster.cloned().collect();
                    self.engine.replace(&need.cluster, &needs);
                    self.replaced.insert(need.cluster.clone());
                }
            }
            8 | 9 => self.bind_machines(),
            _ => self.engine.cycle(self.now),
        }
    }

    /// Some of the machines that join a cluster, or are about to, have joined it.
    fn bind_machines(&mut self) {
        let joining: Vec<Tracked> = self.engine.views_after(None).filter_map(joined).collect();
        for tracked in joining {
            if self.random.chance(60) {
                self.engine.unpend(&tracked.machine.id);
                self.engine.upsert(&tracked);
                self.told.insert(tracked.machine.id.clone(), tracked.machine);
            }
        }
    }
}

/// A machine that joins a cluster, once it has.
fn joined(view: MachineView<'_>) -> Option<Tracked> {
    let mut tracked = view.tracked();
    let machine = &mut tracked.machine;
    match view.pending().first().map(|action| &action.kind) {
        Some(ActionKind::Bootstrap(of)) if machine.state == MachineState::Idle => {
            machine.cluster = Some(of.cluster.clone());
            machine.stamp = Some(of.stamp.clone());
        }
        _ if machine.state == MachineState::Configuring => {}
        _ => return None,
    }
    machine.state = MachineState::Configured;
    machine.cluster.is_some().then_some(tracked)
}

/// Every world, at every step of its history.
fn everywhere(mut check: impl FnMut(&mut History)) {
    for seed in common::seeds(WORLDS, 250) {
        // Shown if a check fails.
        println!("seed {seed}");
        let mut history = History::of(seed);
        for _ in 0..STEPS {
            check(&mut history);
            history.step();
        }
    }
}
