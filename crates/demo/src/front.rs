//! The front of a provider: where a cloud that takes no more calls turns them away. The kit takes
//! every purchase at once and fails it later, so that what a shard does about calls that are
//! refused would not be seen behind it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use bigfleet_net::message_limits;
use bigfleet_provider_kit::Service;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use tonic::{Request, Response, Status};

/// What whoever was turned away is told.
pub(crate) const TURNED_AWAY: &str = "the cloud takes no more calls";

/// Machines that cannot be bought now. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed(Arc<Mutex<HashSet<String>>>);

impl Closed {
    /// Refuses to create these from now on, and no others.
    pub(crate) fn to(&self, machines: impl IntoIterator<Item = String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = machines.into_iter().collect();
    }

    fn holds(&self, machine: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(machine)
    }
}

/// The six calls of a provider, for whom it is open.
pub(crate) struct Front {
    service: Service,
    closed: Closed,
}

impl Front {
    pub(crate) fn new(service: Service, closed: Closed) -> Self {
        Self { service, closed }
    }

    /// For a gRPC server.
    pub(crate) fn into_server(self) -> CapacityProviderServer<Self> {
        message_limits!(CapacityProviderServer::new(self))
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl CapacityProvider for Front {
    async fn create(&self, request: Request<CreateRequest>) -> Answer<TransitionAck> {
        if self.closed.holds(&request.get_ref().machine_id) {
            return Err(Status::resource_exhausted(TURNED_AWAY));
        }
        self.service.create(request).await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Answer<TransitionAck> {
        self.service.configure(request).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Answer<TransitionAck> {
        self.service.drain(request).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<TransitionAck> {
        self.service.delete(request).await
    }

    async fn get(&self, request: Request<MachineRef>) -> Answer<Machine> {
        self.service.get(request).await
    }

    async fn list(&self, request: Request<ListFilter>) -> Answer<MachineList> {
        self.service.list(request).await
    }
}
