//! The fleet in a terminal, for people without a browser. What is seen is a [`Picture`], and the
//! [`screen`] is a pure function of it.

mod keys;
mod picture;
mod screen;

use std::{io::IsTerminal as _, sync::Arc, time::Duration};

use bigfleet_net::shutdown::Shutdown;
use keys::{Chosen, Key};
use picture::Picture;
use ratatui::crossterm::event;
use tokio::sync::mpsc;

use crate::{
    Error,
    cluster::workload::{Class, MOST, Workload},
    scenario,
    show::{Piece, Show},
};

/// Between two pictures.
const PACE: Duration = Duration::from_millis(200);

/// Refuses what is no terminal, before a fleet is started for it.
pub(crate) fn check() -> Result<(), Error> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    let problem = "standard input and output are no terminal; leave it out and open the guide in \
                   a browser, or use --headless"
        .to_owned();
    Err(Error::Flag { flag: "--tui", problem })
}

/// Shows the fleet until `q`, or the stop.
pub(crate) async fn run(show: &Arc<Show>, url: &str, stop: &Shutdown) -> Result<(), Error> {
    let (sender, mut pressed) = mpsc::channel(16);
    // It blocks, and ends with the process at the latest.
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(key) = keys::key(&event)
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    let mut terminal = ratatui::try_init()?;
    let mut chosen = Chosen::default();
    let ended = loop {
        let picture = Picture::of(show, url, chosen);
        if let Err(error) = terminal.draw(|frame| screen::draw(frame, &picture)) {
            break Err(error.into());
        }
        let key = tokio::select! {
            key = pressed.recv() => key,
            () = tokio::time::sleep(PACE) => continue,
            () = stop.requested() => break Ok(()),
        };
        match key {
            None | Some(Key::Quit) => break Ok(()),
            Some(Key::Play) => {
                let scenario = &scenario::all()[chosen.scenario];
                show.clone().try_play(Piece::Scenario(scenario)).await;
            }
            Some(Key::Reset) => {
                show.clone().try_play(Piece::Reset).await;
            }
            Some(Key::More) => change(show, chosen, |level| (level + 1).min(MOST)),
            Some(Key::Less) => change(show, chosen, |level| level.saturating_sub(1)),
            Some(Key::Move(step)) => chosen = chosen.moved(step),
        }
    };
    ratatui::restore();
    ended
}

/// Changes the level that is chosen, unless a scenario has the fleet.
fn change(show: &Show, chosen: Chosen, how: impl Fn(u32) -> u32) {
    if show.is_playing() {
        return;
    }
    let workload = Workload::Plain(Class::ALL[chosen.class]);
    let level = show.fleet.clusters[chosen.cluster].wanted(workload);
    show.fleet.demand(chosen.cluster, workload, how(level));
}
