//! `bigfleet shard`: one process, one shard id, one certificate (§2, §3, §19).

use std::{sync::Arc, time::Duration};

use bigfleet_net::{
    Error as NetError,
    http::HttpServer,
    identity::Identity,
    readiness::Readiness,
    rule::Rule,
    shutdown::{Shutdown, why_ended},
    telemetry::Telemetry,
    tls::Security,
};
use bigfleet_provider::{Client, Stamped};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use crate::{
    actuation::{self, Actuation},
    audit::Audit,
    data_dir::{self, DataDir},
    flags::{self, ShardFlags},
    holdings, in_process,
    metrics::Metrics,
    options::Options,
    running::{Running, Setup, start},
    shared::Sharing,
    supply::Supply,
};

/// How long the audit log may take to be written out at the end.
const FLUSH: Duration = Duration::from_secs(2);

/// Why a shard does not start, or why it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Flags that contradict each other.
    #[error(transparent)]
    Flags(#[from] flags::Error),
    /// TLS, listening, signals.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The data directory.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// The mode that was set before.
    #[error(transparent)]
    Actuation(#[from] actuation::Error),
    /// The audit log cannot be opened.
    #[error("--audit-log: {0}; give a file that this process may write")]
    Audit(std::io::Error),
    /// The in-process fake.
    #[error(transparent)]
    Fake(#[from] in_process::Error),
    /// What this shard owned when it ended.
    #[error(transparent)]
    Holdings(#[from] holdings::file::Error),
    /// A task that must never end did.
    #[error("a task ended that must not: {0}; the process ends so that it is restarted")]
    TaskEnded(String),
}

impl Error {
    /// Whether other flags, rather than another world, would have helped.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Flags(_) => true,
            Self::Net(error) => error.is_usage(),
            _ => false,
        }
    }
}

/// A shard process at work.
pub struct Process {
    running: Running,
    side: JoinSet<Result<(), NetError>>,
    stop: Shutdown,
    stop_http: Shutdown,
    audit: Arc<Audit>,
    telemetry: Option<Telemetry>,
    security: Security,
    /// Locked for as long as the process lives.
    _data_dir: DataDir,
}

/// Starts what the flags ask for, in the order of §3.
pub async fn run(flags: &ShardFlags) -> Result<Process, Error> {
    flags.check()?;
    let telemetry = Telemetry::init("bigfleet-shard", &flags.log, &flags.diagnostics)?;
    let stop = Shutdown::on_signal()?;
    let security = flags.tls.load()?;
    security.check_own_identity(&Rule::exactly(Identity::Shard(flags.id.clone())))?;
    let data_dir = DataDir::open(&flags.data_dir, flags.opening())?;
    let epoch = data_dir.epoch();
    tracing::info!(shard = flags.id, epoch, "starting");
    let metrics = Arc::new(Metrics::default());
    let audit = Arc::new(Audit::open(epoch, flags.audit_log(), &metrics).map_err(Error::Audit)?);
    let options = flags.options();
    let actuation = Arc::new(Actuation::open(
        Some(data_dir.actuation_file()),
        options.actuation.clone(),
        audit.clone(),
        &metrics,
    )?);
    let mut side = JoinSet::new();
    let supply = supply(flags, &options, &security, epoch, &mut side)?;
    let shared = sharing(flags, &options, &security, &data_dir)?;
    let readiness = Readiness::new("the provider has not been listed yet");
    let listener = flags.listen.bind().await?;
    let running = start(Setup {
        options,
        epoch,
        supply,
        security: security.clone(),
        listener,
        readiness: readiness.clone(),
        metrics: metrics.clone(),
        audit: audit.clone(),
        actuation,
        shared,
        own_thread: true,
    });
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    bigfleet_net::metrics::register(&mut registry, &security);
    let http = HttpServer::new(registry, readiness)
        .liveness(running.liveness())
        .debug_endpoints(flags.diagnostics.debug_endpoints);
    let stop_http = Shutdown::new();
    let (addr, until) = (flags.metrics.metrics_addr.clone(), stop_http.clone());
    side.spawn(async move { http.serve_at(&addr, until).await });
    let telemetry = Some(telemetry);
    let _data_dir = data_dir;
    Ok(Process { running, side, stop, stop_http, audit, telemetry, security, _data_dir })
}

fn supply(
    flags: &ShardFlags,
    options: &Options,
    security: &Security,
    epoch: i64,
    side: &mut JoinSet<Result<(), NetError>>,
) -> Result<Arc<dyn Supply>, Error> {
    let identity = bigfleet_provider::Identity::new(&flags.id, epoch);
    let addr = &flags.provider.provider_addr;
    if addr.is_empty() {
        let fake = in_process::fake(flags)?;
        side.spawn(in_process::live(fake.clone(), flags.seed.clone()));
        return Ok(Arc::new(Stamped::new(fake, identity)));
    }
    let client = Client::dial(addr, security, options.provider_identity.clone())?;
    Ok(Arc::new(Stamped::new(client, identity)))
}

/// What is ours of a provider that others use, too.
fn sharing(
    flags: &ShardFlags,
    options: &Options,
    security: &Security,
    data_dir: &DataDir,
) -> Result<Option<Sharing>, Error> {
    if !flags.provider.shared_provider {
        return Ok(None);
    }
    let file = data_dir.assignment_file();
    let holdings = holdings::file::read(&file)?;
    let identity = bigfleet_provider::Identity::new(&flags.id, data_dir.epoch() - 1);
    let addr = &flags.provider.provider_addr;
    let client = Client::dial(addr, security, options.provider_identity.clone())?;
    let predecessor = Arc::new(Stamped::new(client, identity));
    Ok(Some(Sharing { file: Some(file), holdings, predecessor }))
}

impl Process {
    /// The shard itself.
    #[must_use]
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Who this process is, and whom it believes.
    #[must_use]
    pub const fn security(&self) -> &Security {
        &self.security
    }

    /// Whoever belongs to the process and ends with it.
    #[must_use]
    pub const fn shutdown(&self) -> &Shutdown {
        &self.stop
    }

    /// Until a signal, then in order to the end; or until a part dies.
    pub async fn until_stopped(mut self) -> Result<(), Error> {
        let died = tokio::select! {
            () = self.stop.requested() => None,
            why = self.running.task_ended() => Some(why),
            ended = self.side.join_next() => Some(why_ended(ended)),
        };
        self.running.stop().await;
        let audit = self.audit.clone();
        // It blocks, and there is nothing else left to do.
        drop(tokio::task::spawn_blocking(move || audit.flush(FLUSH)).await);
        self.stop_http.request();
        self.side.shutdown().await;
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.flush().await;
        }
        died.map_or(Ok(()), |why| Err(Error::TaskEnded(why)))
    }
}
