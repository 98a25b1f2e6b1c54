//! A coordinator that runs: consensus, its port, the service, put together.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bigfleet_net::{
    Error as NetError,
    grpc::GrpcServer,
    peer::Gate,
    readiness::Readiness,
    shutdown::{Shutdown, why_ended},
    tls::Security,
};
use tokio::task::JoinSet;

use super::{Error, watch};
use crate::{
    backup,
    consensus::{Consensus, ConsensusService, Entropy, GrpcTransport, JoinAddr, Peers, World},
    flags::CoordinatorFlags,
    log::{Observer, RealDisk},
    metrics::Metrics,
    service::Coordinator,
};

/// How long handing over may take before the drain begins all the same.
const HAND_OVER: Duration = Duration::from_secs(10);

/// How long everything may take to end after the drain.
const CLOSE: Duration = Duration::from_secs(2);

/// A coordinator at work.
pub struct Running {
    consensus: Consensus,
    /// The service's server, and what keeps house.
    tasks: JoinSet<Result<(), NetError>>,
    /// The consensus port outlives the service: a successor may need this vote.
    port: JoinSet<Result<(), NetError>>,
    stop: Shutdown,
    stop_port: Shutdown,
    grpc: SocketAddr,
}

/// Opens the data directory and takes part. The flags have been checked.
pub async fn start(
    flags: &CoordinatorFlags,
    security: Security,
    metrics: Arc<Metrics>,
    readiness: Readiness,
) -> Result<Running, Error> {
    let listener = flags.listen.bind().await?;
    let raft_listener = flags.raft.raft_bind.bind().await?;
    let grpc = listener.local_addr().map_err(NetError::Serve)?;
    let raft = raft_listener.local_addr().map_err(NetError::Serve)?;
    let peers = flags.join_addr().map(|addr| {
        let peers: Arc<dyn Peers> = Arc::new(JoinAddr::new(addr, security.clone()));
        peers
    });
    let fsyncs = metrics.clone();
    let observe_fsync: Observer = Arc::new(move |took| fsyncs.fsynced(took));
    let world = World {
        disk: Arc::new(RealDisk),
        root: flags.data_dir.clone(),
        transport: Arc::new(GrpcTransport::new(security.clone())),
        peers,
        entropy: Arc::new(Entropy::from_system().map_err(Error::Random)?),
        log_thread: true,
        observe_fsync: Some(observe_fsync),
    };
    let consensus = Consensus::start(flags.consensus(grpc, raft), world).await?;
    let (stop, stop_port) = (Shutdown::new(), Shutdown::new());

    let gate = Gate::new(metrics.identity_rejected("Consensus"));
    let server = GrpcServer::new(security.clone(), readiness.clone())
        .reflection(false)
        .add_service(ConsensusService::server(consensus.clone(), gate));
    let mut port = JoinSet::new();
    port.spawn(server.serve(raft_listener, stop_port.clone()));

    let service =
        Arc::new(Coordinator::new(Arc::new(consensus.clone()), flags.liveness(), metrics.clone()));
    let server =
        GrpcServer::new(security, readiness.clone()).add_service(service.clone().into_service());
    let mut tasks = JoinSet::new();
    tasks.spawn(server.serve(listener, stop.clone()));
    if let Some(settings) = flags.rebalance.settings() {
        let rebalancing = service.clone().rebalance(settings, stop.clone());
        tasks.spawn(async move {
            rebalancing.await;
            Ok(())
        });
    }
    let until = stop.clone();
    tasks.spawn(async move {
        service.keep(readiness, until).await;
        Ok(())
    });
    let watching = watch::leadership(consensus.clone(), metrics.clone(), stop.clone());
    tasks.spawn(async move {
        watching.await;
        Ok(())
    });
    if let Some(options) = flags.export.options() {
        let replica = Arc::new(consensus.clone());
        let exporting = backup::export(options, replica, metrics.clone(), stop.clone());
        tasks.spawn(async move {
            exporting.await;
            Ok(())
        });
    }
    Ok(Running { consensus, tasks, port, stop, stop_port, grpc })
}

impl Running {
    /// Where the service listens.
    #[must_use]
    pub const fn grpc_addr(&self) -> SocketAddr {
        self.grpc
    }

    /// Resolves when this replica cannot go on.
    pub async fn died(&mut self) -> Error {
        let mut fatal = self.consensus.fatal();
        tokio::select! {
            // The reason before its consequences.
            biased;
            failed = fatal.wait_for(Option::is_some) => {
                let reason = failed.ok().and_then(|reason| reason.clone());
                Error::Fatal(reason.unwrap_or_default())
            }
            ended = self.tasks.join_next() => Error::TaskEnded(why_ended(ended)),
            ended = self.port.join_next() => Error::TaskEnded(why_ended(ended)),
        }
    }

    /// Hands leadership over, lets calls end, then leaves the group's port.
    pub async fn stop(mut self) {
        drop(tokio::time::timeout(HAND_OVER, self.consensus.hand_over()).await);
        self.stop.request();
        while self.tasks.join_next().await.is_some() {}
        // It may have been elected again during the drain.
        drop(tokio::time::timeout(HAND_OVER, self.consensus.shutdown()).await);
        self.stop_port.request();
        let ended = async { while self.port.join_next().await.is_some() {} };
        drop(tokio::time::timeout(CLOSE, ended).await);
        self.port.shutdown().await;
    }
}
