//! The demo with an audience: the guide and the dashboard until somebody has seen enough.

use std::{io::Write as _, sync::Arc, time::Duration};

use bigfleet_dashboard::BasePath;
use bigfleet_net::shutdown::Shutdown;

use crate::{
    Error, dashboard,
    flags::DemoFlags,
    guide::Server,
    show::{Piece, Show},
    tools, tui,
};

/// How long pages that are open may take to let go.
const LEAVE: Duration = Duration::from_secs(2);

/// Serves until the stop.
pub(crate) async fn run(
    show: &Arc<Show>,
    server: Server,
    flags: &DemoFlags,
    stop: &Shutdown,
) -> Result<(), Error> {
    let url = server.url.clone();
    let board = dashboard::start(&show.fleet, BasePath::default(), stop).await?.url;
    let scenarios = flags.scenarios()?;
    if !flags.tui {
        let mut out = std::io::stdout();
        writeln!(out, "guide      {url}")?;
        writeln!(out, "dashboard  {board}/")?;
        let (config, tool) = (show.fleet.config.display(), tools::call("bigfleetctl"));
        writeln!(out, "terminal   BIGFLEET_CONFIG={config} {tool} top")?;
        let (config, tool) = (show.fleet.kubeconfig.display(), tools::call("kubectl-bigfleet"));
        let names: Vec<&str> = show.fleet.clusters.iter().map(|it| it.name.as_str()).collect();
        writeln!(out, "clusters   KUBECONFIG={config} {tool} why")?;
        writeln!(out, "           with --context {}", names.join(" or "))?;
        writeln!(out, "ready in {:.1} s; Ctrl-C ends it", show.started_in.as_secs_f64())?;
    }
    let playing = async {
        show.play(Piece::Reset).await;
        for scenario in scenarios {
            show.play(Piece::Scenario(scenario)).await;
        }
        std::future::pending::<Result<(), Error>>().await
    };
    let screen = async {
        match flags.tui {
            true => tui::run(show, &url, stop).await,
            false => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        served = server.serve(show.clone(), Some(board), stop.clone()) => served,
        never = playing => never,
        () = show.look_after() => Ok(()),
        left = screen => left,
        () = async { stop.requested().await; tokio::time::sleep(LEAVE).await } => Ok(()),
    };
    stop.request();
    ended
}
