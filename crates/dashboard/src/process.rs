//! `bigfleet-web-dashboard`, the process.

use bigfleet_net::{shutdown::Shutdown, telemetry::Telemetry};

use crate::{
    Dashboard, Error,
    flags::{Command, Flags},
    reader_role,
};

/// Runs until a signal, then in order to the end.
pub async fn run(flags: &Flags) -> Result<(), Error> {
    if let Some(Command::ReaderRole) = flags.command {
        print!("{}", reader_role::manifests());
        return Ok(());
    }
    let telemetry = Telemetry::init("bigfleet-web-dashboard", &flags.log, &flags.diagnostics)?;
    let shutdown = Shutdown::on_signal()?;
    let dashboard = Dashboard::start(flags.config()?).await?;
    let ended = dashboard.run(shutdown).await;
    telemetry.flush().await;
    ended
}
