//! `status`: one screen that works with parts missing, and says what is.

mod alerts;
mod screen;

use std::time::Duration;

use bigfleet_wire::v1alpha1::{GetActuationRequest, ShardRegistryEntry, ShardReportSnapshot};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

pub use self::{
    alerts::{Alert, of as alerts},
    screen::screen,
};
use super::raft::ReplicaRow;
use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Format},
    shards::{self, AT_ONCE, Shard},
    text, when,
};

/// A shard that does not answer must not hold up the screen.
const PATIENCE: Duration = Duration::from_secs(2);

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Everything the screen shows.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// When it was collected.
    #[serde(skip)]
    pub now: i64,
    /// The context in force.
    pub context: Option<String>,
    /// Whether identities are not checked.
    pub plaintext: bool,
    /// Every replica, those that are silent too.
    pub replicas: Vec<ReplicaRow>,
    /// Every registered shard.
    pub shards: Vec<ShardState>,
    /// The worst shortfalls, by priority.
    pub shortfalls: Vec<ShortfallState>,
    /// Parts that could not be had, and why.
    pub missing: Vec<String>,
    /// What somebody should look at.
    pub alerts: Vec<Alert>,
    /// Whether a leader has no report of any of its shards yet.
    pub rebuilding: bool,
    /// When our own certificate expires, in unix seconds.
    #[serde(skip)]
    pub certificate_expires: Option<i64>,
}

/// One shard.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardState {
    /// Its id.
    pub shard: String,
    /// Where it is.
    pub address: String,
    /// When it last reported, in unix nanoseconds; 0 if this leader has not heard it.
    pub heartbeat_unix_nanos: i64,
    /// ACTIVE, PAUSED or DRY_RUN; none if it did not say.
    pub mode: Option<String>,
    /// Since when, in unix nanoseconds.
    pub mode_since_unix_nanos: i64,
    /// Why.
    pub mode_reason: String,
    /// Its latest report.
    pub report: Option<ReportState>,
}

/// The figures of a report.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportState {
    /// The cycle it is of.
    pub cycle: i64,
    /// All machines.
    pub machines: i32,
    /// Idle and speculative ones.
    pub free: i32,
    /// Shortfalls, at most 100.
    pub shortfalls: usize,
    /// Those that are escalated.
    pub escalated: usize,
}

/// One shortfall.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortfallState {
    /// Of which shard.
    pub shard: String,
    /// Its priority.
    pub priority: i32,
    /// For how many cycles.
    pub age_cycles: i32,
    /// What is missing.
    pub deficit: String,
    /// Of which shape.
    pub requirements: String,
}

pub(super) async fn run(fleet: &mut Fleet, console: &mut Console, _: &Args) -> Result<(), Error> {
    let (status, failure) = collect(fleet, console).await;
    match fleet.format {
        Format::Table | Format::Wide => console.text(&screen(&status))?,
        Format::Json | Format::Yaml => {
            console.text(&output::document(fleet.format, &status)?)?;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Asks everybody; the error is that of the coordinator's leader, if it gave no list.
pub(super) async fn collect(fleet: &mut Fleet, console: &mut Console) -> (Status, Option<Error>) {
    let mut status = Status {
        context: fleet.context.clone(),
        plaintext: fleet.security.tls().is_none(),
        certificate_expires: fleet.security.tls().map(|tls| tls.leaf_expiry()),
        ..Status::default()
    };
    let replicas = fleet.coordinator.every_status().await;
    status.replicas = replicas.into_iter().map(Into::into).collect();
    let (shards, failure) = shards::listed(fleet, console).await;
    if let Some(error) = &failure {
        let used = if shards.is_empty() { "none is known" } else { "showing those last known" };
        status.missing.push(format!("list of shards: {error}; {used}"));
    }
    if failure.is_none() {
        match fleet.coordinator.reports("").await {
            Ok(reports) => {
                status.rebuilding = reports.is_empty() && !shards.is_empty();
                status.shards = join(shards, &reports);
                status.shortfalls = shortfalls(&reports);
            }
            Err(error) => {
                status.missing.push(format!("reports of shards: {error}"));
                status.shards = join(shards, &[]);
            }
        }
    } else {
        status.shards = join(shards, &[]);
    }
    brakes(fleet, &mut status).await;
    status.now = when::now();
    status.alerts = alerts(&status);
    (status, failure)
}

fn join(shards: Vec<ShardRegistryEntry>, reports: &[ShardReportSnapshot]) -> Vec<ShardState> {
    let state = |entry: ShardRegistryEntry| {
        let report = reports.iter().find(|report| report.shard_id == entry.shard_id);
        ShardState {
            shard: entry.shard_id,
            address: entry.address,
            heartbeat_unix_nanos: entry.last_heartbeat_unix_ns,
            report: report.map(report_state),
            ..ShardState::default()
        }
    };
    shards.into_iter().map(state).collect()
}

fn report_state(report: &ShardReportSnapshot) -> ReportState {
    let summary = report.summary.clone().unwrap_or_default();
    let escalated = |age: i32| age > super::reports::ESCALATED;
    ReportState {
        cycle: report.cycle,
        machines: summary.total_machines,
        free: summary.free_machines,
        shortfalls: report.shortfalls.len(),
        escalated: report.shortfalls.iter().filter(|one| escalated(one.age_cycles)).count(),
    }
}

fn shortfalls(reports: &[ShardReportSnapshot]) -> Vec<ShortfallState> {
    let of = |report: &ShardReportSnapshot| {
        let shard = report.shard_id.clone();
        let state = move |one: &bigfleet_wire::v1alpha1::Shortfall| ShortfallState {
            shard: shard.clone(),
            priority: one.priority,
            age_cycles: one.age_cycles,
            deficit: text::resources(one.deficit.as_ref()),
            requirements: text::requirements(&one.requirements),
        };
        report.shortfalls.iter().map(state).collect::<Vec<_>>()
    };
    let mut all: Vec<ShortfallState> = reports.iter().flat_map(of).collect();
    all.sort_by(|one, other| {
        let worst = |row: &ShortfallState| (-i64::from(row.priority), -i64::from(row.age_cycles));
        worst(one).cmp(&worst(other)).then_with(|| one.shard.cmp(&other.shard))
    });
    all
}

/// Asks each shard how it is held.
async fn brakes(fleet: &Fleet, status: &mut Status) {
    let ask = |(at, shard): (usize, &ShardState)| {
        let (id, addr) = (shard.shard.clone(), shard.address.clone());
        async move {
            let within = fleet.timeout.min(PATIENCE);
            let shard = Shard::dial(Some(&id), &addr, &fleet.security, within)?;
            let mut rpc = shard.admin();
            let request = shard.request(GetActuationRequest {});
            let state = shard.answer("actuation", rpc.get_actuation(request)).await?;
            Ok::<_, Error>((at, state))
        }
    };
    let asked: Vec<_> = status.shards.iter().enumerate().map(ask).collect();
    let answers: Vec<_> = stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
    for answer in answers {
        match answer {
            Ok((at, state)) => {
                let shard = &mut status.shards[at];
                shard.mode = Some(text::mode(state.mode));
                shard.mode_since_unix_nanos = state.since_unix_nanos;
                shard.mode_reason = state.reason;
            }
            Err(error) => status.missing.push(format!("brake: {error}")),
        }
    }
    status.missing.sort();
}
