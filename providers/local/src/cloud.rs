//! The provider's one trait.

use std::{io, pin::Pin, time::Duration};

use bigfleet_provider_kit::{Caps, Cloud, CloudError, Handle, Host, Machine, Offer, Op, Ready};

use crate::{Error, clusters::Clusters, flags::LocalFlags, hosts::Hosts, names, slots};

/// Slots of this computer, and their Nodes.
#[derive(Debug)]
pub struct LocalCloud {
    slots: Vec<Offer>,
    hosts: Hosts,
    clusters: Clusters,
}

impl LocalCloud {
    /// As the flags say. No cluster is asked anything yet.
    pub fn open(flags: &LocalFlags) -> Result<Self, Error> {
        let clusters = Clusters::new(flags)?;
        let provider = &flags.provider;
        let slots = slots::slots(flags.slot_prefix(), provider.seed_count);
        Ok(Self { slots, hosts: Hosts::open(&provider.state)?, clusters })
    }

    /// Takes the machine out of whatever cluster it is in.
    async fn leave(&self, id: &str) -> Result<(), CloudError> {
        match self.hosts.get(id).and_then(|reservation| reservation.cluster) {
            Some(cluster) => self.clusters.leave(id, &cluster).await,
            None => Ok(()),
        }
    }
}

impl Cloud for LocalCloud {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    fn attach(&self, handle: Handle) {
        let reserved = self.hosts.all();
        let placed = reserved.values().filter_map(|one| Some((&*one.id, one.cluster.as_deref()?)));
        self.clusters.attach(handle, placed);
    }

    /// A reserved slot has its host, unless that had a Node which is gone.
    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let sighting = self.clusters.sight().await;
        if let Some(sighting) = &sighting {
            let seen = sighting.seen();
            for slot in &self.slots {
                let provider_id = names::provider_id(&slot.id);
                // A Node that outlived its state is a host all the same.
                if !seen.contains(provider_id.as_str()) || self.hosts.get(&slot.id).is_some() {
                    continue;
                }
                if let Some(cluster) = sighting.cluster_of(&provider_id) {
                    tracing::warn!(machine = slot.id, cluster, "found a node without its state");
                    self.hosts.adopt(&slot.id, cluster).map_err(|error| unkept(&error))?;
                }
            }
        }
        let reserved = self.hosts.all();
        let describe = |slot: &Offer| {
            let provider_id = names::provider_id(&slot.id);
            let exists = reserved.get(&slot.id).is_some_and(|reservation| {
                let node = reservation.cluster.as_deref().zip(sighting.as_ref());
                !node.is_some_and(|(cluster, sighting)| sighting.lacks(&provider_id, cluster))
            });
            Offer { host: exists.then_some(provider_id), ..slot.clone() }
        };
        Ok(self.slots.iter().map(describe).collect())
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        let id = machine.id.as_str();
        let work = Box::pin(async {
            // A slot that was lost may have left a Node.
            self.leave(id).await?;
            self.hosts.reserve(id).map_err(|error| unkept(&error))?;
            Ok(Host::new(names::provider_id(id)))
        });
        unless_cancelled(op, work).await
    }

    /// The blob is for a host that could run something: it is neither used nor kept.
    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
        _: &[u8],
    ) -> Result<(), CloudError> {
        let id = machine.id.as_str();
        let work = Box::pin(async {
            self.clusters.check(cluster).await?;
            let placed = self.hosts.get(id).and_then(|reservation| reservation.cluster);
            if placed.is_some_and(|placed| placed != cluster) {
                self.leave(id).await?;
            }
            self.hosts.place(id, cluster).map_err(|error| unkept(&error))?;
            self.clusters.join(op, machine, cluster).await
        });
        unless_cancelled(op, work).await
    }

    async fn ready(&self, op: &Op, machine: &Machine, cluster: &str) -> Result<Ready, CloudError> {
        unless_cancelled(op, Box::pin(self.clusters.ready(op, &machine.id, cluster))).await
    }

    async fn drain(&self, op: &Op, machine: &Machine, grace: Duration) -> Result<(), CloudError> {
        let id = machine.id.as_str();
        let work = Box::pin(async {
            let placed = self.hosts.get(id).and_then(|reservation| reservation.cluster);
            if let Some(cluster) = placed.filter(|_| !grace.is_zero()) {
                let until = self.hosts.evict_until(id, op.id.as_str(), grace);
                let until = until.map_err(|error| unkept(&error))?;
                self.clusters.evict(id, &cluster, until).await?;
            }
            self.leave(id).await?;
            self.hosts.reserve(id).map_err(|error| unkept(&error))
        });
        unless_cancelled(op, work).await
    }

    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        let id = machine.id.as_str();
        let work = Box::pin(async {
            self.leave(id).await?;
            self.hosts.free(id).map_err(|error| unkept(&error))
        });
        unless_cancelled(op, work).await
    }
}

/// Everything here may be left at any await: each step can be taken again. Boxed, since
/// calls of an API server make large futures.
async fn unless_cancelled<T>(
    op: &Op,
    work: Pin<Box<impl Future<Output = Result<T, CloudError>>>>,
) -> Result<T, CloudError> {
    tokio::select! {
        biased;
        () = op.cancelled.cancelled() => Err(CloudError::Retry("cancelled".to_owned())),
        done = work => done,
    }
}

fn unkept(error: &io::Error) -> CloudError {
    CloudError::Retry(format!("cannot write the reservation: {error}"))
}
