//! `bigfleet coordinator`: one process, one replica, one certificate (§2).

mod running;
mod watch;

use std::sync::Arc;

use bigfleet_net::{
    Error as NetError,
    http::HttpServer,
    identity::Identity,
    readiness::Readiness,
    rule::Rule,
    shutdown::{Shutdown, why_ended},
    telemetry::Telemetry,
};
use prometheus_client::registry::Registry;
pub use running::{Running, start};
use tokio::task::JoinSet;

use crate::{
    consensus::StartError,
    flags::{self, CoordinatorFlags},
    metrics::Metrics,
    service::NO_LEADER,
};

/// Why a coordinator does not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that contradict each other.
    #[error(transparent)]
    Flags(#[from] flags::Error),
    /// TLS, listening, signals.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The data directory, or consensus on it.
    #[error("--data-dir: {0}")]
    Start(#[from] StartError),
    /// The system gives no random numbers.
    #[error("no randomness: {0}")]
    Random(getrandom::Error),
    /// This replica cannot go on; the others do.
    #[error("this replica cannot go on: {0}")]
    Fatal(String),
    /// A task that must never end did.
    #[error("a task ended that must not: {0}; the process ends so that it is restarted")]
    TaskEnded(String),
}

impl Error {
    /// Whether other flags, rather than another world, would have helped.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Flags(_) | Self::Start(StartError::Config(_)) => true,
            Self::Net(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// A coordinator process at work.
pub struct Process {
    running: Running,
    side: JoinSet<Result<(), NetError>>,
    stop: Shutdown,
    stop_http: Shutdown,
    telemetry: Telemetry,
}

/// Starts what the flags ask for.
pub async fn run(flags: &CoordinatorFlags) -> Result<Process, Error> {
    flags.check()?;
    let telemetry = Telemetry::init("bigfleet-coordinator", &flags.log, &flags.diagnostics)?;
    let stop = Shutdown::on_signal()?;
    let security = flags.tls.load()?;
    security.check_own_identity(&Rule::admin().or(Identity::Coordinator(flags.id.clone())))?;
    tracing::info!(id = flags.id, data_dir = %flags.data_dir.display(), "starting");
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::new(NO_LEADER);
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    bigfleet_net::metrics::register(&mut registry, &security);
    let running = start(flags, security, metrics, readiness.clone()).await?;
    let http =
        HttpServer::new(registry, readiness).debug_endpoints(flags.diagnostics.debug_endpoints);
    let stop_http = Shutdown::new();
    let (addr, until) = (flags.metrics.metrics_addr.clone(), stop_http.clone());
    let mut side = JoinSet::new();
    side.spawn(async move { http.serve_at(&addr, until).await });
    Ok(Process { running, side, stop, stop_http, telemetry })
}

impl Process {
    /// Until a signal, then in order to the end; or until a part dies.
    pub async fn until_stopped(mut self) -> Result<(), Error> {
        let died = tokio::select! {
            () = self.stop.requested() => None,
            why = self.running.died() => Some(why),
            ended = self.side.join_next() => Some(Error::TaskEnded(why_ended(ended))),
        };
        self.running.stop().await;
        self.stop_http.request();
        self.side.shutdown().await;
        self.telemetry.flush().await;
        died.map_or(Ok(()), Err)
    }
}
