//! One simulated cloud, as the kit sees it.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bigfleet_provider_kit::{
    Caps, Cloud, CloudError, Handle, Host, Kind, Machine, MachineState, Offer, Op, Ready,
};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Error,
    config::CloudConfig,
    controls::Controls,
    world::{Node, World, cancelled, wait},
};

/// A cloud that exists in this process only, or in a file of its own.
#[derive(Debug)]
pub struct Sim {
    world: Arc<World>,
    /// Ends with the cloud.
    weather: OnceLock<AbortOnDropHandle<()>>,
}

impl Sim {
    /// With a directory its hosts outlive the process; empty keeps them in memory.
    /// The configuration was checked.
    pub fn open(config: CloudConfig, seed: u64, directory: &Path) -> Result<Self, Error> {
        let world = Arc::new(World::open(config, seed, directory)?);
        Ok(Self { world, weather: OnceLock::new() })
    }

    /// What an experimenter does to it.
    #[must_use]
    pub fn controls(&self) -> Controls {
        Controls::new(vec![self.world.clone()])
    }

    pub(crate) fn world(&self) -> &Arc<World> {
        &self.world
    }

    fn alive(&self, slot: usize) -> Result<(), CloudError> {
        let id = &self.world.slots[slot].id;
        match self.world.state().hosts.generation(id) {
            Some(_) => Ok(()),
            None => Err(CloudError::Gone(id.clone())),
        }
    }
}

impl Cloud for Sim {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    fn attach(&self, handle: Handle) {
        self.world.attach(handle);
        let weather = tokio::spawn(self.world.clone().weather());
        let _ = self.weather.set(AbortOnDropHandle::new(weather));
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        self.world.describe()
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        let slot = self.world.known(&machine.id)?;
        self.world.admit(slot, op).await?;
        if let Some(host) = self.world.state().hosts.brought_by(&machine.id, op.id.as_str()) {
            return Ok(Host::new(host));
        }
        let dice = self.world.draw(slot, Kind::Create);
        if dice.named("error").happens(self.world.config.mishaps.create_error_rate) {
            return Err(CloudError::Fatal("the launch failed, as one in so many does".into()));
        }
        let reservation = self.world.reserve(slot)?;
        wait(op, self.world.config.latency.create.draw(dice)).await?;
        self.world.thawed(slot, op).await?;
        reservation.bring(op).map(Host::new)
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        _: &str,
        _: &[u8],
    ) -> Result<(), CloudError> {
        let slot = self.world.known(&machine.id)?;
        self.world.admit(slot, op).await?;
        self.alive(slot)?;
        let known = self.world.state().nodes.get(&slot).cloned();
        if known.is_some_and(|node| node.operation == op.id.as_str()) {
            return Ok(());
        }
        let dice = self.world.draw(slot, Kind::Configure);
        let fails = dice.named("readiness").happens(self.world.config.mishaps.readiness_fail_rate);
        let ready = Instant::now() + self.world.config.latency.configure.draw(dice);
        let node = Node { operation: op.id.to_string(), ready: (!fails).then_some(ready) };
        self.world.state().nodes.insert(slot, node);
        Ok(())
    }

    async fn ready(&self, op: &Op, machine: &Machine, _: &str) -> Result<Ready, CloudError> {
        let slot = self.world.known(&machine.id)?;
        self.world.thawed(slot, op).await?;
        self.alive(slot)?;
        let node = self.world.state().nodes.get(&slot).cloned();
        let Some(ready) = node.and_then(|node| node.ready) else { return Ok(Ready::NotYet) };
        tokio::select! {
            () = op.cancelled.cancelled() => return Err(cancelled()),
            () = sleep_until(ready) => {}
        }
        self.world.thawed(slot, op).await?;
        self.alive(slot)?;
        Ok(Ready::Yes)
    }

    async fn drain(&self, op: &Op, machine: &Machine, grace: Duration) -> Result<(), CloudError> {
        let slot = self.world.known(&machine.id)?;
        self.world.admit(slot, op).await?;
        self.alive(slot)?;
        let orderly = self.world.config.latency.drain.draw(self.world.draw(slot, Kind::Drain));
        // Past the grace it is done by force.
        wait(op, orderly.min(grace)).await?;
        self.world.state().nodes.remove(&slot);
        Ok(())
    }

    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        let slot = self.world.known(&machine.id)?;
        self.world.admit(slot, op).await?;
        let tier = self.world.tier(slot);
        let dice = self.world.draw(slot, Kind::Delete);
        let length = self.world.config.latency.delete.draw(dice);
        // Repair wants a fixed host back, and somebody replaces its broken part.
        if machine.state == MachineState::Failed && tier.is_fixed() && machine.host.is_some() {
            wait(op, length).await?;
            let mut state = self.world.state();
            state.nodes.remove(&slot);
            return state.hosts.revive(&machine.id).map(drop);
        }
        self.alive(slot)?;
        wait(op, length).await?;
        self.world.thawed(slot, op).await?;
        if self.world.lose(slot) {
            let zone = &self.world.slots[slot].zone;
            self.world.state().stock.give(&tier.instance_type, zone);
        }
        Ok(())
    }
}
