//! `needs`: what clusters ask of a shard, with the last cycle's verdicts.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{
    InspectNeedsHeader, InspectNeedsRequest, NeedView, inspect_needs_response::Frame,
};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Format, Row},
    reason,
    shards::{self, Select, Shard},
    text, when,
};

/// Verdicts older than this are stale, in nanoseconds.
const STALE: i64 = 20 * when::SECOND;

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// Only needs of this cluster
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    cluster: String,
    /// Only needs that are unmet
    #[arg(long)]
    unmet: bool,
    /// At most so many; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NeedRow {
    cluster: String,
    priority: i32,
    satisfied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    machines: i32,
    age_cycles_unmet: i32,
    deficit: BTreeMap<String, String>,
    requirements: String,
    interruption_penalty: String,
    reclamation_penalty: String,
    group: String,
    fingerprint: String,
}

impl From<NeedView> for NeedRow {
    fn from(view: NeedView) -> Self {
        let need = view.need.unwrap_or_default();
        let reason = reason::of(view.unmet_reason, view.unmet_detail).name;
        Self {
            cluster: view.cluster_id,
            priority: need.priority,
            satisfied: view.satisfied,
            reason: (!view.satisfied).then_some(reason),
            detail: view.detail_text,
            machines: view.claimed_machine_count,
            age_cycles_unmet: view.age_cycles_unmet,
            deficit: view.residual_deficit.unwrap_or_default().resources.into_iter().collect(),
            requirements: text::requirements(&need.requirements),
            interruption_penalty: text::penalty(need.interruption_penalty_bucket),
            reclamation_penalty: text::penalty(need.reclamation_penalty_bucket),
            group: text::group(&need.group),
            fingerprint: view.profile_fingerprint,
        }
    }
}

impl Row for NeedRow {
    const HEAD: &'static [&'static str] =
        &["CLUSTER", "PRIORITY", "STATUS", "MACHINES", "SHORT", "AGE", "REQUIREMENTS"];
    const WIDE: &'static [&'static str] = &["INT", "REC", "GROUP", "FINGERPRINT"];

    fn cells(&self) -> Vec<String> {
        let short: Vec<String> =
            self.deficit.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        vec![
            self.cluster.clone(),
            self.priority.to_string(),
            self.reason.unwrap_or("satisfied").to_owned(),
            self.machines.to_string(),
            text::or_dash(&short.join(" ")),
            self.age_cycles_unmet.to_string(),
            self.requirements.clone(),
        ]
    }

    fn wide(&self) -> Vec<String> {
        vec![
            self.interruption_penalty.clone(),
            self.reclamation_penalty.clone(),
            text::or_dash(&self.group),
            self.fingerprint.clone(),
        ]
    }
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let shard = shards::serving(fleet, console, &args.shard, &args.cluster).await?;
    let asked = if args.unmet { 0 } else { args.limit };
    let (header, needs) = inspect(&shard, &args.cluster, asked).await?;
    let wanted = needs.into_iter().filter(|need| !args.unmet || !need.satisfied);
    let most = if args.limit == 0 { usize::MAX } else { args.limit as usize };
    let rows: Vec<NeedRow> = wanted.take(most).map(Into::into).collect();
    if matches!(fleet.format, Format::Table | Format::Wide) {
        console.line(&headline(&header, rows.len(), when::now()))?;
    }
    output::list(console, fleet.format, &rows)
}

/// The verdicts of the last cycle.
pub(super) async fn inspect(
    shard: &Shard,
    cluster: &str,
    limit: u32,
) -> Result<(InspectNeedsHeader, Vec<NeedView>), Error> {
    let what = "needs";
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let request = shard.request(InspectNeedsRequest { cluster_id: cluster.to_owned(), limit });
    let mut rpc = shard.read();
    let mut frames = shard.answer(what, rpc.inspect_needs(request)).await?;
    let (mut header, mut needs) = (InspectNeedsHeader::default(), Vec::new());
    let refused = |status| shard.refused(what, &status);
    while let Some(frame) = frames.message().await.map_err(refused)? {
        match frame.frame {
            Some(Frame::Header(first)) => header = first,
            Some(Frame::Need(need)) => needs.push(need),
            None => {}
        }
    }
    Ok((header, needs))
}

/// Where the data is from, and how old it is.
fn headline(header: &InspectNeedsHeader, shown: usize, now: i64) -> String {
    if header.cycle == 0 {
        return "no cycle has been computed yet: empty because the shard is starting".to_owned();
    }
    let age = now.saturating_sub(header.computed_at_unix_nanos);
    let stale = if age > STALE { ", stale" } else { "" };
    format!(
        "cycle {}, {} ago{stale}: {shown} of {} needs",
        header.cycle,
        when::span(age),
        header.total_needs
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_tells_starting_from_empty_and_old_from_new() {
        let second = 1_000_000_000;
        let header =
            |cycle, at| InspectNeedsHeader { cycle, computed_at_unix_nanos: at, total_needs: 0 };
        assert!(headline(&header(0, 0), 0, second).contains("starting"));
        assert_eq!(
            headline(&header(7, 100 * second), 0, 103 * second),
            "cycle 7, 3s ago: 0 of 0 needs"
        );
        let old = headline(&header(7, 100 * second), 0, 121 * second);
        assert_eq!(old, "cycle 7, 21s ago, stale: 0 of 0 needs");
    }
}
