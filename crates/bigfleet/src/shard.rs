//! `bigfleet shard`.

use bigfleet_shard::{
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
        report(flags, &process)?;
        Ok::<(), Error>(process.until_stopped().await?)
    })?;
    // Whatever still waits on a stream has been told.
    runtime.shutdown_background();
    Ok(())
}

/// Reports to the coordinator, if there is one. Nothing waits for it.
fn report(flags: &ShardFlags, process: &Process) -> Result<(), Error> {
    let addresses: Vec<String> = flags.coordinators().map(str::to_owned).collect();
    if addresses.is_empty() {
        return Ok(());
    }
    let options = Options {
        addresses,
        interval: flags.coordinator.coordinator_heartbeat_interval,
        advertise_addr: flags.advertised(),
        provider_addr: flags.provider.provider_addr.clone(),
        security: process.security().clone(),
        resolver: Resolver::system(),
    };
    let client = Client::new(process.running().report_side(), options)?;
    tokio::spawn(supervise(client, process.shutdown().clone()));
    Ok(())
}
