//! The gRPC server of every process.
//!
//! The accept loop is our own, for three things the library's does not do:
//! a stalled TLS handshake must not hold up the next one, a connection past
//! its age must get a GOAWAY first and be cut only after a grace, and a stop
//! must end within its bound although sessions never end by themselves.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tower::Service;

use super::{
    connection::{Acceptor, ConnectionLimits},
    health::{HealthService, Reflection},
};
use crate::{Error, readiness::Readiness, shutdown::Shutdown, tls::Security};

/// After an accept error (usually: too many open files) there is no point in
/// trying again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Services on one port, with health and reflection.
#[derive(Debug)]
pub struct GrpcServer {
    security: Security,
    readiness: Readiness,
    routes: RoutesBuilder,
    names: Vec<&'static str>,
    limits: ConnectionLimits,
    reflection: bool,
}

impl GrpcServer {
    /// A server without services but health and reflection.
    #[must_use]
    pub fn new(security: Security, readiness: Readiness) -> Self {
        Self {
            security,
            readiness,
            routes: Routes::builder(),
            names: Vec::new(),
            limits: ConnectionLimits::default(),
            reflection: true,
        }
    }

    /// Adds a generated server; wrap it in
    /// [`message_limits!`](crate::message_limits). Its health follows the
    /// readiness of the process.
    #[must_use]
    pub fn add_service<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.routes.add_service(service);
        self.names.push(S::NAME);
        self
    }

    /// Other limits than the default.
    #[must_use]
    pub fn limits(mut self, limits: ConnectionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether the server describes its services to whoever asks; it does by default.
    #[must_use]
    pub fn reflection(mut self, enabled: bool) -> Self {
        self.reflection = enabled;
        self
    }

    /// Serves until the stop is asked for, then drains.
    pub async fn serve(mut self, listener: TcpListener, shutdown: Shutdown) -> Result<(), Error> {
        let addr = listener.local_addr().map_err(Error::Serve)?;
        announce(addr, &self.security);
        let versions = [Reflection::V1, Reflection::V1Alpha];
        for reflection in versions.into_iter().filter(|_| self.reflection) {
            reflection.add_to(&mut self.routes, &self.names)?;
        }
        self.routes.add_service(HealthService::server(self.readiness, self.names));
        let stopping = shutdown.token().child_token();
        let cut = CancellationToken::new();
        // Connections are tasks of their own and must not outlive this future.
        let _cut_when_dropped = cut.clone().drop_guard();
        let acceptor = Arc::new(Acceptor {
            security: self.security,
            routes: self.routes.routes().prepare(),
            limits: self.limits,
            stopping: stopping.clone(),
            cut: cut.clone(),
        });
        let connections = TaskTracker::new();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = accept_all(&listener, &acceptor, &connections) => {}
        }
        // New clients are to be refused at once, not to wait in the backlog.
        drop(listener);
        connections.close();
        if tokio::time::timeout(self.limits.drain, connections.wait()).await.is_err() {
            tracing::info!(open = connections.len(), %addr, "cutting connections that did not drain");
            cut.cancel();
            connections.wait().await;
        }
        Ok(())
    }
}

async fn accept_all(listener: &TcpListener, acceptor: &Arc<Acceptor>, connections: &TaskTracker) {
    let handshakes = Arc::new(Semaphore::new(acceptor.limits.handshakes));
    loop {
        let Ok(handshake) = handshakes.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, addr)) => {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    acceptor.serve(stream, addr, handshake).await;
                });
            }
            // That one peer went away; the next is waiting.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn announce(addr: SocketAddr, security: &Security) {
    match security {
        Security::Mtls(_) => tracing::info!(%addr, "serving gRPC over mTLS"),
        Security::Plaintext if addr.ip().to_canonical().is_loopback() => {
            tracing::info!(%addr, "serving gRPC in plaintext on loopback");
        }
        Security::Plaintext => tracing::warn!(
            %addr,
            "serving gRPC in plaintext to the network: identities are not checked; \
             give --tls-cert, --tls-key and --tls-ca"
        ),
    }
}
