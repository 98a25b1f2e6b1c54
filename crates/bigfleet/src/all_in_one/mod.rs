//! `bigfleet all-in-one`: a coordinator, a shard and a fake provider in one process, for
//! laptops (coordinator chapter §14). The shard reports over loopback like any other, so
//! that registration, reads and dashboards work.

mod flags;
mod probes;
mod seed;

use std::{net::SocketAddr, sync::Arc};

use bigfleet_coordinator::process as coordinator;
use bigfleet_net::{
    Error as NetError, listen::ListenAddr, readiness::Readiness, shutdown::Shutdown,
    telemetry::Telemetry, tls::Security,
};
use bigfleet_provider::{Identity, Stamped, fake::Fake};
use bigfleet_shard::{
    Running as Shard, Setup,
    actuation::Actuation,
    audit::Audit,
    data_dir::{DataDir, Opening},
    metrics::Metrics as ShardMetrics,
    process::Error as ShardError,
};
use bigfleet_shard_report::{Options as ReportOptions, Resolver};
pub(crate) use flags::AllInOneFlags;
use probes::Probes;
use tokio::task::JoinSet;

use crate::{error::Error, shard::report};

/// Runs everything until it is told to stop, or until a part of it ends.
pub(crate) fn run(flags: &AllInOneFlags) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run_until_stopped(flags));
    runtime.shutdown_background();
    ended
}

async fn run_until_stopped(flags: &AllInOneFlags) -> Result<(), Error> {
    flags.check()?;
    let service = "bigfleet-all-in-one";
    let telemetry = Telemetry::init(service, &flags.log, &flags.diagnostics).map_err(net)?;
    let stop = Shutdown::on_signal().map_err(net)?;
    let mut side = JoinSet::new();
    let mut probes = Probes::default();

    let of_coordinator = Readiness::new(bigfleet_coordinator::service::NO_LEADER);
    let metrics = Arc::new(bigfleet_coordinator::metrics::Metrics::default());
    let replica = flags.coordinator()?;
    let started =
        coordinator::start(&replica, Security::Plaintext, metrics.clone(), of_coordinator.clone());
    let mut coordinator = started.await?;
    probes.add(&flags.coordinator_metrics_addr, of_coordinator, None, |registry| {
        metrics.register(registry);
    });

    let fake = seed::fake(flags.seed)?;
    let (of_shard, metrics) =
        (Readiness::new("the provider has not been listed yet"), Arc::new(ShardMetrics::default()));
    let (mut shard, address, _data_dir) =
        start_shard(flags, fake.clone(), metrics.clone(), of_shard.clone()).await?;
    let alive = Box::new(shard.liveness());
    probes.add(&flags.shard_metrics_addr, of_shard, Some(alive), |registry| {
        metrics.register(registry);
    });
    let reporting = ReportOptions {
        addresses: vec![loopback(coordinator.grpc_addr(), &flags.coordinator_listen)],
        advertise_addr: loopback(address, &flags.shard_listen),
        resolver: Resolver::system(),
        ..ReportOptions::new(Vec::new())
    };
    report(shard.report_side(), reporting, &stop)?;
    side.spawn(async move {
        fake.run().await;
        Ok(())
    });
    let stop_http = Shutdown::new();
    probes.serve(&flags.diagnostics, &stop_http, &mut side);

    let died: Option<Error> = tokio::select! {
        () = stop.requested() => None,
        why = shard.task_ended() => Some(ShardError::TaskEnded(why).into()),
        why = coordinator.died() => Some(why.into()),
        ended = side.join_next() => Some(match ended {
            Some(Ok(Err(error))) => net(error),
            _ => ShardError::TaskEnded("the fake, or a server of probes".to_owned()).into(),
        }),
    };
    stop.request();
    shard.stop().await;
    coordinator.stop().await;
    stop_http.request();
    side.shutdown().await;
    telemetry.flush().await;
    died.map_or(Ok(()), Err)
}

async fn start_shard(
    flags: &AllInOneFlags,
    fake: Fake,
    metrics: Arc<ShardMetrics>,
    readiness: Readiness,
) -> Result<(Shard, SocketAddr, DataDir), Error> {
    let options = flags.shard();
    let opening = Opening { epoch_floor: 0, shared_provider: false };
    let data_dir =
        DataDir::open(flags.data_dir.join("shard"), opening).map_err(ShardError::from)?;
    let epoch = data_dir.epoch();
    let audit = Arc::new(Audit::open(epoch, None, &metrics).map_err(ShardError::Audit)?);
    let actuation = Actuation::open(
        Some(data_dir.actuation_file()),
        options.actuation.clone(),
        audit.clone(),
        &metrics,
    );
    let listener = flags.shard_listen.bind().await.map_err(net)?;
    let address = listener.local_addr()?;
    let supply = Arc::new(Stamped::new(fake, Identity::new(&options.id, epoch)));
    let shard = bigfleet_shard::start(Setup {
        options,
        epoch,
        supply,
        security: Security::Plaintext,
        listener,
        readiness,
        metrics,
        audit,
        actuation: Arc::new(actuation.map_err(ShardError::from)?),
        shared: None,
        own_thread: true,
    });
    Ok((shard, address, data_dir))
}

fn net(error: NetError) -> Error {
    ShardError::from(error).into()
}

/// Where somebody in this process, or on this machine, reaches a listener.
fn loopback(bound: SocketAddr, asked: &ListenAddr) -> String {
    if bound.ip().is_unspecified() {
        return format!("127.0.0.1:{}", bound.port());
    }
    match asked.host().parse::<std::net::IpAddr>() {
        Ok(_) => bound.to_string(),
        Err(_) => format!("{}:{}", asked.host(), bound.port()),
    }
}
