//! `bigfleet-unschedulable-pod-controller`: one process, one Lease.

use std::sync::Arc;

use bigfleet_in_cluster::{Error as ClusterError, client, lease};
use bigfleet_net::{
    Error as NetError,
    flags::TlsFlags,
    http::HttpServer,
    readiness::Readiness,
    shutdown::{Shutdown, why_ended},
    telemetry::Telemetry,
};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use crate::{
    class_defaults,
    flags::Flags,
    metrics::Metrics,
    running::{self, NAME, Setup},
};

/// Why the process does not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of defaults.
    #[error(transparent)]
    ClassDefaults(#[from] class_defaults::Error),
    /// Listening, signals.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A task that must never end did.
    #[error("a task ended that must not: {0}; the process ends so that it is restarted")]
    TaskEnded(String),
}

/// Runs until a signal, then in order to the end; or until a part dies.
pub async fn run(flags: &Flags) -> Result<(), Error> {
    let options = flags.options()?;
    let telemetry = Telemetry::init(NAME, &flags.log, &flags.diagnostics)?;
    let stop = Shutdown::on_signal()?;
    let paced = flags.cluster.connect(NAME).await?;
    let metrics = Arc::new(Metrics::default());
    let readiness = Readiness::new("the caches are not complete yet");
    let stop_http = Shutdown::new();
    let mut side = JoinSet::new();
    let http = http(flags, &metrics, readiness.clone())?;
    let (addr, until) = (flags.metrics.metrics_addr.clone(), stop_http.clone());
    side.spawn(async move { http.serve_at(&addr, until).await });
    let setup = Setup {
        scope: flags.scope(),
        options,
        identity: lease::identity(),
        namespace: client::own_namespace(paced.client()),
        leader_elect: flags.cluster.leader_elect,
    };
    let ended = tokio::select! {
        ended = running::run(paced, setup, metrics, readiness, stop.clone()) => match ended {
            Ok(()) if stop.is_requested() => Ok(()),
            Ok(()) => Err(Error::TaskEnded("the controller".to_owned())),
            Err(error) => Err(error.into()),
        },
        ended = side.join_next() => Err(Error::TaskEnded(why_ended(ended))),
    };
    stop_http.request();
    side.shutdown().await;
    telemetry.flush().await;
    ended
}

fn http(flags: &Flags, metrics: &Metrics, readiness: Readiness) -> Result<HttpServer, NetError> {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    // It speaks to nobody but the API server, whose certificates are the client's matter.
    bigfleet_net::metrics::register(&mut registry, &TlsFlags::default().load()?);
    let http = HttpServer::new(registry, readiness);
    Ok(http.debug_endpoints(flags.diagnostics.debug_endpoints))
}
