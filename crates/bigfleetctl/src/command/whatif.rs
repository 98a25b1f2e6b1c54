//! `whatif`: one hypothetical need against the snapshot of now.

mod need_file;

use std::{fmt::Write as _, fs, io::Read as _, path::PathBuf};

use bigfleet_wire::v1alpha1::{ListSessionsRequest, WhatIfPick, WhatIfRequest, WhatIfResponse};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    fleet::Fleet,
    output::{self, Format, Row},
    reason,
    shards::{self, Select, Shard},
    text,
};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    shard: Select,
    /// The need as YAML or JSON; - reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Cluster that would ask; the first that is connected if none is named
    #[arg(long, value_name = "ID")]
    cluster: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PickRow {
    machine: String,
    state: String,
    effective_cost: f64,
    cluster: String,
    priority: i32,
}

impl From<WhatIfPick> for PickRow {
    fn from(pick: WhatIfPick) -> Self {
        Self {
            machine: pick.machine_id,
            state: text::state(pick.state),
            effective_cost: pick.effective_cost,
            cluster: pick.cluster_id,
            priority: pick.priority,
        }
    }
}

impl Row for PickRow {
    const HEAD: &'static [&'static str] = &["MACHINE", "STATE", "COST", "CLUSTER", "PRIORITY"];

    fn cells(&self) -> Vec<String> {
        let cost = if self.effective_cost < 0.0 {
            "—".to_owned()
        } else {
            format!("{:.4}", self.effective_cost)
        };
        let priority = self.priority.to_string();
        vec![self.machine.clone(), self.state.clone(), cost, text::or_dash(&self.cluster), priority]
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    cycle: i64,
    satisfied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    deficit: String,
    same_domain: String,
    dollars_per_hour: f64,
    picks: Vec<PickRow>,
    victims: Vec<PickRow>,
}

impl From<WhatIfResponse> for Outcome {
    fn from(answer: WhatIfResponse) -> Self {
        let reason = reason::of(answer.unmet_reason, answer.unmet_detail).name;
        Self {
            cycle: answer.cycle,
            satisfied: answer.satisfied,
            reason: (!answer.satisfied).then_some(reason),
            deficit: text::resources(answer.residual_deficit.as_ref()),
            same_domain: answer.same_domain,
            dollars_per_hour: answer.dollars_per_hour,
            picks: answer.picks.into_iter().map(Into::into).collect(),
            victims: answer.victims.into_iter().map(Into::into).collect(),
        }
    }
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
) -> Result<(), Error> {
    let path = &args.file;
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        console.input.read_to_string(&mut text)?;
        text
    } else {
        fs::read_to_string(path).map_err(Error::file(path))?
    };
    let need =
        need_file::parse(&text).map_err(|problem| Error::Input { path: path.clone(), problem })?;
    let cluster = args.cluster.as_deref().unwrap_or_default();
    let shard = shards::serving(fleet, console, &args.shard, cluster).await?;
    let mut rpc = shard.observe();
    let cluster_id = match &args.cluster {
        Some(cluster) => cluster.clone(),
        None => connected(&shard).await?,
    };
    let request = WhatIfRequest { cluster_id, need: Some(need) };
    let answer = shard.answer("whatif", rpc.what_if(shard.request(request))).await?;
    let advice = reason::of(answer.unmet_reason, answer.unmet_detail).action;
    let outcome = Outcome::from(answer);
    match fleet.format {
        Format::Json | Format::Yaml => console.text(&output::document(fleet.format, &outcome)?),
        Format::Table | Format::Wide => console.text(&screen(&outcome, advice, fleet.format)?),
    }
}

/// A cluster whose operator is there: nothing is bought for others.
async fn connected(shard: &Shard) -> Result<String, Error> {
    let mut rpc = shard.observe();
    let request = shard.request(ListSessionsRequest::default());
    let list = shard.answer("sessions", rpc.list_sessions(request)).await?;
    let first = list.sessions.into_iter().find(|session| session.connected);
    first.map(|session| session.cluster_id).ok_or_else(|| {
        let name = &shard.name;
        Error::Failed(format!("no cluster is connected to shard {name}; name one with --cluster"))
    })
}

fn screen(outcome: &Outcome, advice: &str, format: Format) -> Result<String, Error> {
    let mut out = String::new();
    let cycle = outcome.cycle;
    let _ = match outcome.reason {
        None => writeln!(out, "would be SATISFIED as of cycle {cycle}"),
        Some(reason) => writeln!(
            out,
            "would be UNMET as of cycle {cycle}: {reason}\n  {advice}\n  short of: {}",
            outcome.deficit
        ),
    };
    if !outcome.same_domain.is_empty() {
        let _ = writeln!(out, "in domain {}", outcome.same_domain);
    }
    let bought = text::dollars(outcome.dollars_per_hour);
    let _ = writeln!(out, "machines to buy cost {bought} per hour (provider-declared prices)");
    let _ = write!(
        out,
        "\ntakes {} machines\n{}",
        outcome.picks.len(),
        output::rendered(format, &outcome.picks)?
    );
    if !outcome.victims.is_empty() {
        let victims = output::rendered(format, &outcome.victims)?;
        let _ = write!(out, "\npreempts {} machines\n{victims}", outcome.victims.len());
    }
    Ok(out)
}
