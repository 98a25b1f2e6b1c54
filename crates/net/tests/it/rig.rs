//! A server with two doubles of our services, and clients to it.

use std::{net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bigfleet_net::{
    Error,
    grpc::{ConnectionLimits, GrpcServer, connect},
    identity::Identity,
    message_limits,
    peer::{Gate, Peer},
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    Acknowledgement, ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter,
    Machine, MachineList, MachineRef, OperatorMessage, ShardMessage, TransitionAck,
    capacity_provider_client::CapacityProviderClient,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
    shard_message::Payload,
    shard_server::{Shard, ShardServer},
};
use prometheus_client::metrics::counter::Counter;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming, transport::Channel};

/// Nothing here takes that long; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("did not happen in time")
}

/// Returns when nobody answers at the address. A process that another test is
/// just starting holds our sockets until it executes its program.
pub(crate) async fn nobody_listens(addr: SocketAddr) {
    soon(async { while TcpStream::connect(addr).await.is_ok() {} }).await;
}

pub(crate) fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

pub(crate) struct Rig {
    pub(crate) addr: SocketAddr,
    pub(crate) readiness: Readiness,
    pub(crate) shutdown: Shutdown,
    pub(crate) rejected: Counter,
    /// A call of `drain`, which never answers, has arrived.
    pub(crate) stuck: Arc<Notify>,
    /// A call of `list`, which waits for its connection to close and then for
    /// `release`, has arrived; and has seen the closing.
    pub(crate) waiting: Arc<Notify>,
    pub(crate) closing: Arc<Notify>,
    pub(crate) release: Arc<Notify>,
    pub(crate) served: JoinHandle<Result<(), Error>>,
}

impl Rig {
    pub(crate) async fn start(security: Security) -> Self {
        Self::start_with(security, ConnectionLimits::default()).await
    }

    pub(crate) async fn start_with(security: Security, limits: ConnectionLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, security, limits)
    }

    pub(crate) fn start_on(
        listener: TcpListener,
        security: Security,
        limits: ConnectionLimits,
    ) -> Self {
        let addr = listener.local_addr().unwrap();
        let readiness = Readiness::new("starting");
        let shutdown = Shutdown::new();
        let rejected = Counter::default();
        let [stuck, waiting, closing, release] = std::array::from_fn(|_| Arc::new(Notify::new()));
        let provider = TestProvider {
            gate: Gate::new(rejected.clone()),
            stuck: stuck.clone(),
            waiting: waiting.clone(),
            closing: closing.clone(),
            release: release.clone(),
        };
        let server = GrpcServer::new(security, readiness.clone())
            .add_service(message_limits!(CapacityProviderServer::new(provider)))
            .add_service(message_limits!(ShardServer::new(TestShard)))
            .limits(limits);
        let served = tokio::spawn(server.serve(listener, shutdown.clone()));
        Self { addr, readiness, shutdown, rejected, stuck, waiting, closing, release, served }
    }

    pub(crate) fn target(&self) -> String {
        self.addr.to_string()
    }

    pub(crate) async fn channel(&self, security: &Security) -> Result<Channel, Error> {
        soon(connect(&self.target(), security, Rule::any_certificate())).await
    }

    pub(crate) async fn client(&self, security: &Security) -> CapacityProviderClient<Channel> {
        message_limits!(CapacityProviderClient::new(self.channel(security).await.unwrap()))
    }

    /// Who the server takes a new connection of this client for.
    pub(crate) async fn whoami(&self, security: &Security) -> Result<String, String> {
        let channel = self.channel(security).await.map_err(|error| error.to_string())?;
        let mut client = CapacityProviderClient::new(channel);
        let answer = soon(client.get(MachineRef::default())).await;
        answer.map(|machine| machine.into_inner().id).map_err(|status| status.to_string())
    }

    /// Asks to mutate as shard `shard_id`.
    pub(crate) async fn create(&self, security: &Security, shard_id: &str) -> Result<(), Status> {
        let request = CreateRequest { shard_id: shard_id.to_owned(), ..Default::default() };
        soon(self.client(security).await.create(request)).await.map(|_| ())
    }
}

struct TestProvider {
    gate: Gate,
    stuck: Arc<Notify>,
    waiting: Arc<Notify>,
    closing: Arc<Notify>,
    release: Arc<Notify>,
}

#[tonic::async_trait]
impl CapacityProvider for TestProvider {
    async fn create(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let shard = Identity::Shard(request.get_ref().shard_id.clone());
        self.gate.admit(&request, &Rule::exactly(shard))?;
        Ok(Response::new(Default::default()))
    }

    /// Echoes the blob.
    async fn configure(
        &self,
        request: Request<ConfigureRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        let operation_id = String::from_utf8(request.into_inner().bootstrap_blob).unwrap();
        Ok(Response::new(TransitionAck { operation_id, machine: None }))
    }

    async fn drain(&self, _: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        self.stuck.notify_one();
        std::future::pending().await
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        self.gate.admit_or_loopback(&request, &Rule::admin())?;
        Ok(Response::new(Default::default()))
    }

    /// The caller's identity as id, its address as zone.
    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.gate.admit(&request, &Rule::any_certificate())?;
        let peer = Peer::of(&request).unwrap();
        let id = peer.identity().map_or_else(|| "nobody".to_owned(), ToString::to_string);
        Ok(Response::new(Machine { id, zone: peer.addr().to_string(), ..Default::default() }))
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        self.waiting.notify_one();
        Peer::of(&request).unwrap().closing().cancelled().await;
        self.closing.notify_one();
        self.release.notified().await;
        Ok(Response::new(Default::default()))
    }
}

/// Its session greets and then stays open for ever, whatever happens.
struct TestShard;

#[tonic::async_trait]
impl Shard for TestShard {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<ShardMessage, Status>> + Send>>;

    async fn session(
        &self,
        _: Request<Streaming<OperatorMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let ack = Acknowledgement { echo: "hello".into(), ..Default::default() };
        let hello = ShardMessage { payload: Some(Payload::Ack(ack)) };
        let stream = tokio_stream::once(Ok(hello)).chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(stream)))
    }
}
