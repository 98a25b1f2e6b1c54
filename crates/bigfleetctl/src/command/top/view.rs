//! The screen as a function of the model.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::CycleSummary;
use ratatui::{
    Frame, Terminal,
    backend::TestBackend,
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Borders, Cell, Paragraph, Row, Table},
};

use super::model::{Model, Pane};
use crate::{
    text,
    when::{self, STALE},
};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Columns of the list: head, width, and how wide a screen must be for it.
const COLUMNS: &[(&str, u16, u16)] = &[
    ("SHARD", 14, 0),
    ("STATE", 28, 0),
    ("CYCLE", 9, 0),
    ("MS", 7, 120),
    ("MACHINES", 9, 80),
    ("NEEDS", 7, 120),
    ("UNMET", 6, 80),
    ("SHORT", 6, 120),
    ("SESSIONS", 9, 120),
    ("QUEUE", 6, 120),
    ("$/H", 9, 100),
];

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let listed = u16::try_from(model.shards.len()).unwrap_or(u16::MAX).saturating_add(3);
    let most = frame.area().height / 3;
    let [head, list, detail, ticker, keys] = Layout::vertical([
        Constraint::Length(if model.plaintext { 2 } else { 1 }),
        Constraint::Length(listed.min(most.max(4))),
        Constraint::Length(12),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    headline(frame, head, model);
    shards(frame, list, model);
    one(frame, detail, model);
    decisions(frame, ticker, model);
    frame.render_widget(Line::raw("↑↓ choose a shard   q quit"), keys);
}

/// The screen as text, for tests and paper.
#[must_use]
pub fn text(model: &Model, width: u16, height: u16) -> String {
    // Drawing into memory cannot fail.
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(drawn) = terminal.draw(|frame| draw(frame, model));
    lines(drawn.buffer)
}

fn lines(buffer: &Buffer) -> String {
    let row = |y| {
        let cells = (0..buffer.area.width).filter_map(|x| buffer.cell((x, y)));
        let line: String = cells.map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    };
    (0..buffer.area.height).map(row).collect()
}

fn headline(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let line = format!("bigfleet  {}  {}", when::instant(model.now), sums(model));
    let mut lines = vec![Line::styled(line, BOLD)];
    if model.plaintext {
        lines.push(Line::raw("UNAUTHENTICATED TRANSPORT: plaintext, identities are not checked"));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Of the shards that tell, and how many those are. Where none does, nothing is known: a 0
/// would say that there is nothing.
fn sums(model: &Model) -> String {
    let told = model.told().count();
    let shards = match (told, model.known) {
        (1, 1) => "1 shard".to_owned(),
        (told, known) if told == known => format!("{known} shards"),
        (told, known) => format!("{told} of {known} shards"),
    };
    if told == 0 {
        return format!("{shards} answer  — machines  $—/h declared  — needs unmet");
    }
    let machines: i32 = model.told().map(machine_count).sum();
    let dollars: f64 = model.told().map(hourly).fold(0.0, |all, one| all + one);
    let unmet: i32 = model.told().map(|summary| summary.needs_unmet).sum();
    format!("{shards}  {machines} machines  ${dollars:.2}/h declared  {unmet} needs unmet")
}

fn machine_count(summary: &CycleSummary) -> i32 {
    summary.machines.iter().map(|row| row.count).sum()
}

/// The empty sum of floats is −0, which nobody wants to read.
fn hourly(summary: &CycleSummary) -> f64 {
    summary.dollars_per_hour.values().fold(0.0, |all, one| all + one)
}

fn cycle_millis(summary: &CycleSummary) -> f64 {
    let micros: i64 = summary.phase_micros.values().sum();
    f64::from(i32::try_from(micros).unwrap_or(i32::MAX)) / 1000.0
}

/// Active, or what holds the shard; with its age if that is too old.
fn state(pane: &Pane, now: i64) -> String {
    let Some(summary) = &pane.summary else {
        return pane
            .lost
            .as_ref()
            .map_or_else(|| "waiting".to_owned(), |why| format!("LOST: {why}"));
    };
    let mode = match (summary.fenced, summary.actuation_paused, summary.dry_run) {
        (true, ..) => "FENCED",
        (_, true, _) => "PAUSED",
        (.., true) => "DRY-RUN",
        _ => "active",
    };
    let age = now.saturating_sub(summary.computed_at_unix_nanos);
    match &pane.lost {
        Some(why) => format!("LOST {} ago: {why}", when::span(age)),
        None if age > STALE => format!("{mode}, STALE {}", when::span(age)),
        None => mode.to_owned(),
    }
}

fn shards(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let shown = |(_, _, least): &(&str, u16, u16)| area.width >= *least;
    let row = |(at, (id, pane)): (usize, (&String, &Pane))| {
        let mut cells = vec![id.clone(), state(pane, model.now)];
        if let Some(summary) = &pane.summary {
            let dollars = hourly(summary);
            cells.extend([
                summary.cycle.to_string(),
                format!("{:.1}", cycle_millis(summary)),
                machine_count(summary).to_string(),
                summary.needs.to_string(),
                summary.needs_unmet.to_string(),
                summary.shortfalls.values().sum::<i32>().to_string(),
                summary.sessions.to_string(),
                summary.queue_depth.to_string(),
                format!("{dollars:.2}"),
            ]);
        }
        let cells = cells.into_iter().zip(COLUMNS).filter(|(_, column)| shown(column));
        let row = Row::new(cells.map(|(cell, _)| Cell::from(cell)));
        if at == model.selected { row.style(REVERSED) } else { row }
    };
    // The selected one is always on the screen.
    let room = usize::from(area.height.saturating_sub(3)).max(1);
    let skipped = (model.selected + 1).saturating_sub(room);
    let rows = model.shards.iter().enumerate().map(row).skip(skipped);
    let columns = || COLUMNS.iter().filter(|column| shown(column));
    let widths = columns().map(|(_, width, _)| Constraint::Length(*width));
    let head = columns().map(|(head, ..)| *head);
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(BOLD))
        .block(Block::new().borders(Borders::ALL).title("shards"));
    frame.render_widget(table, area);
}

fn one(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some((id, pane)) = model.selection() else { return };
    let Some(summary) = &pane.summary else {
        let block = Block::new().borders(Borders::ALL).title(id.clone());
        let why = pane.lost.as_deref().unwrap_or("no cycle has been seen yet");
        return frame
            .render_widget(Paragraph::new(format!("{}: {why}", pane.address)).block(block), area);
    };
    let age = when::age(model.now, summary.computed_at_unix_nanos);
    let [left, middle, right] = Layout::horizontal([
        Constraint::Percentage(42),
        Constraint::Percentage(29),
        Constraint::Percentage(29),
    ])
    .areas(area);
    let title = format!("{id}: cycle {}, {age} ago, epoch {}", summary.cycle, summary.shard_epoch);
    let inventory = inventory(summary).block(Block::new().borders(Borders::ALL).title(title));
    frame.render_widget(inventory, left);
    let phases = pairs("phase µs", summary.phase_micros.iter());
    frame.render_widget(phases, middle);
    let counts = summary.actions.iter().map(|(kind, n)| (kind.clone(), n.to_string()));
    let short = summary.shortfalls.iter();
    let short = short.map(|(class, n)| (format!("short {class}"), n.to_string()));
    let reconciled = when::age(model.now, summary.last_reconcile_unix_nanos);
    let both: Vec<(String, String)> =
        counts.chain(short).chain([("last reconcile".to_owned(), reconciled)]).collect();
    frame.render_widget(
        pairs("actions, shortfalls", both.iter().map(|(name, value)| (name, value))),
        right,
    );
}

fn pairs<'a, V: ToString + 'a>(
    title: &'static str,
    rows: impl Iterator<Item = (&'a String, &'a V)>,
) -> Table<'static> {
    let rows = rows.map(|(name, value)| Row::new([name.clone(), value.to_string()]));
    let rows: Vec<Row<'static>> = rows.collect();
    Table::new(rows, [Constraint::Min(12), Constraint::Length(10)])
        .block(Block::new().borders(Borders::ALL).title(title))
}

/// Machines by state, and of which capacity.
fn inventory(summary: &CycleSummary) -> Table<'static> {
    let mut states: BTreeMap<i32, BTreeMap<i32, i32>> = BTreeMap::new();
    for row in &summary.machines {
        *states.entry(row.state).or_default().entry(row.capacity_type).or_default() += row.count;
    }
    let rows = states.into_iter().map(|(state, kinds)| {
        let all: i32 = kinds.values().sum();
        let of =
            |(kind, n): (&i32, &i32)| format!("{} {n}", text::capacity_type(*kind).to_lowercase());
        let of: Vec<String> = kinds.iter().map(of).collect();
        Row::new([text::state(state).to_lowercase(), all.to_string(), of.join(", ")])
    });
    let rows: Vec<Row<'static>> = rows.collect();
    Table::new(rows, [Constraint::Length(12), Constraint::Length(7), Constraint::Min(10)])
}

fn decisions(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let line = |(shard, record): &(String, bigfleet_wire::v1alpha1::DecisionRecord)| {
        let error =
            if record.error.is_empty() { String::new() } else { format!(": {}", record.error) };
        Line::raw(format!(
            "{} {shard} {} {} for {} (priority {}) {} {}{error}",
            when::instant(record.time_unix_nanos),
            record.kind,
            text::or_dash(&record.machine_id),
            text::or_dash(&record.cluster_id),
            record.priority,
            text::or_dash(&record.reason),
            record.outcome,
        ))
    };
    let lines: Vec<Line<'_>> = model.decisions.iter().map(line).collect();
    let block = Block::new().borders(Borders::ALL).title("decisions, newest first");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
