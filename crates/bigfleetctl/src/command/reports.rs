//! `list-shard-reports`.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{PenaltyBucket, ShardReportSnapshot, Shortfall};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Format, Row},
    text, when,
};

/// A shortfall is escalated past this many cycles.
pub(super) const ESCALATED: i32 = 5;

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this shard
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    shard: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportRow {
    shard: String,
    cycle: i64,
    received: Option<String>,
    total_machines: i32,
    free_machines: i32,
    instance_types: BTreeMap<String, i32>,
    zones: BTreeMap<String, i32>,
    provider_address: String,
    shortfalls: Vec<ShortfallRow>,
    #[serde(skip)]
    received_at: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShortfallRow {
    priority: i32,
    requirements: String,
    deficit: BTreeMap<String, String>,
    age_cycles: i32,
    penalty_bucket: String,
}

impl From<Shortfall> for ShortfallRow {
    fn from(shortfall: Shortfall) -> Self {
        let penalty_bucket = shortfall.interruption_penalty_bucket;
        let named = PenaltyBucket::try_from(penalty_bucket).map(|bucket| bucket.as_str_name());
        Self {
            priority: shortfall.priority,
            requirements: text::requirements(&shortfall.requirements),
            deficit: shortfall.deficit.unwrap_or_default().resources.into_iter().collect(),
            age_cycles: shortfall.age_cycles,
            penalty_bucket: named.map_or_else(|_| penalty_bucket.to_string(), str::to_owned),
        }
    }
}

impl From<ShardReportSnapshot> for ReportRow {
    fn from(report: ShardReportSnapshot) -> Self {
        let summary = report.summary.unwrap_or_default();
        Self {
            shard: report.shard_id,
            cycle: report.cycle,
            received: when::exact(report.received_at_unix_ns),
            total_machines: summary.total_machines,
            free_machines: summary.free_machines,
            instance_types: summary.per_instance_type_counts.into_iter().collect(),
            zones: summary.per_zone_counts.into_iter().collect(),
            provider_address: summary.provider_address,
            shortfalls: report.shortfalls.into_iter().map(Into::into).collect(),
            received_at: report.received_at_unix_ns,
        }
    }
}

fn counts(counts: &BTreeMap<String, i32>) -> String {
    let pairs: Vec<String> = counts.iter().map(|(name, n)| format!("{name}={n}")).collect();
    text::or_dash(&pairs.join(" "))
}

impl Row for ReportRow {
    const HEAD: &'static [&'static str] =
        &["SHARD", "REPORT", "RECEIVED", "MACHINES", "FREE", "SHORTFALLS", "ESCALATED"];
    const WIDE: &'static [&'static str] = &["PROVIDER", "TYPES", "ZONES"];

    fn cells(&self) -> Vec<String> {
        let escalated = self.shortfalls.iter().filter(|row| row.age_cycles > ESCALATED).count();
        vec![
            self.shard.clone(),
            self.cycle.to_string(),
            when::instant(self.received_at),
            self.total_machines.to_string(),
            self.free_machines.to_string(),
            self.shortfalls.len().to_string(),
            escalated.to_string(),
        ]
    }

    fn wide(&self) -> Vec<String> {
        let provider = text::or_dash(&self.provider_address);
        vec![provider, counts(&self.instance_types), counts(&self.zones)]
    }
}

pub(super) async fn list(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let reports = fleet.coordinator.reports(&args.shard).await?;
    let rows: Vec<ReportRow> = reports.into_iter().map(Into::into).collect();
    if rows.is_empty() && matches!(fleet.format, Format::Table | Format::Wide) {
        console.note(
            "note: this leader has no reports; after a change of leaders they come back within \
             one report interval",
        );
    }
    output::list(console, fleet.format, &rows)
}
