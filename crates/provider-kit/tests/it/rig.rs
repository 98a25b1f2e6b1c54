//! A provider on a loopback port, and its client.

use std::{sync::Arc, time::Duration};

use bigfleet_net::{
    flags::TlsFlags,
    grpc::{self, GrpcServer},
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::Security,
};
use bigfleet_provider_kit::{Cloud, Config, Error, Kit, Store};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, MachineState, TransitionAck, capacity_provider_client::CapacityProviderClient,
};
use tokio::{net::TcpListener, task::JoinHandle};
use tonic::{Status, transport::Channel};

/// One provider, up to its stop.
pub(crate) struct Rig {
    pub(crate) client: CapacityProviderClient<Channel>,
    pub(crate) readiness: Readiness,
    pub(crate) addr: String,
    kit: Kit,
    shutdown: Shutdown,
    served: JoinHandle<()>,
    sequence: i64,
}

pub(crate) fn config() -> Config {
    Config { provider: "rig".into(), ..Config::default() }
}

impl Rig {
    pub(crate) async fn start<C: Cloud>(cloud: C, store: impl Store, config: Config) -> Self {
        Self::try_start(cloud, Arc::new(store), config).await.unwrap()
    }

    pub(crate) async fn try_start<C: Cloud>(
        cloud: C,
        store: Arc<dyn Store>,
        config: Config,
    ) -> Result<Self, Error> {
        Self::secure(cloud, store, config, TlsFlags::default().load().unwrap()).await
    }

    pub(crate) async fn secure<C: Cloud>(
        cloud: C,
        store: Arc<dyn Store>,
        config: Config,
        security: Security,
    ) -> Result<Self, Error> {
        let readiness = Readiness::new("starting");
        let kit = Kit::start(cloud, store, config, readiness.clone()).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let shutdown = Shutdown::new();
        let server = GrpcServer::new(security.clone(), readiness.clone())
            .add_service(kit.service().into_server());
        let stop = shutdown.clone();
        let served = tokio::spawn(async move { server.serve(listener, stop).await.unwrap() });
        let client = client(&addr, &security);
        Ok(Self { client, readiness, addr, kit, shutdown, served, sequence: 0 })
    }

    pub(crate) async fn stop(self) {
        drop(self.client);
        self.shutdown.request();
        self.served.await.unwrap();
        self.kit.stop().await;
    }

    /// Tokens of shard `rig`, each newer than the last.
    fn next(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) async fn create(&mut self, id: &str) -> Result<TransitionAck, Status> {
        let request = CreateRequest {
            machine_id: id.into(),
            shard_id: "rig".into(),
            shard_epoch: 1,
            sequence_number: self.next(),
        };
        self.client.create(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn configure(
        &mut self,
        id: &str,
        cluster: &str,
    ) -> Result<TransitionAck, Status> {
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: b"join".to_vec(),
            shard_id: "rig".into(),
            shard_epoch: 1,
            sequence_number: self.next(),
            shard_metadata: [("key".to_owned(), "value\0".to_owned())].into(),
        };
        self.client.configure(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn drain(&mut self, id: &str, grace: i64) -> Result<TransitionAck, Status> {
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds: grace,
            shard_id: "rig".into(),
            shard_epoch: 1,
            sequence_number: self.next(),
        };
        self.client.drain(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn delete(&mut self, id: &str) -> Result<TransitionAck, Status> {
        let request = DeleteRequest {
            machine_id: id.into(),
            shard_id: "rig".into(),
            shard_epoch: 1,
            sequence_number: self.next(),
        };
        self.client.delete(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn get(&mut self, id: &str) -> Machine {
        self.client.get(MachineRef { id: id.into() }).await.unwrap().into_inner()
    }

    pub(crate) async fn list(&mut self, filter: ListFilter) -> MachineList {
        self.client.list(filter).await.unwrap().into_inner()
    }

    /// Waits until the machine is in this state.
    pub(crate) async fn reaches(&mut self, id: &str, state: MachineState) -> Machine {
        let waited = async {
            loop {
                let machine = self.get(id).await;
                if machine.state() == state {
                    return machine;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(3600), waited).await;
        waited.unwrap_or_else(|_| panic!("{id} does not reach {state:?}"))
    }
}

pub(crate) fn client(addr: &str, security: &Security) -> CapacityProviderClient<Channel> {
    let channel = grpc::connect_lazy(addr, security, Rule::any_certificate()).unwrap();
    bigfleet_net::message_limits!(CapacityProviderClient::new(channel))
}
