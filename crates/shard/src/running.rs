//! A shard that runs: its tasks and its services, put together.

use std::{sync::Arc, time::Duration};

use bigfleet_net::{
    grpc::GrpcServer,
    message_limits,
    peer::Gate,
    readiness::Readiness,
    shutdown::{Shutdown, why_ended},
    tls::Security,
};
use bigfleet_wire::v1alpha1::shard_admin_server::ShardAdminServer;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    actuation::Actuation,
    admin::Admin,
    audit::Audit,
    cycle, execute,
    fence::Fence,
    hints::Hints,
    host::ShardHost,
    metrics::{Metrics, SessionEvent},
    observe::Observe,
    options::Options,
    process,
    read::Read,
    readers::Readers,
    reconcile,
    report::ReportSide,
    session::{SessionOptions, SessionServer, Sessions},
    shard::{Parts, Shard},
    shared::{self, Shared, Sharing},
    supply::Supply,
};

/// How long running actions may take to finish once the shard stops.
const FINISH: Duration = Duration::from_secs(10);

/// How long everything else may take to end after that.
const CLOSE: Duration = Duration::from_secs(2);

/// Everything a shard is started with.
pub struct Setup {
    /// Settings.
    pub options: Options,
    /// Of this process; greater than that of every earlier one.
    pub epoch: i64,
    /// Where machines come from.
    pub supply: Arc<dyn Supply>,
    /// Who may connect.
    pub security: Security,
    /// Where operators and readers connect.
    pub listener: TcpListener,
    /// Follows the first reconcile.
    pub readiness: Readiness,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Remembers decisions.
    pub audit: Arc<Audit>,
    /// The brake.
    pub actuation: Arc<Actuation>,
    /// What is ours, of a provider that others use, too; none for a provider of our own.
    pub shared: Option<Sharing>,
    /// Whether cycles have a thread of their own, as they should, or share the
    /// caller's runtime and its clock, as tests in virtual time need.
    pub own_thread: bool,
}

impl Setup {
    /// A shard that keeps nothing on disk and shares its caller's runtime; for
    /// tests in virtual time.
    pub fn in_memory(
        options: Options,
        epoch: i64,
        supply: Arc<dyn Supply>,
        listener: TcpListener,
    ) -> Result<Self, process::Error> {
        let metrics = Arc::new(Metrics::default());
        let audit = Audit::open(epoch, None, &metrics).map_err(process::Error::Audit)?;
        let audit = Arc::new(audit);
        let forced = options.actuation.clone();
        let actuation = Arc::new(Actuation::open(None, forced, audit.clone(), &metrics)?);
        Ok(Self {
            options,
            epoch,
            supply,
            security: Security::Plaintext,
            listener,
            readiness: Readiness::new("the provider has not been listed yet"),
            metrics,
            audit,
            actuation,
            shared: None,
            own_thread: false,
        })
    }
}

/// A shard at work.
pub struct Running {
    shard: Arc<Shard>,
    report: ReportSide,
    tasks: JoinSet<Result<(), bigfleet_net::Error>>,
    stop: Shutdown,
    stop_cycles: CancellationToken,
}

/// Starts a shard.
pub fn start(setup: Setup) -> Running {
    let Setup {
        options,
        epoch,
        supply,
        security,
        listener,
        readiness,
        metrics,
        audit,
        actuation,
        shared,
        own_thread,
    } = setup;
    let (sharing, predecessor) = match shared {
        None => (None, None),
        Some(Sharing { file, holdings, predecessor }) => {
            (Some(Arc::new(Shared::new(file, holdings))), Some(predecessor))
        }
    };
    let sessions = Sessions::new(SessionOptions {
        identity_rejected: metrics.session_identity_rejected.clone(),
        installed: metrics.session_counter(SessionEvent::Installed),
        removed: metrics.session_counter(SessionEvent::Removed),
        replaced: metrics.session_counter(SessionEvent::Replaced),
        ..SessionOptions::default()
    });
    let concurrency = options.execute_concurrency.max(1);
    let shard = Arc::new(Shard::new(Parts {
        options,
        epoch,
        supply,
        shared: sharing,
        sessions: sessions.clone(),
        fence: Fence::new(readiness.clone(), &metrics),
        actuation,
        audit,
        metrics,
    }));
    let stop = Shutdown::new();
    let stop_cycles = CancellationToken::new();
    let mut tasks = JoinSet::new();
    for _ in 0..concurrency {
        let worker = execute::work(shard.clone());
        tasks.spawn(async move {
            worker.await;
            Ok(())
        });
    }
    let reconciler = reconcile::run(shard.clone());
    let stopped = stop_cycles.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = reconciler => {}
            () = stopped.cancelled() => {}
        }
        Ok(())
    });
    spawn_cycles(&shard, &stop_cycles, own_thread, &mut tasks);
    if let Some(predecessor) = predecessor {
        spawn_sharing(&shard, predecessor, &mut tasks);
    }
    let host = Arc::new(ShardHost(Arc::downgrade(&shard)));
    let server = SessionServer::new(sessions, host, stop.token().clone());
    let gate = Gate::new(shard.metrics.session_identity_rejected.clone());
    let readers = Arc::new(Readers::new(shard.metrics.clone()));
    let read = Read::new(shard.clone(), readers.clone(), gate.clone());
    let observe = Observe::new(shard.clone(), readers, gate.clone());
    let admin = Admin::new(shard.actuation.clone(), gate);
    let grpc = GrpcServer::new(security, readiness)
        .add_service(server.into_service())
        .add_service(read.into_service())
        .add_service(observe.into_service())
        .add_service(message_limits!(ShardAdminServer::new(admin)));
    let stopping = stop.clone();
    tasks.spawn(async move { grpc.serve(listener, stopping).await });
    let report = ReportSide::new(shard.clone());
    Running { shard, report, tasks, stop, stop_cycles }
}

/// What a shared provider needs besides.
fn spawn_sharing(
    shard: &Arc<Shard>,
    predecessor: Arc<dyn Supply>,
    tasks: &mut JoinSet<Result<(), bigfleet_net::Error>>,
) {
    let tending = shared::tend(shard.clone());
    let sharing = shard.clone();
    tasks.spawn(async move {
        let first_words = async {
            if let Some(shared) = &sharing.shared {
                shared::announce(&sharing, shared, &*predecessor).await?;
            }
            std::future::pending::<Result<(), shared::NotStrict>>().await
        };
        tokio::select! {
            () = tending => Ok(()),
            ended = first_words => {
                ended.map_err(|error| bigfleet_net::Error::Serve(std::io::Error::other(error)))
            }
        }
    });
}

fn spawn_cycles(
    shard: &Arc<Shard>,
    stop: &CancellationToken,
    own_thread: bool,
    tasks: &mut JoinSet<Result<(), bigfleet_net::Error>>,
) {
    let (hints, crier) = Hints::new();
    let crier = crier.run(shard.clone());
    tasks.spawn(async move {
        crier.await;
        Ok(())
    });
    let cycles = cycle::run(shard.clone(), hints, stop.clone());
    if !own_thread {
        tasks.spawn(async move {
            cycles.await;
            Ok(())
        });
        return;
    }
    let (done, finished) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("cycle".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(cycles);
        }
        drop(done);
    });
    if let Err(error) = &thread {
        tracing::error!(%error, "no thread for the cycle");
    }
    tasks.spawn(async move {
        drop(finished.await);
        Ok(())
    });
}

impl Running {
    /// Whether cycles still end (§19).
    pub fn liveness(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let shard = self.shard.clone();
        let limit = (shard.options.cycle_interval * 10).max(Duration::from_secs(120));
        move || {
            let since = shard.since_last_cycle();
            if since <= limit {
                return Ok(());
            }
            Err(format!("no cycle has ended for {} s", since.as_secs()))
        }
    }

    /// Moves the wall's clock as this shard reads it; for tests of clocks that jump.
    #[doc(hidden)]
    pub fn skew_wall(&self, nanos: i64) {
        self.shard.clock.skew_wall(nanos);
    }

    /// Resolves when a task ends that never should.
    pub async fn task_ended(&mut self) -> String {
        why_ended(self.tasks.join_next().await)
    }

    /// What the coordinator's client reads and sets.
    #[must_use]
    pub fn report_side(&self) -> ReportSide {
        self.report.clone()
    }

    /// Stops in order: cycles, the queue, running actions, sessions (§19).
    pub async fn stop(mut self) {
        self.stop_cycles.cancel();
        self.shard.queue.close();
        let workers = async {
            while self.shard.queue.running() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        drop(tokio::time::timeout(FINISH, workers).await);
        self.stop.request();
        // A worker whose provider hangs, a connection whose peer does not read: told
        // or not, they end here.
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        drop(tokio::time::timeout(CLOSE, ended).await);
        self.tasks.shutdown().await;
    }
}
