//! Several clouds behind one server.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_provider_kit::{Caps, Cloud, CloudError, Handle, Host, Machine, Offer, Op, Ready};

/// Routes by a machine's id: what stands before its first `-` names the cloud.
#[derive(Debug)]
pub struct Multiplex<C> {
    clouds: BTreeMap<String, C>,
}

impl<C: Cloud> Multiplex<C> {
    /// By name; a name has no `-`.
    pub fn new(clouds: impl IntoIterator<Item = (String, C)>) -> Self {
        Self { clouds: clouds.into_iter().collect() }
    }

    fn of(&self, machine: &Machine) -> Result<&C, CloudError> {
        let name = prefix(&machine.id);
        let unknown = || CloudError::Fatal(format!("no cloud is named {name:?}"));
        self.clouds.get(name).ok_or_else(unknown)
    }
}

fn prefix(id: &str) -> &str {
    id.split_once('-').map_or(id, |(prefix, _)| prefix)
}

impl<C: Cloud> Cloud for Multiplex<C> {
    /// What all of them can do.
    fn caps(&self) -> Caps {
        let all = |can: fn(Caps) -> bool| self.clouds.values().all(|cloud| can(cloud.caps()));
        Caps {
            destroy: all(|caps| caps.destroy),
            fixed: all(|caps| caps.fixed),
            resumable: all(|caps| caps.resumable),
            observes_ready: all(|caps| caps.observes_ready),
        }
    }

    fn attach(&self, handle: Handle) {
        for cloud in self.clouds.values() {
            cloud.attach(handle.clone());
        }
    }

    /// All or nothing: the hosts of a cloud that does not answer are not lost.
    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let mut offers = Vec::new();
        for (name, cloud) in &self.clouds {
            let described = cloud.describe().await?;
            if let Some(stray) = described.iter().find(|offer| prefix(&offer.id) != name) {
                let problem = format!("cloud {name:?} offers {:?}, which is not its own", stray.id);
                return Err(CloudError::Fatal(problem));
            }
            offers.extend(described);
        }
        Ok(offers)
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        self.of(machine)?.create(op, machine).await
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
        blob: &[u8],
    ) -> Result<(), CloudError> {
        self.of(machine)?.bootstrap(op, machine, cluster, blob).await
    }

    async fn ready(&self, op: &Op, machine: &Machine, cluster: &str) -> Result<Ready, CloudError> {
        self.of(machine)?.ready(op, machine, cluster).await
    }

    async fn drain(&self, op: &Op, machine: &Machine, grace: Duration) -> Result<(), CloudError> {
        self.of(machine)?.drain(op, machine, grace).await
    }

    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        self.of(machine)?.destroy(op, machine).await
    }
}
