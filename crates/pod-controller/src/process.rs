//! `bigfleet-unschedulable-pod-controller`: one process, one Lease.

use std::{sync::Arc, time::Duration};

use bigfleet_in_cluster::{
    Error as ClusterError, Paced, client,
    events::Recorder,
    lease::{self, Elector},
    store::State,
};
use bigfleet_net::{
    Error as NetError, flags::TlsFlags, http::HttpServer, readiness::Readiness, shutdown::Shutdown,
    telemetry::Telemetry,
};
use prometheus_client::registry::Registry;
use tokio::task::{JoinError, JoinSet};

use crate::{
    class_defaults,
    controller::{Controller, Options, World},
    flags::Flags,
    metrics::Metrics,
};

/// Name of the program, of its Lease and of its Deployment.
pub const NAME: &str = "bigfleet-unschedulable-pod-controller";

/// How long the initial lists may take: a hundred thousand pods come in pages, and a process
/// that gives up early only heats the API server.
const SYNC_CAP: Duration = Duration::from_secs(600);

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
    let work = work(flags, options, paced, metrics, readiness, stop.clone());
    let ended = tokio::select! {
        ended = work => ended,
        ended = side.join_next() => Err(Error::TaskEnded(why(ended))),
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

async fn work(
    flags: &Flags,
    options: Options,
    paced: Paced,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    stop: Shutdown,
) -> Result<(), Error> {
    let world = World::new(flags.scope());
    let (watched, client, until) = (world.clone(), paced.client().clone(), stop.clone());
    let watching = tokio::spawn(async move { Box::pin(watched.run(&client, &until)).await });
    tokio::select! {
        () = stop.requested() => return Ok(()),
        synced = world.wait_synced(SYNC_CAP) => synced?,
    }
    let ready = tokio::spawn(tell_readiness(world.clone(), readiness));
    let identity = lease::identity();
    let namespace = client::own_namespace(paced.client());
    tracing::info!(identity, pods = world.pods.len(), "caches are complete");
    let stop_events = Shutdown::new();
    let recorder = Recorder::start(paced.clone(), NAME, identity.as_str(), stop_events.clone());
    let elector = flags
        .cluster
        .leader_elect
        .then(|| Elector::new(lease::Settings::new(NAME, namespace, identity)));
    // Given back only when nothing is written any more: the next one starts at once.
    let stop_lease = Shutdown::new();
    let holding = elector.clone().map(|elector| {
        let (paced, until) = (paced.clone(), stop_lease.clone());
        tokio::spawn(async move { elector.run(paced, until).await })
    });
    Controller::new(paced, world, options, recorder, metrics).run(elector, stop.clone()).await;
    stop_lease.request();
    if let Some(holding) = holding {
        // It ends by itself; a panic in it must not hold up the stop.
        drop(holding.await);
    }
    stop_events.request();
    ready.abort();
    if !stop.is_requested() {
        return Err(Error::TaskEnded("the controller".to_owned()));
    }
    drop(watching.await);
    Ok(())
}

/// Ready as long as the CRD is there; a standby is ready too.
async fn tell_readiness(world: World, readiness: Readiness) {
    let mut state = State::Synced;
    loop {
        if state == State::Synced {
            readiness.set_ready();
        } else {
            readiness.set_not_ready("the CRD capacityrequests.bigfleet.lucy.sh is missing");
        }
        state = world.requests.wait_other_than(state).await;
    }
}

/// Why a task ended.
fn why(ended: Option<Result<Result<(), NetError>, JoinError>>) -> String {
    match ended {
        Some(Ok(Ok(()))) | None => "without a word".to_owned(),
        Some(Ok(Err(error))) => error.to_string(),
        Some(Err(error)) => error.to_string(),
    }
}
