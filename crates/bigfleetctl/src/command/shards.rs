//! `list-shards`, `remove-shard`.

use bigfleet_wire::v1alpha1::{RemoveShardRequest, ShardRegistryEntry};
use serde::Serialize;

use super::quotas;
use crate::{
    Error,
    cli::Consent,
    console::Console,
    coordinator::Rpc,
    fleet::Fleet,
    output::{self, Row},
    when,
};

/// A shard that reported this recently is alive, in nanoseconds.
const ALIVE: i64 = 60 * when::SECOND;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShardRow {
    shard: String,
    address: String,
    registered: Option<String>,
    last_heartbeat: Option<String>,
    #[serde(skip)]
    at: (i64, i64),
}

impl From<ShardRegistryEntry> for ShardRow {
    fn from(entry: ShardRegistryEntry) -> Self {
        let at = (entry.registered_at_unix_ns, entry.last_heartbeat_unix_ns);
        Self {
            shard: entry.shard_id,
            address: entry.address,
            registered: when::exact(at.0),
            last_heartbeat: when::exact(at.1),
            at,
        }
    }
}

impl Row for ShardRow {
    const HEAD: &'static [&'static str] = &["SHARD", "ADDRESS", "REGISTERED", "LAST_HEARTBEAT"];

    fn cells(&self) -> Vec<String> {
        let (registered, heartbeat) = self.at;
        let [registered, heartbeat] = [registered, heartbeat].map(when::instant);
        vec![self.shard.clone(), self.address.clone(), registered, heartbeat]
    }
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let shards = fleet.coordinator.shards().await?;
    fleet.remember(console, &shards);
    let rows: Vec<ShardRow> = shards.into_iter().map(Into::into).collect();
    output::list(console, fleet.format, &rows)
}

/// Flags of `remove-shard`.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Id of the shard
    #[arg(long, value_name = "ID")]
    shard: String,
    /// Although it reported within the last 60 s, or may have
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Why a shard may be alive. A leader that has only just begun to lead has not heard even
/// those that live: that it knows of no report says nothing yet.
fn may_be_alive(shard: &ShardRegistryEntry, now: i64, leading: i64) -> Option<String> {
    let heartbeat = shard.last_heartbeat_unix_ns;
    if heartbeat != 0 {
        return (now.saturating_sub(heartbeat) < ALIVE).then(|| {
            format!(
                "reported {} ago, so it is alive and would register again; stop it and wait 60 s \
                 (or twice its --execute-timeout, if that is longer), or use --force",
                when::age(now, heartbeat)
            )
        });
    }
    (leading < ALIVE).then(|| {
        format!(
            "may be alive: the coordinator's leader has led for {} and has not heard it yet; \
             try again once it has led for 60 s, or use --force if you know that the shard's \
             process is gone",
            when::span(leading)
        )
    })
}

pub(super) async fn remove(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &RemoveArgs,
) -> Result<(), Error> {
    let id = &args.shard;
    let registry = fleet.coordinator.registry().await?;
    let found = registry.shards.iter().find(|shard| shard.shard_id == *id);
    let heartbeat = found.map_or(0, |shard| shard.last_heartbeat_unix_ns);
    if let Some(reason) = found.filter(|_| !args.force).and_then(|shard| {
        let leading = registry.leading_ms.saturating_mul(when::SECOND / 1_000);
        may_be_alive(shard, when::now(), leading)
    }) {
        return Err(Error::Failed(format!("shard {id} {reason}")));
    }
    let mut plan = vec![format!(
        "remove shard {id} ({}, last heartbeat {}) with its cluster bindings and quota slices",
        found.map_or("not registered", |shard| &shard.address),
        when::instant(heartbeat)
    )];
    if args.consent.wants_plan() {
        let domains = fleet.coordinator.domains().await?;
        let owned = domains.iter().filter(|domain| domain.shard_id == *id).count();
        plan.push(format!("leave its {owned} topology domains without an owner"));
        plan.extend(quotas::emptied_by(id, &quotas::allocations(fleet).await?));
    }
    if !console.consent(args.consent, &plan)? {
        return Ok(());
    }
    let request = RemoveShardRequest { shard_id: id.clone() };
    let call = async |mut rpc: Rpc, request| rpc.remove_shard(request).await;
    fleet.coordinator.ask("remove-shard", request, call).await?;
    console.line(&format!("removed shard {id}"))?;
    console.line(
        "Empty its data volume before a shard of this id starts again: the old one still \
         believes in what it held.",
    )
}
