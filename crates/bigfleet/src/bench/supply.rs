//! A provider as lean as one can be: records in a row, every call done at once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_model::{HostRef, Machine, MachineId, MachineState};
use bigfleet_provider::{Ack, Attempt, Configure, Error, FencedProvider, ListFilter, MachineList};
use tokio::time::Instant;

use super::random::Random;

/// A provider in the process. Clones are the same provider; time is not its
/// business, and nobody is fenced.
#[derive(Clone, Default)]
pub(super) struct Lean(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    /// With the stamp that metadata is made of when it is asked for.
    machines: Vec<Machine>,
    places: HashMap<MachineId, usize>,
    /// Place by the revision of its last change.
    changed: BTreeMap<u64, usize>,
    revisions: Vec<u64>,
    head: u64,
    /// What answering Lists has taken since that was last asked.
    listing: Duration,
}

impl Lean {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a machine; its stamp is what a shard once wrote.
    pub(super) fn add(&self, machine: Machine) {
        let mut world = self.world();
        let place = world.machines.len();
        world.places.insert(machine.id.clone(), place);
        world.machines.push(machine);
        world.revisions.push(0);
        world.note(place);
    }

    /// So many machines change behind the shard's back: most have another price, a
    /// bound one may fail, and one that failed is idle again.
    pub(super) fn churn(&self, random: &mut Random, changes: usize) {
        let mut world = self.world();
        for _ in 0..changes {
            let place = random.below(world.machines.len());
            let fails = random.below(10) == 0;
            change(&mut world.machines[place], fails);
            world.note(place);
        }
    }

    /// Clusters have given these back.
    pub(super) fn give_back(&self, machines: &[MachineId]) {
        let mut world = self.world();
        for id in machines {
            let Ok(place) = world.place(id) else { continue };
            let machine = &mut world.machines[place];
            if machine.state == MachineState::Configured {
                machine.state = MachineState::Idle;
                (machine.cluster, machine.stamp) = (None, None);
                world.note(place);
            }
        }
    }

    /// What answering Lists has taken since the last time: not the shard's work.
    pub(super) fn listing(&self) -> Duration {
        std::mem::take(&mut self.world().listing)
    }

    fn call(
        &self,
        id: &MachineId,
        from: MachineState,
        change: impl FnOnce(&mut Machine),
    ) -> Result<Ack, Error> {
        let mut world = self.world();
        let place = world.place(id)?;
        let machine = &mut world.machines[place];
        if machine.state != from {
            return Err(Error::Internal(format!("{id} is {:?}", machine.state)));
        }
        change(machine);
        world.note(place);
        let machine = Ok(world.told(place));
        Ok(Ack { operation_id: format!("op-{}", world.head), machine })
    }
}

fn change(machine: &mut Machine, fails: bool) {
    match machine.state {
        MachineState::Failed => {
            machine.state = MachineState::Idle;
            machine.last_error.clear();
        }
        MachineState::Configured if fails => {
            machine.state = MachineState::Failed;
            (machine.cluster, machine.stamp) = (None, None);
            machine.last_error = "lost".to_owned();
        }
        _ => {
            let class = Arc::make_mut(&mut machine.class);
            class.price_per_hour = if class.price_per_hour == 0.5 { 0.4 } else { 0.5 };
        }
    }
}

impl World {
    fn note(&mut self, place: usize) {
        self.head += 1;
        let before = std::mem::replace(&mut self.revisions[place], self.head);
        self.changed.remove(&before);
        self.changed.insert(self.head, place);
    }

    fn place(&self, id: &MachineId) -> Result<usize, Error> {
        self.places.get(id).copied().ok_or_else(|| Error::NotFound(id.to_string()))
    }

    /// A record as a provider echoes it.
    fn told(&self, place: usize) -> Machine {
        let machine = self.machines[place].clone();
        let metadata = machine.stamp.as_ref().map(|stamp| stamp.to_metadata());
        Machine { stamp: None, shard_metadata: metadata.unwrap_or_default(), ..machine }
    }
}

impl FencedProvider for Lean {
    async fn create(&self, _: &Attempt, id: &MachineId) -> Result<Ack, Error> {
        self.call(id, MachineState::Speculative, |machine| {
            machine.state = MachineState::Idle;
            let reference = machine.id.to_string();
            machine.host = Some(HostRef { provider: "bench".to_owned(), reference });
        })
    }

    async fn configure(
        &self,
        _: &Attempt,
        id: &MachineId,
        request: Configure,
    ) -> Result<Ack, Error> {
        self.call(id, MachineState::Idle, |machine| {
            machine.state = MachineState::Configured;
            machine.cluster = Some(request.cluster);
            machine.stamp =
                bigfleet_model::Stamp::from_metadata(&request.metadata).0.map(Into::into);
        })
    }

    async fn drain(&self, _: &Attempt, id: &MachineId, _: Duration) -> Result<Ack, Error> {
        self.call(id, MachineState::Configured, |machine| {
            (machine.state, machine.cluster, machine.stamp) = (MachineState::Idle, None, None);
        })
    }

    async fn delete(&self, _: &Attempt, id: &MachineId) -> Result<Ack, Error> {
        self.call(id, MachineState::Idle, |machine| {
            (machine.state, machine.host) = (MachineState::Speculative, None);
        })
    }

    async fn get(&self, id: &MachineId, _: Option<Instant>) -> Result<Machine, Error> {
        let world = self.world();
        let place = world.place(id)?;
        Ok(world.told(place))
    }

    async fn list(&self, filter: &ListFilter, _: Option<Instant>) -> Result<MachineList, Error> {
        let began = std::time::Instant::now();
        let mut world = self.world();
        let after = filter.since_revision.as_slice().try_into().map_or(0, u64::from_be_bytes);
        let most = if filter.max_results == 0 { usize::MAX } else { filter.max_results as usize };
        let changed = world.changed.range(after + 1..).take(most);
        let (mut machines, mut last) = (Vec::new(), None);
        for (revision, place) in changed {
            machines.push(world.told(*place));
            last = Some(*revision);
        }
        let cut = machines.len() == most;
        let revision = last.filter(|_| cut).unwrap_or(world.head).to_be_bytes().to_vec();
        world.listing += began.elapsed();
        Ok(MachineList { machines, refused: Vec::new(), revision })
    }
}
