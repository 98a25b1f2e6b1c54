//! A fake, called in the process or over a connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_net::{
    grpc::GrpcServer,
    readiness::Readiness,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_provider::{
    Ack, Adapter, Attempt, Configure, Error, FencedProvider,
    fake::{Fake, FakeOptions, Seed},
    protocol::{Kind, Token},
};
use bigfleet_testkit::pki::Material;
use tokio::net::TcpListener;

/// Nothing here takes that long; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("did not happen in time")
}

pub(crate) fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

/// Serves any provider until the process ends.
pub(crate) async fn serve<P: FencedProvider + 'static>(
    provider: P,
    security: Security,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = GrpcServer::new(security, Readiness::new("starting"))
        .add_service(Adapter::new(provider).into_service());
    tokio::spawn(server.serve(listener, Shutdown::new()));
    addr
}

/// Ten slots, ten idle machines, two configured ones.
pub(crate) fn fake(options: FakeOptions) -> Fake {
    let fake = Fake::new(options);
    let (clusters, configured_per_cluster) = (1, 2);
    let seed =
        Seed { speculative: 10, idle: 10, clusters, configured_per_cluster, ..Seed::default() };
    fake.seed(&seed).unwrap();
    fake
}

pub(crate) fn attempt(shard: &str, epoch: i64, sequence: i64) -> Attempt {
    Attempt::new(Token::new(shard, epoch, sequence), None)
}

pub(crate) fn for_cluster(cluster: &str) -> Configure {
    let metadata = [("k\0é".to_owned(), "v\t".to_owned()), ("empty".to_owned(), String::new())];
    Configure {
        cluster: cluster.into(),
        blob: b"join-secret".to_vec().into(),
        metadata: metadata.into(),
    }
}

/// Any of the four.
pub(crate) async fn mutate<P: FencedProvider>(
    provider: &P,
    attempt: &Attempt,
    kind: Kind,
    machine: &str,
) -> Result<Ack, Error> {
    let machine = machine.into();
    match kind {
        Kind::Create => provider.create(attempt, &machine).await,
        Kind::Configure => provider.configure(attempt, &machine, for_cluster("c")).await,
        Kind::Drain => provider.drain(attempt, &machine, Duration::ZERO).await,
        Kind::Delete => provider.delete(attempt, &machine).await,
    }
}

pub(crate) fn state(ack: &Ack) -> MachineState {
    ack.machine.as_ref().unwrap().state
}
