//! The brake: `pause`, `resume`, `shadow`. Each shard is called directly; with every
//! coordinator down, where it last was.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{ActuationMode, ActuationState, SetActuationRequest};
use clap::ArgGroup;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    Error,
    cli::Consent,
    console::Console,
    fleet::Fleet,
    known::{self, Addresses},
    output::{self, Row},
    shards::Shard,
    text, when,
};

/// Flags.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true).args(["shard", "shard_addr", "all"]))]
pub struct Args {
    /// Why; shown by every shard and kept in its audit log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Ids of shards
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', conflicts_with = "all")]
    shard: Vec<String>,
    /// host:port of shards, without asking anybody
    #[arg(long, value_name = "ADDR", num_args = 1.., value_delimiter = ',', conflicts_with = "all")]
    shard_addr: Vec<String>,
    /// Every shard
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What shards are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `resume`
    Active,
    /// `pause`
    Paused,
    /// `shadow`
    DryRun,
}

impl Mode {
    fn wire(self) -> ActuationMode {
        match self {
            Self::Active => ActuationMode::Active,
            Self::Paused => ActuationMode::Paused,
            Self::DryRun => ActuationMode::DryRun,
        }
    }

    fn plan(self, shard: &str, addr: &str) -> String {
        match self {
            Self::Active => format!("let shard {shard} at {addr} act again"),
            Self::Paused => format!("pause shard {shard} at {addr}: it decides, and does nothing"),
            Self::DryRun => {
                format!(
                    "put shard {shard} at {addr} in shadow mode: it decides and logs, and does nothing"
                )
            }
        }
    }
}

fn reason(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 256 {
        return Err("it must have 1 to 256 bytes".to_owned());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerRow {
    shard: String,
    address: String,
    mode: String,
    set_mode: String,
    since: Option<String>,
    set_by: String,
    reason: String,
    forced_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    at: i64,
    #[serde(skip)]
    registered: bool,
    #[serde(skip)]
    denied: bool,
}

impl AnswerRow {
    fn new(shard: String, address: String, answer: Result<ActuationState, Error>) -> Self {
        let denied = matches!(answer, Err(Error::Denied(_)));
        let (state, error) = match answer {
            Ok(state) => (state, None),
            Err(error) => (ActuationState::default(), Some(error.to_string())),
        };
        Self {
            shard,
            address,
            mode: text::mode(state.mode),
            set_mode: text::mode(state.requested_mode),
            since: when::exact(state.since_unix_nanos),
            set_by: state.set_by,
            reason: state.reason,
            forced_by: state.forced_by,
            error,
            at: state.since_unix_nanos,
            registered: true,
            denied,
        }
    }
}

impl Row for AnswerRow {
    const HEAD: &'static [&'static str] = &["SHARD", "ADDRESS", "MODE", "SINCE", "ANSWER"];
    const WIDE: &'static [&'static str] = &["SET_BY", "REASON"];

    fn cells(&self) -> Vec<String> {
        let (mode, answer) = match &self.error {
            Some(error) => ("—".to_owned(), error.clone()),
            None if self.mode != self.set_mode => {
                (self.mode.clone(), format!("held in this mode by its {}", self.forced_by))
            }
            None => (self.mode.clone(), "ok".to_owned()),
        };
        vec![self.shard.clone(), self.address.clone(), mode, when::instant(self.at), answer]
    }

    fn wide(&self) -> Vec<String> {
        vec![text::or_dash(&self.set_by), text::or_dash(&self.reason)]
    }
}

pub(super) async fn run(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &Args,
    mode: Mode,
) -> Result<(), Error> {
    let cached = wanted(args, &fleet.known.read());
    let mut answers = BTreeMap::new();
    let listed = if args.consent.wants_plan() {
        let listed = list(fleet, args).await;
        let mut plan: Addresses = cached;
        plan.extend(listed.clone().unwrap_or_default());
        let steps: Vec<String> = plan.iter().map(|(id, addr)| mode.plan(id, addr)).collect();
        nobody(args, &plan, listed.as_ref().err())?;
        if !console.consent(args.consent, &steps)? {
            return Ok(());
        }
        tell(fleet, args, mode, &plan, &mut answers).await;
        listed
    } else {
        // Nobody waits for a coordinator: shards that are known hear at once.
        let (timeout, security) = (fleet.timeout, fleet.security.clone());
        let asks = asks(args);
        let listing = async {
            if asks { fleet.coordinator.shards_within(timeout).await } else { Ok(Vec::new()) }
        };
        let telling = tell_with(&security, timeout, args, mode, &cached);
        let (listed, told) = tokio::join!(listing, telling);
        answers.extend(told);
        let listed = keep(fleet, args, listed);
        let fresh = listed.clone().unwrap_or_default();
        let news = fresh.iter().filter(|(id, addr)| cached.get(*id) != Some(addr));
        let news: Addresses = news.map(|(id, addr)| (id.clone(), addr.clone())).collect();
        tell(fleet, args, mode, &news, &mut answers).await;
        nobody(args, &answers, listed.as_ref().err())?;
        listed
    };
    finish(fleet, console, args, answers, &listed)
}

/// Shards that the flags name, of those whose address is known.
fn wanted(args: &Args, known: &Addresses) -> Addresses {
    let named = |id: &String| args.all || args.shard.contains(id);
    let of_id = known.iter().filter(|(id, _)| named(id));
    let of_addr = args.shard_addr.iter().map(|addr| (addr.clone(), addr.clone()));
    of_id.map(|(id, addr)| (id.clone(), addr.clone())).chain(of_addr).collect()
}

/// Addresses alone are not looked up.
fn asks(args: &Args) -> bool {
    args.all || !args.shard.is_empty()
}

type Listed = Result<Addresses, String>;

/// What the coordinator says; nothing is asked when addresses alone are given.
async fn list(fleet: &mut Fleet, args: &Args) -> Listed {
    if !asks(args) {
        return Ok(wanted(args, &Addresses::new()));
    }
    let listed = fleet.coordinator.shards().await;
    keep(fleet, args, listed)
}

fn keep(
    fleet: &Fleet,
    args: &Args,
    listed: Result<Vec<bigfleet_wire::v1alpha1::ShardRegistryEntry>, Error>,
) -> Listed {
    if !asks(args) {
        return Ok(wanted(args, &Addresses::new()));
    }
    let listed = listed.map_err(|error| error.to_string())?;
    // The brake goes on whether or not this can be kept.
    let _ = fleet.known.keep(&listed);
    Ok(wanted(args, &known::of_list(&listed)))
}

/// Refuses to succeed at nothing.
fn nobody<T>(
    args: &Args,
    found: &BTreeMap<String, T>,
    problem: Option<&String>,
) -> Result<(), Error> {
    let missing: Vec<&str> =
        args.shard.iter().filter(|id| !found.contains_key(*id)).map(String::as_str).collect();
    let why = problem.map_or_else(String::new, |problem| format!(" ({problem})"));
    if !missing.is_empty() {
        return Err(Error::Failed(format!(
            "no address is known of shard {}{why}; give it with --shard-addr",
            missing.join(", ")
        )));
    }
    if found.is_empty() {
        return Err(Error::Failed(format!(
            "no shard is known{why}; give addresses with --shard-addr"
        )));
    }
    Ok(())
}

async fn tell(
    fleet: &Fleet,
    args: &Args,
    mode: Mode,
    shards: &Addresses,
    answers: &mut BTreeMap<String, AnswerRow>,
) {
    answers.extend(tell_with(&fleet.security, fleet.timeout, args, mode, shards).await);
}

/// Tells all at once.
async fn tell_with(
    security: &bigfleet_net::tls::Security,
    timeout: std::time::Duration,
    args: &Args,
    mode: Mode,
    shards: &Addresses,
) -> BTreeMap<String, AnswerRow> {
    let until = Instant::now() + timeout;
    let one = |(id, addr): (&String, &String)| {
        let (id, addr) = (id.clone(), addr.clone());
        async move {
            // An address that was given in place of an id says nothing about who is there.
            let named = (id != addr).then_some(id.as_str());
            let answer = match Shard::dial(named, &addr, security, until - Instant::now()) {
                Err(error) => Err(error),
                Ok(shard) => {
                    let mut rpc = shard.admin();
                    let request = SetActuationRequest {
                        mode: mode.wire().into(),
                        reason: args.reason.clone(),
                    };
                    shard.answer("brake", rpc.set_actuation(shard.request(request))).await
                }
            };
            (id.clone(), AnswerRow::new(id, addr, answer))
        }
    };
    join_all(shards.iter().map(one)).await.into_iter().collect()
}

fn finish(
    fleet: &Fleet,
    console: &mut Console,
    args: &Args,
    mut answers: BTreeMap<String, AnswerRow>,
    listed: &Listed,
) -> Result<(), Error> {
    if let (true, Ok(listed)) = (args.all, listed) {
        for (id, answer) in &mut answers {
            answer.registered = listed.contains_key(id);
        }
    }
    if let Err(problem) = listed {
        console.note(&format!("note: {problem}; used the last known addresses of shards"));
    }
    // One that is gone from the registry and silent is no failure.
    let gone = |row: &AnswerRow| row.error.is_some() && !row.registered;
    let rows: Vec<AnswerRow> = answers.into_values().filter(|row| !gone(row)).collect();
    output::list(console, fleet.format, &rows)?;
    let failed: Vec<&AnswerRow> = rows.iter().filter(|row| row.error.is_some()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let verdict = format!("{} of {} shards did not do it", failed.len(), rows.len());
    let denied = failed.iter().all(|row| row.denied);
    Err(if denied { Error::Denied(verdict) } else { Error::Partly(verdict) })
}
