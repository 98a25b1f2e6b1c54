//! Where the dashboard is started.

use axum::Router;
use bigfleet_dashboard::{BasePath, Config, Dashboard, Holds, Target};
use bigfleet_net::{listen::ListenAddr, shutdown::Shutdown};

use crate::{
    Error,
    fleet::{Fleet, HOLD},
};

/// A dashboard that serves.
pub(crate) struct Board {
    /// Where it is on this machine.
    pub(crate) url: String,
    /// All that it serves, for whom another server lets in.
    pub(crate) router: Router,
}

/// Starts the dashboard for the fleet until the stop, under a path. It reads what any reader may,
/// and the metrics of the processes themselves.
pub(crate) async fn start(
    fleet: &Fleet,
    base_path: BasePath,
    stop: &Shutdown,
) -> Result<Board, Error> {
    let refused = |problem: String| Error::Flag { flag: "--listen", problem };
    let listen: ListenAddr = "127.0.0.1:0".parse().map_err(refused)?;
    let nodes = || fleet.coordinators.iter().chain(&fleet.shards);
    let dashboard = Dashboard::start(Config {
        listen,
        scrape: nodes().map(|node| Target::new(&node.part.id, &node.http)).collect(),
        coordinator: fleet.coordinators.iter().map(|node| node.addr.clone()).collect(),
        kubeconfig: Some(fleet.kubeconfig.clone()),
        security: fleet.reader.clone(),
        base_path,
        holds: Holds { on_demand: HOLD, spot: HOLD },
        ..Config::default()
    })
    .await?;
    let (url, router) = (dashboard.url(), dashboard.router());
    let until = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = dashboard.run(until).await {
            tracing::error!(%error, "the dashboard ended");
        }
    });
    Ok(Board { url, router })
}
