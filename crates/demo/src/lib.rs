//! The guided demo (experience chapter §8): a whole fleet on one machine.
//!
//! One process tree from one binary. Replicas of the coordinator and shards are children, so
//! that a scenario can really kill them; clouds, clusters, operators and pod controllers live
//! in this process; all of them speak gRPC over mTLS on loopback. [`leash`] sees to it that
//! nothing outlives the demo.
//!
//! A scenario is played on a stage: it establishes what it needs, acts, and settles its own
//! claims against what the engine tells any reader. What it cannot show it has not shown.

mod cluster;
mod dashboard;
mod door;
mod error;
mod eyes;
pub mod flags;
mod fleet;
mod front;
mod guide;
mod guided;
mod headless;
mod hosted;
mod kubernetes;
pub mod leash;
mod metrics;
mod part;
mod pki;
mod ports;
mod scenario;
mod secret;
mod show;
mod state;
mod supply;
mod terminal;
mod tools;
mod tui;

use std::sync::Arc;

use bigfleet_net::{shutdown::Shutdown, telemetry::Telemetry};
pub use error::Error;
use flags::DemoFlags;
use guide::Server;
use show::Show;

/// Runs the demo until it is told to stop, or until everything was played.
///
/// # Errors
///
/// When it does not start, when a part dies that should not, when a claim failed.
pub async fn run(flags: &DemoFlags) -> Result<(), Error> {
    flags.check()?;
    if flags.tui {
        tui::check()?;
    }
    let telemetry = Telemetry::init("bigfleet-demo", &flags.log(), &flags.diagnostics)?;
    let stop = Shutdown::on_signal()?;
    if flags.hosted {
        let ended = hosted::run(flags, &stop).await;
        telemetry.flush().await;
        return ended;
    }
    // First of all: whoever has it already is told at once.
    let server = match flags.headless {
        true => None,
        false => Some(Server::bind(&flags.listen).await?),
    };
    let show = tokio::select! {
        show = Show::open(flags.seed, !flags.headless, flags.kubernetes) => show?,
        () = stop.requested() => return Ok(()),
    };
    let show = Arc::new(show);
    let played = match server {
        None => headless::play(&show, flags, &stop).await,
        Some(server) => guided::run(&show, server, flags, &stop).await,
    };
    let closed = show.close().await;
    telemetry.flush().await;
    played.and(closed)
}
