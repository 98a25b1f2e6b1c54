//! `top`: a live full-screen view. Shards' streams become events, events change the
//! model, and the screen is a pure function of the model.

mod feed;
mod model;
mod view;

use std::{io::IsTerminal as _, time::Duration};

use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::{
    sync::mpsc,
    time::{interval, timeout_at},
};

pub use self::{
    model::{Event, Model},
    view::text,
};
use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    shards::{self, Select, Shard},
    when,
};

/// Ages count on even if nothing comes.
const TICK: Duration = Duration::from_secs(1);
/// How long a key may take to be seen.
const KEYS: Duration = Duration::from_millis(200);
/// Streams at once.
const MOST: usize = 64;
/// A screen on paper.
const PAPER: (u16, u16) = (120, 40);

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// Print one screen and end
    #[arg(long)]
    once: bool,
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    if !args.once && !std::io::stdout().is_terminal() {
        return Err(Error::Usage(
            "standard output is not a terminal; use `top --once` or `status`".to_owned(),
        ));
    }
    let (shards, known) = watched(fleet, console, args).await?;
    let mut model = Model::new(fleet.security.tls().is_none());
    model.known = known;
    let (sender, mut events) = mpsc::channel(1024);
    for shard in &shards {
        model.apply(Event::Known(shard.name.clone(), shard.addr.clone()));
        tokio::spawn(feed::summaries(shard.clone(), sender.clone()));
        tokio::spawn(feed::decisions(shard.clone(), sender.clone()));
    }
    if args.once {
        return once(fleet, console, model, &mut events).await;
    }
    std::thread::spawn(move || keys(&sender));
    let mut terminal = ratatui::try_init()?;
    let ended = live(&mut terminal, model, &mut events).await;
    ratatui::restore();
    ended
}

/// The shards to watch, and how many there are.
async fn watched(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(Vec<Shard>, usize), Error> {
    if args.shard.shard.is_some() || args.shard.shard_addr.is_some() {
        return Ok((vec![shards::select(fleet, console, &args.shard).await?], 1));
    }
    let addresses = shards::addresses(fleet, console).await?;
    if addresses.len() > MOST {
        console.note(&format!(
            "note: watching {MOST} of {} shards; name one with --shard",
            addresses.len()
        ));
    }
    let dial = |(id, addr): (&String, &String)| {
        Shard::dial(Some(id), addr, &fleet.security, fleet.timeout)
    };
    let shards: Result<_, Error> = addresses.iter().take(MOST).map(dial).collect();
    Ok((shards?, addresses.len()))
}

async fn once(
    fleet: &Fleet,
    console: &mut Console,
    mut model: Model,
    events: &mut mpsc::Receiver<Event>,
) -> Result<(), Error> {
    let deadline = tokio::time::Instant::now() + fleet.timeout;
    while !model.is_complete() {
        match timeout_at(deadline, events.recv()).await {
            Ok(Some(event)) => model.apply(event),
            Ok(None) | Err(_) => break,
        }
    }
    model.apply(Event::Now(when::now()));
    console.text(&text(&model, PAPER.0, PAPER.1))?;
    if model.told().next().is_none() {
        return Err(Error::Failed(
            "no shard has told of a cycle; `bigfleetctl doctor` looks for the reason".to_owned(),
        ));
    }
    Ok(())
}

async fn live(
    terminal: &mut ratatui::DefaultTerminal,
    mut model: Model,
    events: &mut mpsc::Receiver<Event>,
) -> Result<(), Error> {
    let mut ticks = interval(TICK);
    while !model.is_over() {
        model.apply(Event::Now(when::now()));
        terminal.draw(|frame| view::draw(frame, &model))?;
        tokio::select! {
            _ = ticks.tick() => {}
            event = events.recv() => {
                let Some(event) = event else { break };
                model.apply(event);
                // One screen for all that came together.
                while let Ok(event) = events.try_recv() {
                    model.apply(event);
                }
            }
        }
    }
    Ok(())
}

/// Reads keys until nobody listens.
fn keys(sender: &mpsc::Sender<Event>) {
    while !sender.is_closed() {
        let Ok(true) = event::poll(KEYS) else { continue };
        let key = match event::read() {
            Ok(event::Event::Key(key)) if key.kind != KeyEventKind::Release => key,
            Ok(_) => continue,
            Err(_) => return,
        };
        let event = match key {
            KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. } => Event::Quit,
            KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. } => {
                Event::Quit
            }
            KeyEvent { code: KeyCode::Down | KeyCode::Char('j'), .. } => Event::Down,
            KeyEvent { code: KeyCode::Up | KeyCode::Char('k'), .. } => Event::Up,
            _ => continue,
        };
        if sender.blocking_send(event).is_err() {
            return;
        }
    }
}
