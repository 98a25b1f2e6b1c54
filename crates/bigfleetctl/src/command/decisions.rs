//! `decisions`: what a shard decided, and what became of it.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{DecisionRecord, WatchDecisionsRequest};
use serde::Serialize;
use tokio::time::sleep;
use tonic::{Code, Status};

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    kept::{self, Kept},
    output::{self, Format, Row},
    shards::{self, Select, Shard},
    text, when,
};

/// Between two attempts to follow on.
const AGAIN: Duration = Duration::from_secs(1);

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// Go on as decisions are made
    #[arg(long, short)]
    follow: bool,
    /// Only the last so many of those kept; 0 is all
    #[arg(long, value_name = "N", default_value_t = 100)]
    tail: usize,
    /// Only after this sequence number
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<i64>,
    /// Only of these kinds: Bootstrap, Provision, Reclaim, Preempt, Delete, SetActuation
    #[arg(long, value_delimiter = ',')]
    kind: Vec<String>,
    /// Only of this cluster
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    cluster: String,
    /// Only of this machine
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    machine: String,
    /// Only with this outcome
    #[arg(long, default_value = "", hide_default_value = true)]
    outcome: String,
    /// Only for needs of this priority or more
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_priority: i32,
}

/// One decision, or what became of one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRow {
    sequence: i64,
    cycle: i64,
    time: Option<String>,
    kind: String,
    machine: String,
    cluster: String,
    priority: i32,
    preemptor_priority: i32,
    effective_cost: Option<f64>,
    runner_up_cost: Option<f64>,
    reason: String,
    outcome: String,
    grace_seconds: i64,
    error: String,
    of_sequence: i64,
    gap: bool,
    fingerprint: String,
    group: String,
    #[serde(skip)]
    at: i64,
}

impl From<DecisionRecord> for DecisionRow {
    fn from(record: DecisionRecord) -> Self {
        Self {
            sequence: record.sequence,
            cycle: record.cycle,
            time: when::exact(record.time_unix_nanos),
            kind: record.kind,
            machine: record.machine_id,
            cluster: record.cluster_id,
            priority: record.priority,
            preemptor_priority: record.preemptor_priority,
            effective_cost: text::amount(record.effective_cost),
            runner_up_cost: text::amount(record.runner_up_cost),
            reason: record.reason,
            outcome: record.outcome,
            grace_seconds: record.grace_seconds,
            error: record.error,
            of_sequence: record.of_sequence,
            gap: record.gap,
            fingerprint: record.profile_fingerprint,
            group: text::group(&record.group),
            at: record.time_unix_nanos,
        }
    }
}

impl Row for DecisionRow {
    const HEAD: &'static [&'static str] = &[
        "SEQUENCE", "TIME", "KIND", "MACHINE", "CLUSTER", "PRIORITY", "REASON", "OUTCOME", "ERROR",
    ];
    const WIDE: &'static [&'static str] = &["CYCLE", "OF", "COST", "RUNNER_UP", "FINGERPRINT"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.sequence.to_string(),
            when::instant(self.at),
            self.kind.clone(),
            text::or_dash(&self.machine),
            text::or_dash(&self.cluster),
            self.priority.to_string(),
            text::or_dash(&self.reason),
            self.outcome.clone(),
            text::or_dash(&text::cut(&self.error, 60)),
        ]
    }

    fn wide(&self) -> Vec<String> {
        let cost =
            |cost: Option<f64>| cost.map_or_else(|| "—".to_owned(), |cost| format!("{cost:.4}"));
        vec![
            self.cycle.to_string(),
            if self.of_sequence == 0 { "—".to_owned() } else { self.of_sequence.to_string() },
            cost(self.effective_cost),
            cost(self.runner_up_cost),
            text::or_dash(&self.fingerprint),
        ]
    }
}

/// The filter of the flags, after a sequence number.
fn request(args: &Args, after_sequence: i64) -> WatchDecisionsRequest {
    WatchDecisionsRequest {
        after_sequence,
        kinds: args.kind.clone(),
        cluster_id: args.cluster.clone(),
        machine_id: args.machine.clone(),
        outcome: args.outcome.clone(),
        min_priority: args.min_priority,
    }
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let shard = shards::serving(fleet, console, &args.shard, &args.cluster).await?;
    // 0 would mean from now on; nothing was ever numbered 0, so all that is kept is meant.
    let after = args.after.filter(|after| *after > 0).unwrap_or(kept::OLDEST);
    let most = (args.tail > 0).then_some(args.tail);
    let wanted = request(args, after);
    let all = WatchDecisionsRequest { after_sequence: after, ..Default::default() };
    let wanted = (wanted != all).then_some(&wanted);
    let Kept { records, last } = kept::read(&shard, after, most, wanted).await?;
    let rows: Vec<DecisionRow> = records.into_iter().map(Into::into).collect();
    if !args.follow {
        return output::list(console, fleet.format, &rows);
    }
    if matches!(fleet.format, Format::Table | Format::Wide) {
        output::list(console, fleet.format, &rows)?;
    } else {
        rows.iter().try_for_each(|row| lines(console, fleet.format, row))?;
    }
    tokio::select! {
        ended = follow(&shard, console, args, last, fleet.format) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Goes on where it was, also over a shard that restarts or finds us slow.
async fn follow(
    shard: &Shard,
    console: &mut Console,
    args: &Args,
    mut last: i64,
    format: Format,
) -> Result<(), Error> {
    let passes = |status: &Status| {
        matches!(
            status.code(),
            Code::Unavailable | Code::ResourceExhausted | Code::Cancelled | Code::Unknown
        )
    };
    loop {
        let mut rpc = shard.observe();
        let ended = match rpc.watch_decisions(request(args, last)).await {
            Err(status) => Some(status),
            Ok(stream) => {
                let mut stream = stream.into_inner();
                loop {
                    match stream.message().await {
                        Ok(Some(record)) => {
                            last = record.sequence;
                            if record.gap {
                                console.note("note: older records than the next were lost");
                            }
                            lines(console, format, &record.into())?;
                        }
                        Ok(None) => break None,
                        Err(status) => break Some(status),
                    }
                }
            }
        };
        match ended {
            Some(status) if !passes(&status) => return Err(shard.refused("decisions", &status)),
            _ => sleep(AGAIN).await,
        }
    }
}

/// One record as it comes: a line of JSON, else cells.
fn lines(console: &mut Console, format: Format, row: &DecisionRow) -> Result<(), Error> {
    match format {
        Format::Table => console.line(&row.cells().join("  ")),
        Format::Wide => console.line(&[row.cells(), row.wide()].concat().join("  ")),
        Format::Json | Format::Yaml => {
            let line = serde_json::to_string(row)
                .map_err(|error| Error::Failed(format!("cannot write JSON: {error}")))?;
            console.line(&line)
        }
    }
}
