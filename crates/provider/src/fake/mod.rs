//! A provider in the process, with every knob that tests want (provider chapter
//! §8). It is the conformance reference: what a rule means, this shows. Served
//! on the wire by an [`Adapter`](crate::Adapter).
//!
//! Time is its own: it stands still until [`Fake::advance`] moves it, or
//! [`Fake::run`] does so in step with the process.

mod calls;
mod options;
mod rng;
mod seed;
mod world;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_model::{
    CapacityType, Class, Machine, MachineId, MachineState, Stamp,
    gate::inventory::{self, Rejected},
};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::world::World;
pub use self::{
    calls::{LoggedCall, Method, Script},
    options::{FakeOptions, PerKind},
    seed::Seed,
};
use crate::{
    error::Error,
    protocol::{Event, News},
};

/// What a machine is, apart from its life.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// More attributes.
    pub labels: BTreeMap<String, String>,
    /// Base shape.
    pub resources: BTreeMap<String, String>,
    /// Real capacity; may be empty.
    pub allocatable: BTreeMap<String, String>,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// Dollars.
    pub price_per_hour: f64,
    /// Hourly.
    pub interruption_probability: f64,
}

/// Whom a configured machine serves from the start, and how dear it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Its cluster.
    pub cluster: String,
    /// Of the need it serves.
    pub priority: i32,
    /// Dollars.
    pub interruption: f64,
    /// Dollars.
    pub reclamation: f64,
}

/// A provider in the process. Clones are the same provider.
#[derive(Clone)]
pub struct Fake {
    world: Arc<Mutex<World>>,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        f.debug_struct("Fake")
            .field("machines", &world.machines.len())
            .field("options", &world.options)
            .finish_non_exhaustive()
    }
}

impl Fake {
    /// Without machines.
    pub fn new(options: FakeOptions) -> Self {
        Self { world: Arc::new(Mutex::new(World::new(options))) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // No step leaves the world half changed, so a panic elsewhere is no harm.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how it behaves from now on. Seed and fence stay as they were.
    pub fn set_options(&self, options: FakeOptions) {
        self.world().options = options;
    }

    /// Adds a slot.
    pub fn add_speculative(&self, id: &str, offer: &Offer) -> Result<(), Rejected> {
        self.add(id, offer, MachineState::Speculative, None)
    }

    /// Adds a machine that serves nobody.
    pub fn add_idle(&self, id: &str, offer: &Offer) -> Result<(), Rejected> {
        self.add(id, offer, MachineState::Idle, None)
    }

    /// Adds a machine that serves a cluster, with the metadata that says so.
    pub fn add_configured(&self, id: &str, offer: &Offer, bound: &Bound) -> Result<(), Rejected> {
        self.add(id, offer, MachineState::Configured, Some(bound))
    }

    fn add(
        &self,
        id: &str,
        offer: &Offer,
        state: MachineState,
        bound: Option<&Bound>,
    ) -> Result<(), Rejected> {
        let stamp = bound.map(|bound| Stamp {
            priority: Some(bound.priority),
            interruption: bound.interruption,
            reclamation: bound.reclamation,
            ..Stamp::default()
        });
        let host = || wire::HostRef { provider: "fake".into(), r#ref: id.into() };
        let record = wire::Machine {
            id: id.into(),
            state: state.to_wire(),
            host: (state != MachineState::Speculative).then(host),
            cluster: bound.map(|bound| bound.cluster.clone()).unwrap_or_default(),
            shard_metadata: stamp.map(|stamp| stamp.to_metadata()).unwrap_or_default(),
            ..offer.to_wire()
        };
        let machine = inventory::machine(record)?.machine;
        self.world().insert(machine);
        Ok(())
    }

    /// Changes what a machine can hold. Nothing happens for an empty map, an
    /// unknown machine, or quantities that do not parse.
    pub fn set_allocatable(&self, id: &str, allocatable: BTreeMap<String, String>) {
        let mut world = self.world();
        let Some(machine) = world.machines.get(id).filter(|_| !allocatable.is_empty()) else {
            return;
        };
        let mut record = wire::Machine::from(machine);
        record.allocatable = Some(wire::Resources { resources: allocatable });
        if let Ok(accepted) = inventory::machine(record) {
            world.insert(accepted.machine);
        }
    }

    /// The next call that would move this machine to `target` is answered with
    /// this error, unless it is fenced or a replay.
    pub fn fail_next(&self, id: &str, target: MachineState, error: Error) {
        self.world().failures.push((id.into(), target, error));
    }

    /// Lets a machine fail in any state. False if there is none.
    pub fn fail_machine(&self, id: &str, why: &str) -> bool {
        let mut world = self.world();
        world.happen(&id.into(), Event::Broke, News { error: why.into(), ..News::default() });
        world.machines.contains_key(id)
    }

    /// Lets a failed machine be cleaned: elastic capacity becomes a slot, fixed
    /// capacity idle. False if it had not failed.
    pub fn repair_machine(&self, id: &str) -> bool {
        let mut world = self.world();
        let Some(machine) = world.machines.get(id) else { return false };
        let elastic =
            matches!(machine.class.capacity_type, CapacityType::OnDemand | CapacityType::Spot)
                || machine.host.is_none();
        let failed = machine.state == MachineState::Failed;
        world.happen(&id.into(), Event::Repaired { elastic }, News::default());
        failed
    }

    /// The record vanishes; no delta tells.
    pub fn remove_machine(&self, id: &str) -> bool {
        self.world().remove(id)
    }

    /// Removes this share of the slots, lowest ids first, and tells how many.
    pub fn shed_speculative(&self, share: f64) -> usize {
        let mut world = self.world();
        let slots: Vec<MachineId> = world.ids(MachineState::Speculative).cloned().collect();
        // A share that is no number sheds nothing.
        let count = (slots.len() as f64 * share.clamp(0.0, 1.0)) as usize;
        for id in slots.iter().take(count) {
            world.remove(id);
        }
        count
    }

    /// Lets the transition under way end well. False if there is none.
    pub fn complete_staged(&self, id: &str) -> bool {
        self.world().complete(&id.into())
    }

    /// Lets all transitions end well, and tells how many there were.
    pub fn complete_all_staged(&self) -> usize {
        let mut world = self.world();
        let ids: Vec<MachineId> = world.machines.keys().cloned().collect();
        ids.iter().filter(|id| world.complete(id)).count()
    }

    /// How many machines are in a state.
    pub fn count(&self, state: MachineState) -> usize {
        self.world().ids(state).count()
    }

    /// How many serve a cluster.
    pub fn configured_count(&self) -> usize {
        self.count(MachineState::Configured)
    }

    /// How many slots there are.
    pub fn speculative_count(&self) -> usize {
        self.count(MachineState::Speculative)
    }

    /// Any machine in a state, by the seed.
    pub fn random(&self, state: MachineState) -> Option<MachineId> {
        self.world().random(state)
    }

    /// The record of a machine, without a call.
    pub fn machine(&self, id: &str) -> Option<Machine> {
        self.world().machines.get(id).cloned()
    }

    /// Changes what a machine is, as fresh prices and notices do.
    pub fn refresh(&self, id: &str, change: impl FnOnce(&mut Class)) -> bool {
        let mut world = self.world();
        let Some(mut machine) = world.machines.get(id).cloned() else { return false };
        change(Arc::make_mut(&mut machine.class));
        world.insert(machine);
        true
    }

    /// Moves the fake's time to `now`, counted from its beginning; what is due
    /// by then happens. Time that lies back is ignored.
    pub fn advance(&self, now: Duration) {
        self.world().advance(now);
    }

    /// Its time.
    pub fn now(&self) -> Duration {
        self.world().now
    }

    /// Moves the fake's time in step with the process, until dropped.
    pub async fn run(&self) {
        let (began, tick) = {
            let world = self.world();
            (world.now, world.options.tick())
        };
        let start = Instant::now();
        let mut ticks = interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.advance(began + start.elapsed());
        }
    }

    /// The calls so far, oldest first, as far as the log reaches.
    pub fn calls(&self) -> Vec<LoggedCall> {
        self.world().log.iter().cloned().collect()
    }

    /// Empties the log.
    pub fn clear_calls(&self) {
        self.world().log.clear();
    }

    /// Something special happens to the next call that this script is about.
    pub fn script(&self, script: Script) {
        self.world().scripts.push(script);
    }
}

impl Offer {
    fn to_wire(&self) -> wire::Machine {
        let resources = |map: &BTreeMap<String, String>| wire::Resources { resources: map.clone() };
        wire::Machine {
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: self.capacity_type.to_wire(),
            price_per_hour: self.price_per_hour,
            interruption_probability: self.interruption_probability,
            resources: Some(resources(&self.resources)),
            labels: self.labels.clone(),
            allocatable: (!self.allocatable.is_empty()).then(|| resources(&self.allocatable)),
            ..wire::Machine::default()
        }
    }
}
