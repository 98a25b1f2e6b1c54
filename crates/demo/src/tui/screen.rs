//! A picture as a screen.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Cell, Paragraph, Row, Table},
};

use super::picture::{Bar, Picture, Process};
use crate::{
    cluster::workload::Class,
    scenario::record::{Progress, Run, Standing, Verdict},
};

const KEYS: &str =
    "↑↓ scenario · enter play · tab cluster · ←→ class · +- demand · r reset · q end";

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture) {
    let [head, body, feed, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(16),
        Constraint::Length(8),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Length(28), Constraint::Min(40)]).areas(body);
    let [supply, clusters, run] =
        Layout::vertical([Constraint::Length(7), Constraint::Length(6), Constraint::Min(4)])
            .areas(right);
    let processes = picture.processes.iter().map(process).collect::<Vec<_>>().join("  ");
    let head_line = match &picture.problem {
        Some(problem) => format!("PROBLEM: {problem}"),
        None => format!("BigFleet demo  ${:.2}/h  {processes}", picture.dollars),
    };
    let terminal = format!("BIGFLEET_CONFIG={}  KUBECONFIG: beside it", picture.config);
    frame.render_widget(Paragraph::new(vec![head_line.into(), terminal.into()]), head);
    boxed(frame, left, "scenarios", scenarios(picture));
    let bars = picture.tiers.iter().map(|tier| bar(tier, supply.width)).collect();
    boxed(frame, supply, "machines: █ work  ▒ move  ░ idle  · none yet", bars);
    frame.render_widget(demand(picture), clusters);
    let room = usize::from(run.height.saturating_sub(2));
    let lines = picture.run.as_ref().map(|it| told(it, room)).unwrap_or_default();
    boxed(frame, run, "run", lines);
    let decisions = picture.decisions.iter().map(|text| Line::from(text.as_str())).collect();
    boxed(frame, feed, "decisions, newest first", decisions);
    frame.render_widget(Paragraph::new(format!("{KEYS} · {}", picture.url)), foot);
}

fn boxed(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn process(process: &Process) -> String {
    let short = process.name.replace("coordinator-", "c").replace("shard-", "s");
    match (process.running, process.leads) {
        (false, _) => format!("{short} DOWN"),
        (true, true) => format!("{short} leads"),
        (true, false) => short,
    }
}

fn scenarios(picture: &Picture) -> Vec<Line<'static>> {
    let line = |(at, (title, last)): (usize, &(&'static str, Option<Verdict>))| {
        let running = picture.playing == Some(*title);
        let mark = match last {
            _ if running => '…',
            None | Some(Verdict::Running) => ' ',
            Some(Verdict::Passed) => '✓',
            Some(Verdict::Failed) => '✗',
        };
        let line = Line::from(format!("{mark} {title}"));
        if at == picture.chosen.scenario { line.style(chosen()) } else { line }
    };
    picture.scenarios.iter().enumerate().map(line).collect()
}

fn chosen() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// One character a machine, as long as there is room.
fn bar(tier: &Bar, width: u16) -> Line<'static> {
    let absent = tier.total - tier.working - tier.moving - tier.idle;
    let parts = [('█', tier.working), ('▒', tier.moving), ('░', tier.idle), ('·', absent)];
    let text: String =
        parts.iter().flat_map(|(mark, count)| std::iter::repeat_n(*mark, *count)).collect();
    let room = usize::from(width).saturating_sub(22);
    let shown: String = text.chars().take(room).collect();
    Line::from(vec![
        Span::from(format!("{:<10}{:>3}/{:<4}", tier.name, tier.working, tier.total)),
        Span::from(shown),
    ])
}

fn demand(picture: &Picture) -> Table<'static> {
    let rows = picture.clusters.iter().enumerate().map(|(at, card)| {
        let mut cells = vec![Cell::from(card.name.clone())];
        for (class, (running, wanted)) in card.pods.iter().enumerate() {
            let cell = Cell::from(format!("{running}/{wanted}"));
            let here = (at, class) == (picture.chosen.cluster, picture.chosen.class);
            cells.push(if here { cell.style(chosen()) } else { cell });
        }
        cells.push(Cell::from(card.nodes.to_string()));
        cells.push(Cell::from(card.unmet.to_string()));
        Row::new(cells)
    });
    let [batch, production, critical] = Class::ALL.map(Class::name);
    // All of them in a terminal of 80 columns.
    let widths = [9, 6, 10, 8, 5, 5].map(Constraint::Length);
    Table::new(rows, widths)
        .header(Row::new(["cluster", batch, production, critical, "nodes", "unmet"]))
        .block(Block::bordered().title("pods that run / wanted"))
}

/// A run, as lines; a failed claim says so. The newest where not all fit.
fn told(run: &Run, room: usize) -> Vec<Line<'static>> {
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
    let state = match run.state {
        Verdict::Running => "running",
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
    };
    let below: Vec<String> = steps.chain(claims).collect();
    let hidden = below.len().saturating_sub(room.saturating_sub(1));
    let head = std::iter::once(format!("{}: {state}", run.name));
    head.chain(below.into_iter().skip(hidden)).map(Line::from).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;
    use crate::tui::{keys::Chosen, picture::Card};

    fn picture() -> Picture {
        let mut run = Run::begin("move", &["$/h unchanged"], 0);
        run.step(crate::scenario::record::Phase::Act, "demand in A drops by 8", 1);
        Picture {
            url: "http://127.0.0.1:8090/".to_owned(),
            config: "/tmp/bigfleet-demo-x/config.yaml".to_owned(),
            chosen: Chosen { scenario: 0, cluster: 1, class: 0 },
            dollars: 1.38,
            problem: None,
            tiers: vec![Bar { name: "owned", working: 3, idle: 2, moving: 1, total: 8 }],
            clusters: ["cluster-a", "cluster-b"]
                .map(|name| Card {
                    name: name.to_owned(),
                    pods: [(3, 4), (6, 6), (0, 0)],
                    nodes: 9,
                    unmet: 1,
                })
                .to_vec(),
            scenarios: vec![("Move", None), ("Burst", Some(Verdict::Failed))],
            playing: Some("Move"),
            run: Some(run),
            decisions: vec!["metal-owned-001 joins cluster-a".to_owned()],
            processes: vec![
                Process { name: "coordinator-1".to_owned(), running: true, leads: true },
                Process { name: "shard-0".to_owned(), running: false, leads: false },
            ],
        }
    }

    fn text(picture: &Picture, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, picture)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_screen_shows_what_is_in_the_picture() {
        let screen = text(&picture(), (120, 40));
        for part in [
            "$1.38/h",
            "c1 leads",
            "s0 DOWN",
            "… Move",
            "✗ Burst",
            "owned       3/8   ███▒░░··",
            "cluster-b 3/4",
            "BIGFLEET_CONFIG=/tmp/bigfleet-demo-x/config.yaml",
            "move: running",
            "… demand in A drops by 8",
            "open: $/h unchanged",
            "metal-owned-001 joins cluster-a",
            "enter play",
        ] {
            assert!(screen.contains(part), "{part:?} is not in\n{screen}");
        }
    }

    #[test]
    fn a_failed_claim_and_a_problem_say_so() {
        let mut picture = picture();
        let mut run = picture.run.take().unwrap();
        run.settle("$/h unchanged", false, "$2.00".to_owned());
        run.end(None, 2);
        picture.run = Some(run);
        picture.problem = Some("shard-0 ended by itself".to_owned());
        let screen = text(&picture, (120, 40));
        for part in ["move: FAILED", "FAILED: $/h unchanged $2.00", "PROBLEM: shard-0 ended"] {
            assert!(screen.contains(part), "{part:?} is not in\n{screen}");
        }
    }

    #[test]
    fn what_is_chosen_stands_out() {
        let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
        terminal.draw(|frame| draw(frame, &picture())).unwrap();
        let buffer = terminal.backend().buffer();
        let area = buffer.area;
        let reversed: String = (0..area.height)
            .flat_map(|y| (0..area.width).map(move |x| (x, y)))
            .filter_map(|at| buffer.cell(at))
            .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
            .map(|cell| cell.symbol())
            .collect();
        assert_eq!(reversed.trim_end(), "… Move3/4");
    }

    #[test]
    fn a_small_terminal_shows_which_cluster_is_which() {
        let screen = text(&picture(), (80, 24));
        for part in ["cluster-a 3/4    6/6        0/0      9     1", "unmet"] {
            assert!(screen.contains(part), "{part:?} is not in\n{screen}");
        }
    }

    #[test]
    fn no_terminal_is_too_small() {
        for size in [(1, 1), (20, 5), (80, 24), (400, 100)] {
            text(&picture(), size);
        }
    }
}
