//! `bigfleet coordinator`.

use bigfleet_coordinator::{flags::CoordinatorFlags, process};

use crate::error::Error;

/// Runs a replica until it is told to stop, or cannot go on.
pub(crate) fn run(flags: &CoordinatorFlags) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let process = process::run(flags).await?;
        Ok::<(), Error>(process.until_stopped().await?)
    });
    // Whatever still waits on a call has been told.
    runtime.shutdown_background();
    ended
}
