//! What `status` prints: a pure function of what was collected.

use std::fmt::Write as _;

use super::{ShardState, Status};
use crate::{
    command::raft::ReplicaRow,
    output::{Row as _, table},
    text,
    when::{self, STALE},
};

/// Rows of the longer lists that fit a screen.
const MOST: usize = 20;
const SHORTFALLS: usize = 10;

/// The whole screen.
#[must_use]
pub fn screen(status: &Status) -> String {
    let mut out = headline(status);
    out += &replicas(status);
    out += &shards(status);
    out += &shortfalls(status);
    out += "\nALERTS";
    if status.alerts.is_empty() {
        out += "  none seen from here\n";
    } else {
        let rows = status
            .alerts
            .iter()
            .map(|alert| vec![format!("  {}", alert.level), alert.text.clone()]);
        let _ = write!(out, "  {}\n{}", status.alerts.len(), table(rows));
    }
    if !status.missing.is_empty() {
        out += "\nMISSING\n";
        for part in &status.missing {
            let _ = writeln!(out, "  {part}");
        }
    }
    out
}

fn leader(status: &Status) -> Option<&ReplicaRow> {
    status.replicas.iter().find(|replica| replica.error.is_none() && replica.role == "leader")
}

fn headline(status: &Status) -> String {
    let mut out = String::new();
    let _ = match leader(status) {
        Some(leader) => {
            let fleet = text::or_dash(&leader.fleet_id);
            writeln!(out, "FLEET {fleet}  leader {} (term {})", leader.node, leader.term)
        }
        None => writeln!(out, "FLEET —  NO LEADER"),
    };
    let context = status.context.as_deref().map(|name| format!("  context {name}"));
    let _ = writeln!(out, "as of {}{}", when::instant(status.now), context.unwrap_or_default());
    if status.plaintext {
        out += "UNAUTHENTICATED TRANSPORT: plaintext, identities are not checked\n";
    }
    out
}

fn replicas(status: &Status) -> String {
    let answered = status.replicas.iter().filter(|replica| replica.error.is_none()).count();
    let voters = leader(status).map_or(0, |leader| leader.voters.len());
    let head = ReplicaRow::HEAD.iter().map(|&head| head.to_owned()).collect();
    let rows = std::iter::once(head).chain(status.replicas.iter().map(ReplicaRow::cells));
    let rows = rows.map(indented);
    let total = status.replicas.len();
    format!(
        "\nCOORDINATOR  {answered} of {total} replicas answer, {voters} voters\n{}",
        table(rows)
    )
}

fn shards(status: &Status) -> String {
    if status.shards.is_empty() {
        return "\nSHARDS  none is known\n".to_owned();
    }
    let paused =
        status.shards.iter().filter(|shard| shard.mode.as_deref() == Some("PAUSED")).count();
    let dry = status.shards.iter().filter(|shard| shard.mode.as_deref() == Some("DRY_RUN")).count();
    let mut out = format!("\nSHARDS  {}, {paused} paused, {dry} in dry-run", status.shards.len());
    if status.rebuilding {
        out += "; reports are rebuilding: this leader has heard no shard yet";
    }
    out.push('\n');
    let head =
        ["SHARD", "HEARTBEAT", "MODE", "REPORT", "MACHINES", "FREE", "SHORTFALLS", "ADDRESS"];
    let head = head.map(str::to_owned).to_vec();
    // Those that need somebody's eye first.
    let mut shown: Vec<&ShardState> = status.shards.iter().collect();
    shown.sort_by_key(|shard| (is_well(shard, status.now), shard.shard.clone()));
    let rows = shown.iter().take(MOST).map(|shard| row(shard, status.now));
    out += &table(std::iter::once(head).chain(rows).map(indented));
    if shown.len() > MOST {
        let _ = writeln!(out, "  and {} more; see `list-shards`", shown.len() - MOST);
    }
    out
}

fn is_well(shard: &ShardState, now: i64) -> bool {
    let fresh = now.saturating_sub(shard.heartbeat_unix_nanos) <= STALE;
    let acts = shard.mode.as_deref() == Some("ACTIVE");
    fresh && acts && shard.report.as_ref().is_some_and(|report| report.shortfalls == 0)
}

fn row(shard: &ShardState, now: i64) -> Vec<String> {
    let none = || "—".to_owned();
    let age = now.saturating_sub(shard.heartbeat_unix_nanos);
    let heartbeat = when::age(now, shard.heartbeat_unix_nanos);
    let stale = if shard.heartbeat_unix_nanos != 0 && age > STALE { " stale" } else { "" };
    let mode = match (&shard.mode, shard.mode_reason.as_str()) {
        (Some(mode), reason) if mode != "ACTIVE" && !reason.is_empty() => {
            format!("{mode} ({})", text::cut(reason, 30))
        }
        (mode, _) => mode.clone().unwrap_or_else(|| "?".to_owned()),
    };
    let figures = shard.report.as_ref().map_or_else(
        || [none(), none(), none(), none()],
        |report| {
            let escalated = match report.escalated {
                0 => String::new(),
                count => format!(" ({count} escalated)"),
            };
            let shortfalls = format!("{}{escalated}", report.shortfalls);
            [
                report.cycle.to_string(),
                report.machines.to_string(),
                report.free.to_string(),
                shortfalls,
            ]
        },
    );
    let mut cells = vec![shard.shard.clone(), format!("{heartbeat}{stale}"), mode];
    cells.extend(figures);
    cells.push(shard.address.clone());
    cells
}

fn shortfalls(status: &Status) -> String {
    if status.shortfalls.is_empty() {
        let known = status.shards.iter().any(|shard| shard.report.is_some());
        return format!("\nSHORTFALLS  {}\n", if known { "none" } else { "not known" });
    }
    let head = ["SHARD", "PRIORITY", "CYCLES", "SHORT", "REQUIREMENTS"].map(str::to_owned).to_vec();
    let rows = status.shortfalls.iter().take(SHORTFALLS).map(|row| {
        vec![
            row.shard.clone(),
            row.priority.to_string(),
            row.age_cycles.to_string(),
            row.deficit.clone(),
            text::cut(&row.requirements, 60),
        ]
    });
    let list = table(std::iter::once(head).chain(rows).map(indented));
    format!("\nSHORTFALLS  {}, highest priority first\n{list}", status.shortfalls.len())
}

fn indented(mut cells: Vec<String>) -> Vec<String> {
    if let Some(first) = cells.first_mut() {
        first.insert_str(0, "  ");
    }
    cells
}
