//! A provider and its client: on a loopback port, or without a network for tests that
//! move the clock.

use std::{io, sync::Arc, time::Duration};

use bigfleet_net::{
    flags::TlsFlags,
    grpc::{self, GrpcServer},
    peer::{self, Peer},
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
use tonic::{Status, body::Body};
use tower::{Service as _, ServiceExt as _, util::BoxCloneSyncService};

type Transport = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, io::Error>;
pub(crate) type Client = CapacityProviderClient<Transport>;

/// One provider, up to its stop.
pub(crate) struct Rig {
    pub(crate) client: Client,
    pub(crate) readiness: Readiness,
    pub(crate) kit: Kit,
    server: Option<(Shutdown, JoinHandle<()>)>,
    sequence: i64,
}

pub(crate) fn config() -> Config {
    Config { provider: "rig".into(), ..Config::default() }
}

impl Rig {
    /// Without a network.
    pub(crate) async fn local<C: Cloud>(
        cloud: C,
        store: impl Store,
        config: Config,
    ) -> Result<Self, Error> {
        let readiness = Readiness::new("starting");
        let kit = Kit::start(cloud, Arc::new(store), config, readiness.clone()).await?;
        let server = kit.service().into_server();
        let transport = tower::service_fn(move |mut request: http::Request<Body>| {
            let peer = Peer::new(([127, 0, 0, 1], 1).into(), peer::Transport::Plaintext);
            request.extensions_mut().insert(peer);
            let mut server = server.clone();
            async move { server.call(request).await.map_err(io::Error::other) }
        });
        let client = client_of(BoxCloneSyncService::new(transport));
        Ok(Self { client, readiness, kit, server: None, sequence: 0 })
    }

    /// Over loopback in plaintext.
    pub(crate) async fn start<C: Cloud>(cloud: C, store: impl Store, config: Config) -> Self {
        let security = TlsFlags::default().load().unwrap();
        Self::secure(cloud, store, config, &security, &security).await
    }

    /// Over loopback, with the server's and the client's material.
    pub(crate) async fn secure<C: Cloud>(
        cloud: C,
        store: impl Store,
        config: Config,
        server: &Security,
        client: &Security,
    ) -> Self {
        let readiness = Readiness::new("starting");
        let kit = Kit::start(cloud, Arc::new(store), config, readiness.clone()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let shutdown = Shutdown::new();
        let grpc = GrpcServer::new(server.clone(), readiness.clone())
            .add_service(kit.service().into_server());
        let stop = shutdown.clone();
        let served = tokio::spawn(async move { grpc.serve(listener, stop).await.unwrap() });
        let client = connect(&addr, client);
        Self { client, readiness, kit, server: Some((shutdown, served)), sequence: 0 }
    }

    pub(crate) async fn stop(self) {
        drop(self.client);
        if let Some((shutdown, served)) = self.server {
            shutdown.request();
            served.await.unwrap();
        }
        self.kit.stop().await;
    }

    /// Tokens of shard `rig`, each newer than the last.
    fn next(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    /// Goes on where the tokens of a rig before a restart ended.
    pub(crate) fn after(mut self, sequence: i64) -> Self {
        self.sequence = sequence;
        self
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
        self.becomes(id, |machine| machine.state() == state).await
    }

    /// Waits until the machine looks so.
    pub(crate) async fn becomes(&mut self, id: &str, wanted: impl Fn(&Machine) -> bool) -> Machine {
        let mut last = None;
        let waited = async {
            loop {
                let machine = self.get(id).await;
                if wanted(&machine) {
                    return machine;
                }
                last = Some(machine);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(1800), waited).await;
        waited.unwrap_or_else(|_| panic!("{id} stays {last:?}"))
    }

    /// From SPECULATIVE to CONFIGURED.
    pub(crate) async fn bind(&mut self, id: &str, cluster: &str) -> Machine {
        self.create(id).await.unwrap();
        self.reaches(id, MachineState::Idle).await;
        self.configure(id, cluster).await.unwrap();
        self.reaches(id, MachineState::Configured).await
    }
}

pub(crate) fn connect(addr: &str, security: &Security) -> Client {
    let channel = grpc::connect_lazy(addr, security, Rule::any_certificate()).unwrap();
    client_of(BoxCloneSyncService::new(channel.map_err(io::Error::other)))
}

fn client_of(transport: Transport) -> Client {
    bigfleet_net::message_limits!(CapacityProviderClient::new(transport))
}
