//! The smallest cloud that works: a rack of machines that need no bringing up. For
//! the documentation, and for tests of the kit itself.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bigfleet_model::{CapacityType, Machine};

use crate::cloud::{Caps, Cloud, CloudError, Host, Offer, Op, Ready};

/// So many slots in one zone.
#[derive(Debug)]
pub struct OneRack {
    slots: usize,
    hosts: Mutex<BTreeMap<String, String>>,
}

impl OneRack {
    /// With this many slots.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots, hosts: Mutex::default() }
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cloud for OneRack {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let hosts = self.hosts();
        let offer = |number| {
            let id = format!("slot-{number:06}");
            Offer {
                host: hosts.get(&id).cloned(),
                id,
                instance_type: "rack.large".into(),
                zone: "zone-a".into(),
                capacity_type: CapacityType::OnDemand,
                price_per_hour: 1.0,
                interruption_probability: 0.01,
                resources: BTreeMap::from([
                    ("cpu".into(), "8".into()),
                    ("memory".into(), "32Gi".into()),
                ]),
                allocatable: BTreeMap::new(),
                labels: BTreeMap::new(),
            }
        };
        Ok((0..self.slots).map(offer).collect())
    }

    async fn create(&self, _: &Op, machine: &Machine) -> Result<Host, CloudError> {
        let reference = format!("rack://{}", machine.id);
        self.hosts().insert(machine.id.to_string(), reference.clone());
        Ok(Host::new(reference))
    }

    async fn bootstrap(&self, _: &Op, _: &Machine, _: &str, _: &[u8]) -> Result<(), CloudError> {
        Ok(())
    }

    async fn ready(&self, _: &Op, _: &Machine, _: &str) -> Result<Ready, CloudError> {
        Ok(Ready::Yes)
    }

    async fn drain(&self, _: &Op, _: &Machine, _: Duration) -> Result<(), CloudError> {
        Ok(())
    }

    async fn destroy(&self, _: &Op, machine: &Machine) -> Result<(), CloudError> {
        self.hosts().remove(machine.id.as_str());
        Ok(())
    }
}
