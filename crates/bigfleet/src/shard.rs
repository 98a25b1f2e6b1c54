//! `bigfleet shard`.

use bigfleet_net::shutdown::Shutdown;
use bigfleet_shard::{
    ReportSide,
    flags::ShardFlags,
    process::{self, Process},
};
use bigfleet_shard_report::{Client, Options, Resolver, supervise};

use crate::error::Error;

/// Runs a shard until it is told to stop.
pub(crate) fn run(flags: &ShardFlags) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let process = process::run(flags).await?;
        if let Some(options) = reporting(flags, &process) {
            report(process.running().report_side(), options, process.shutdown())?;
        }
        Ok::<(), Error>(process.until_stopped().await?)
    })?;
    // Whatever still waits on a stream has been told.
    runtime.shutdown_background();
    Ok(())
}

/// How to report to the coordinator, if there is one.
fn reporting(flags: &ShardFlags, process: &Process) -> Option<Options> {
    let addresses: Vec<String> = flags.coordinators().map(str::to_owned).collect();
    (!addresses.is_empty()).then(|| Options {
        addresses,
        interval: flags.coordinator.coordinator_heartbeat_interval,
        advertise_addr: flags.advertised(),
        provider_addr: flags.provider.provider_addr.clone(),
        security: process.security().clone(),
        resolver: Resolver::system(),
    })
}

/// Reports until the stop. Nothing waits for it.
pub(crate) fn report(side: ReportSide, options: Options, stop: &Shutdown) -> Result<(), Error> {
    let client = Client::new(side, options)?;
    tokio::spawn(supervise(client, stop.clone()));
    Ok(())
}
