//! The fleet in a terminal, for people without a browser.

use std::{sync::Arc, time::Duration};

use ratatui::{
    Frame,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Paragraph, Row, Table},
};

use crate::{
    Error,
    cluster::workload::{Class, Workload},
    eyes::Decision,
    scenario::{
        self,
        record::{Progress, Run, Standing},
        view::View,
    },
    show::{Piece, Show},
    state::Told,
};

/// Between two pictures.
const PACE: Duration = Duration::from_millis(200);

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Quit,
    Up,
    Down,
    Play,
    Reset,
}

/// Shows the fleet until `q`.
pub(crate) async fn run(show: &Arc<Show>, url: &str) -> Result<(), Error> {
    let (keys, mut pressed) = tokio::sync::mpsc::channel(16);
    // It blocks, and ends with the process at the latest.
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(key) = key(&event)
                && keys.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    let mut terminal = ratatui::try_init()?;
    let mut selected = 0;
    let ended = loop {
        let drawn = terminal.draw(|frame| draw(frame, show, url, selected));
        if let Err(error) = drawn {
            break Err(error.into());
        }
        let key = tokio::time::timeout(PACE, pressed.recv()).await;
        match key {
            Err(_) => {}
            Ok(None | Some(Key::Quit)) => break Ok(()),
            Ok(Some(Key::Up)) => selected = usize::saturating_sub(selected, 1),
            Ok(Some(Key::Down)) => selected = (selected + 1).min(scenario::all().len() - 1),
            Ok(Some(Key::Reset)) => drop(show.clone().try_play(Piece::Reset).await),
            Ok(Some(Key::Play)) => {
                let scenario = &scenario::all()[selected];
                show.clone().try_play(Piece::Scenario(scenario)).await;
            }
        }
    };
    ratatui::restore();
    ended
}

fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Up | KeyCode::Char('k') => Some(Key::Up),
        KeyCode::Down | KeyCode::Char('j') => Some(Key::Down),
        KeyCode::Enter => Some(Key::Play),
        KeyCode::Char('r') => Some(Key::Reset),
        _ => None,
    }
}

fn draw(frame: &mut Frame<'_>, show: &Show, url: &str, selected: usize) {
    let view = View::of(&show.fleet);
    let [head, body, feed] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(18), Constraint::Length(10)])
            .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Length(30), Constraint::Min(40)]).areas(body);
    let [clusters, run] =
        Layout::vertical([Constraint::Length(6), Constraint::Min(8)]).areas(right);
    let text = format!(
        "BigFleet demo  ${:.2}/h  guide {url}  enter plays, r resets, q ends",
        view.dollars()
    );
    frame.render_widget(Paragraph::new(text), head);
    let lines: Vec<Line<'_>> = scenario::all()
        .iter()
        .enumerate()
        .map(|(at, scenario)| {
            let mark = match show.results(scenario.name) {
                results if results.last.is_none() => ' ',
                results if results.failed == 0 => '✓',
                _ => '✗',
            };
            let line = Line::from(format!("{mark} {}", scenario.title));
            match at == selected {
                true => line.style(Style::new().add_modifier(Modifier::REVERSED)),
                false => line,
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("scenarios")), left);
    frame.render_widget(demand(show, &view), clusters);
    let lines: Vec<Line<'_>> = told(&show.run()).into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("run")), run);
    let decisions = show.fleet.eyes.decisions();
    let lines: Vec<Line<'_>> = decisions.iter().rev().take(8).map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("decisions")), feed);
}

fn line(decision: &Decision) -> Line<'static> {
    Line::from(Told::of(decision).text)
}

fn demand(show: &Show, view: &View) -> Table<'static> {
    let rows = show.fleet.clusters.iter().enumerate().map(|(at, cluster)| {
        let pods = |class| {
            let pods = view.pods(at, Workload::Plain(class));
            format!("{}/{}", pods.running, pods.wanted)
        };
        let mut cells = vec![cluster.name.clone()];
        cells.extend(Class::ALL.map(pods));
        cells.push(cluster.nodes().to_string());
        Row::new(cells)
    });
    let widths = [Constraint::Length(12); 5];
    Table::new(rows.collect::<Vec<_>>(), widths)
        .header(Row::new(["cluster", "batch", "production", "critical", "nodes"]))
        .block(Block::bordered().title("pods"))
}

/// A run, as lines; a failed claim says so.
fn told(run: &Run) -> Vec<String> {
    let steps = run.steps.iter().map(|step| {
        let mark = match step.state {
            Progress::Running => "…",
            Progress::Done => "✓",
            Progress::Failed => "✗ failed:",
        };
        format!("{mark} {} {}", step.text, step.detail)
    });
    let claims = run.claims.iter().map(|claim| {
        let mark = match claim.state {
            Standing::Pending => "open:",
            Standing::Passed => "shown:",
            Standing::Failed => "FAILED:",
        };
        format!("{mark} {} {}", claim.text, claim.detail)
    });
    std::iter::once(format!("{}: {:?}", run.name, run.state)).chain(steps).chain(claims).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_mean_what_the_head_line_says() {
        let press = |code, modifiers| key(&Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Char('q'), none), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(press(KeyCode::Enter, none), Some(Key::Play));
        assert_eq!(press(KeyCode::Char('r'), none), Some(Key::Reset));
        assert_eq!(press(KeyCode::Char('x'), none), None);
    }

    #[test]
    fn a_failed_claim_says_so() {
        let mut run = Run::begin("move", &["one"], 0);
        run.settle("one", false, "not so".to_owned());
        run.end(None, 1);
        assert!(told(&run).contains(&"FAILED: one not so".to_owned()), "{:?}", told(&run));
    }
}
