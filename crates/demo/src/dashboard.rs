//! Where the dashboard is started.

use bigfleet_dashboard::{Config, Dashboard, Holds, Target};
use bigfleet_net::{listen::ListenAddr, shutdown::Shutdown};

use crate::{
    Error,
    fleet::{Fleet, HOLD},
};

/// Starts the dashboard for the fleet until the stop, and says where it is. It reads what any
/// reader may, and the metrics of the processes themselves.
pub(crate) async fn start(fleet: &Fleet, stop: &Shutdown) -> Result<String, Error> {
    let refused = |problem: String| Error::Flag { flag: "--listen", problem };
    let listen: ListenAddr = "127.0.0.1:0".parse().map_err(refused)?;
    let nodes = || fleet.coordinators.iter().chain(&fleet.shards);
    let dashboard = Dashboard::start(Config {
        listen,
        scrape: nodes().map(|node| Target::new(&node.part.id, &node.http)).collect(),
        coordinator: fleet.coordinators.iter().map(|node| node.addr.clone()).collect(),
        kubeconfig: Some(fleet.kubeconfig.clone()),
        security: fleet.reader.clone(),
        holds: Holds { on_demand: HOLD, spot: HOLD },
        ..Config::default()
    })
    .await?;
    let url = dashboard.url();
    let until = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = dashboard.run(until).await {
            tracing::error!(%error, "the dashboard ended");
        }
    });
    Ok(url)
}
