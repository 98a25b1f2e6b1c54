//! The provider as the shard holds it: one of several kinds, chosen at start.

use std::time::Duration;

use bigfleet_model::{Machine, MachineId};
use bigfleet_provider::{Ack, Configure, Error, ListFilter, MachineList, Provider};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// [`Provider`] behind a pointer.
pub trait Supply: Send + Sync {
    /// See [`Provider::create`].
    fn create<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack>;
    /// See [`Provider::configure`].
    fn configure<'a>(
        &'a self,
        machine: &'a MachineId,
        request: Configure,
        deadline: Instant,
    ) -> Answer<'a, Ack>;
    /// See [`Provider::drain`].
    fn drain<'a>(
        &'a self,
        machine: &'a MachineId,
        grace: Duration,
        deadline: Instant,
    ) -> Answer<'a, Ack>;
    /// See [`Provider::delete`].
    fn delete<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack>;
    /// See [`Provider::get`].
    fn get<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Machine>;
    /// See [`Provider::list`].
    fn list<'a>(&'a self, filter: &'a ListFilter, deadline: Instant) -> Answer<'a, MachineList>;
}

impl<P: Provider> Supply for P {
    fn create<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack> {
        Box::pin(Provider::create(self, machine, Some(deadline)))
    }

    fn configure<'a>(
        &'a self,
        machine: &'a MachineId,
        request: Configure,
        deadline: Instant,
    ) -> Answer<'a, Ack> {
        Box::pin(Provider::configure(self, machine, request, Some(deadline)))
    }

    fn drain<'a>(
        &'a self,
        machine: &'a MachineId,
        grace: Duration,
        deadline: Instant,
    ) -> Answer<'a, Ack> {
        Box::pin(Provider::drain(self, machine, grace, Some(deadline)))
    }

    fn delete<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack> {
        Box::pin(Provider::delete(self, machine, Some(deadline)))
    }

    fn get<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Machine> {
        Box::pin(Provider::get(self, machine, Some(deadline)))
    }

    fn list<'a>(&'a self, filter: &'a ListFilter, deadline: Instant) -> Answer<'a, MachineList> {
        Box::pin(Provider::list(self, filter, Some(deadline)))
    }
}
