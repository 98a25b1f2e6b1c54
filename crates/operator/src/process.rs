//! `bigfleet-operator`: one process, one cluster, one certificate (§1).

use std::sync::Arc;

use bigfleet_in_cluster::{Error as ClusterError, client, lease};
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
use tokio::task::JoinSet;

use crate::{
    blobs::Blobs,
    bootstrap, dispatch,
    flags::{self, OperatorFlags},
    metrics::Metrics,
    operator::{self, NAME, Options, Running, Setup},
};

/// A roll-up more often than this is more than a shard's cycle can use.
const OFTEN: std::time::Duration = std::time::Duration::from_secs(1);

/// Why an operator does not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that contradict each other.
    #[error(transparent)]
    Flags(#[from] flags::Error),
    /// TLS, listening, signals.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The API server.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The bootstrap template, or what belongs to it.
    #[error(transparent)]
    Bootstrap(#[from] bootstrap::Error),
    /// No threads to run on.
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    /// It ended.
    #[error(transparent)]
    Ended(#[from] operator::Error),
}

/// An operator process at work.
#[derive(Debug)]
pub struct Process {
    running: Running,
    /// Metrics, probes, bootstrap files and tokens.
    beside: JoinSet<Result<(), NetError>>,
    stop: Shutdown,
    stop_beside: Shutdown,
    telemetry: Telemetry,
}

/// Starts what the flags ask for, in the order of §1.
pub async fn run(flags: &OperatorFlags) -> Result<Process, Error> {
    flags.check()?;
    let telemetry = Telemetry::init(NAME, &flags.log, &flags.diagnostics)?;
    let stop = Shutdown::on_signal()?;
    let security = flags.tls.load()?;
    security.check_own_identity(&Rule::exactly(Identity::Cluster(flags.cluster_id.clone())))?;
    if flags.rollup_interval() < OFTEN {
        tracing::warn!("--rollup-interval is below 1s; a shard decides every 10s");
    }
    if let Some(idle) = flags.bootstrap.idle() {
        tracing::warn!("{idle}");
    }
    let metrics = Arc::new(Metrics::default());
    let blobs = Blobs::open(flags, &metrics)?;
    let readiness = Readiness::new("the caches have not been filled yet");
    let (mut http, stop_http) = serve(flags, &metrics, &readiness, &security);
    let paced = flags.cluster.connect(NAME).await?;
    let namespace = client::own_namespace(paced.client());
    tracing::info!(cluster = flags.cluster_id, shard = flags.shard_addr, namespace, "starting");
    let options = Options {
        cluster_id: flags.cluster_id.clone(),
        shard_addr: flags.shard_addr.clone(),
        security,
        rollup_interval: flags.rollup_interval(),
        ack_concurrency: flags.ack_concurrency(),
        demand_source: flags.demand.demand_source,
        pod_status: flags.demand.pod_status,
        leader_elect: flags.cluster.leader_elect,
        namespace,
        identity: lease::identity(),
    };
    let nodes = dispatch::Settings {
        own_pod: dispatch::Settings::own_pod(),
        cleanup: flags.nodes.node_cleanup,
    };
    let running = operator::start(Setup {
        options,
        paced: paced.clone(),
        render: Arc::new(blobs.clone()),
        side: dispatch::beside(nodes),
        metrics,
        readiness,
    });
    let (lead, until) = (running.lead().clone(), stop_http.clone());
    http.spawn(async move {
        blobs.run(lead, paced, until).await;
        Ok(())
    });
    Ok(Process { running, beside: http, stop, stop_beside: stop_http, telemetry })
}

fn serve(
    flags: &OperatorFlags,
    metrics: &Metrics,
    readiness: &Readiness,
    security: &bigfleet_net::tls::Security,
) -> (JoinSet<Result<(), NetError>>, Shutdown) {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    bigfleet_net::metrics::register(&mut registry, security);
    // Alive is whoever answers: an outage of shard or API server must not restart us.
    let server = HttpServer::new(registry, readiness.clone())
        .debug_endpoints(flags.diagnostics.debug_endpoints);
    let stop = Shutdown::new();
    let (addr, until) = (flags.metrics.metrics_addr.clone(), stop.clone());
    let mut http = JoinSet::new();
    http.spawn(async move { server.serve_at(&addr, until).await });
    (http, stop)
}

impl Process {
    /// Until a signal, then in order to the end; or until a part dies.
    pub async fn until_stopped(mut self) -> Result<(), Error> {
        let died = tokio::select! {
            () = self.stop.requested() => None,
            why = self.running.ended() => Some(Error::Ended(why)),
            ended = self.beside.join_next() => Some(match ended {
                Some(Ok(Err(error))) => error.into(),
                other => operator::Error::TaskEnded(why_ended(other)).into(),
            }),
        };
        self.running.stop().await;
        self.stop_beside.request();
        while self.beside.join_next().await.is_some() {}
        self.telemetry.flush().await;
        died.map_or(Ok(()), Err)
    }
}
