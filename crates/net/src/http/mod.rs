//! The HTTP server beside every process: `/metrics`, `/healthz`, `/readyz`,
//! and on demand `/debug/`. Plain HTTP without authority.

mod debug;

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::net::TcpListener;

use crate::{Error, listen::MetricsAddr, readiness::Readiness, shutdown::Shutdown};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const DRAIN: Duration = Duration::from_secs(10);

/// Answers `/healthz`: an error is the reason for 503.
type Liveness = dyn Fn() -> Result<(), String> + Send + Sync;

/// Metrics and probes of a process.
pub struct HttpServer {
    shared: Shared,
    debug_endpoints: bool,
}

#[derive(Clone)]
struct Shared {
    registry: Arc<Registry>,
    readiness: Readiness,
    liveness: Arc<Liveness>,
}

impl HttpServer {
    /// A server that is alive as long as it answers.
    #[must_use]
    pub fn new(registry: Registry, readiness: Readiness) -> Self {
        let shared = Shared { registry: registry.into(), readiness, liveness: Arc::new(|| Ok(())) };
        Self { shared, debug_endpoints: false }
    }

    /// Another meaning of alive, asked at each probe. It must not block.
    #[must_use]
    pub fn liveness(
        mut self,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.shared.liveness = Arc::new(check);
        self
    }

    /// Whether `/debug/` is served.
    #[must_use]
    pub fn debug_endpoints(mut self, enabled: bool) -> Self {
        self.debug_endpoints = enabled;
        self
    }

    /// The routes, for a process that has them on a server of its own.
    pub fn router(&self) -> Router {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .with_state(self.shared.clone());
        if self.debug_endpoints { router.merge(debug::router()) } else { router }
    }

    /// Listens at the address and serves; when disabled, waits for the stop.
    pub async fn serve_at(self, addr: &MetricsAddr, shutdown: Shutdown) -> Result<(), Error> {
        match addr {
            MetricsAddr::Listen(addr) => {
                let listener = addr.bind().await?;
                self.serve(listener, shutdown).await
            }
            MetricsAddr::Disabled => {
                shutdown.requested().await;
                Ok(())
            }
        }
    }

    /// Serves until the stop is asked for.
    pub async fn serve(self, listener: TcpListener, shutdown: Shutdown) -> Result<(), Error> {
        let addr = listener.local_addr().map_err(Error::Serve)?;
        tracing::info!(%addr, "serving metrics and probes");
        let stop = shutdown.clone();
        let server = axum::serve(listener, self.router())
            .with_graceful_shutdown(async move { stop.requested().await });
        tokio::select! {
            ended = async { server.await } => ended.map_err(Error::Serve),
            // A scraper that never reads its answer must not hold up the stop.
            () = async { shutdown.requested().await; tokio::time::sleep(DRAIN).await } => Ok(()),
        }
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("debug_endpoints", &self.debug_endpoints)
            .finish_non_exhaustive()
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let mut body = String::new();
    match text::encode(&mut body, &shared.registry) {
        Ok(()) => ([(CONTENT_TYPE, OPENMETRICS)], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn healthz(State(shared): State<Shared>) -> (StatusCode, String) {
    probe((shared.liveness)())
}

async fn readyz(State(shared): State<Shared>) -> (StatusCode, String) {
    probe(shared.readiness.state())
}

fn probe(state: Result<(), String>) -> (StatusCode, String) {
    match state {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    }
}
