//! A served replica and its clients.

use std::sync::Arc;

use bigfleet_coordinator::{metrics::Metrics, reports::LivenessLimits, service::Coordinator};
use bigfleet_net::{
    grpc::{GrpcServer, connect},
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::{Material, Pki};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_client::CoordinatorClient};
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, task::JoinHandle};
use tonic::transport::Channel;

use crate::single::Single;

pub(crate) type Client = CoordinatorClient<Channel>;

pub(crate) struct Rig {
    pub(crate) replica: Arc<Single>,
    pub(crate) coordinator: Arc<Coordinator<Single>>,
    pub(crate) readiness: Readiness,
    addr: String,
    pki: Option<Pki>,
    registry: Registry,
    _material: Option<Material>,
    shutdown: Shutdown,
    served: JoinHandle<Result<(), bigfleet_net::Error>>,
}

fn mtls(material: &Material) -> Security {
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).expect("good files");
    Security::Mtls(Arc::new(tls))
}

impl Rig {
    pub(crate) async fn plaintext() -> Self {
        Self::serve(None).await
    }

    pub(crate) async fn secured() -> Self {
        Self::serve(Some(Pki::new().expect("a CA"))).await
    }

    async fn serve(pki: Option<Pki>) -> Self {
        let material = pki.as_ref().map(|pki| pki.material(&["bigfleet://admin"]).expect("files"));
        let security = material.as_ref().map_or(Security::Plaintext, mtls);
        let replica = Arc::new(Single::new());
        let metrics = Arc::new(Metrics::default());
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let coordinator = Coordinator::new(replica.clone(), LivenessLimits::default(), metrics);
        let coordinator = Arc::new(coordinator);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let readiness = Readiness::new("starting");
        let server = GrpcServer::new(security, readiness.clone())
            .add_service(coordinator.clone().into_service());
        let shutdown = Shutdown::new();
        let served = tokio::spawn(server.serve(listener, shutdown.clone()));
        let _material = material;
        Self { replica, coordinator, readiness, addr, pki, registry, _material, shutdown, served }
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_as(&[]).await
    }

    /// With a certificate that carries these identities, if the rig is secured.
    pub(crate) async fn client_as(&self, identities: &[&str]) -> Client {
        let material = self.pki.as_ref().map(|pki| pki.material(identities).expect("files"));
        let security = material.as_ref().map_or(Security::Plaintext, mtls);
        let channel = connect(&self.addr, &security, Rule::any_certificate()).await;
        CoordinatorClient::new(channel.expect("it listens"))
    }

    /// All series whose name holds this, one a line.
    pub(crate) fn series(&self, name: &str) -> Vec<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("it encodes");
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(name));
        lines.map(|line| line.trim_start_matches("bigfleet_coordinator_").to_owned()).collect()
    }

    pub(crate) async fn stop(self) {
        self.shutdown.request();
        self.served.await.expect("it does not panic").expect("it stops");
    }
}

pub(crate) fn report(shard: &str, cycle: i64) -> wire::ShardReport {
    wire::ShardReport {
        shard_id: shard.into(),
        shard_address: format!("{shard}:7780"),
        shard_epoch: 1,
        instance: 1,
        cycle,
        ..wire::ShardReport::default()
    }
}

pub(crate) fn assign(value: &str, shard: &str) -> wire::AssignDomainRequest {
    wire::AssignDomainRequest {
        topology_key: "zone".into(),
        topology_value: value.into(),
        shard_id: shard.into(),
    }
}
