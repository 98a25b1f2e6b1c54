//! Who owns what.

use std::collections::BTreeMap;

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::{
    DomainAssignment, ProviderEntry, QuotaAllocation, ShardRegistryEntry,
};
use serde::{Deserialize, Serialize};

use super::{
    Shared,
    numbers::{By, by, greatest, sum, total},
};
use crate::{
    api::{Answer, Asked, Params, Refusal},
    source::{
        coordinator::Replica,
        metrics::{How, Query, names},
    },
    view::instant,
};

/// Which domains.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    #[serde(default)]
    domains_page: String,
}

/// The body of `/topology`, owned: the stream compares it with the one before.
#[derive(Serialize, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Topology {
    coordinator: Coordinator,
    replicas: Vec<ReplicaRow>,
    shards: Vec<ShardRow>,
    domain_assignments: Vec<Domain>,
    domains_next: Option<String>,
    quotas: Vec<Quota>,
    providers: Vec<Provider>,
    rebuilding: bool,
    warnings: Vec<String>,
}

#[derive(Serialize, Default, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct Coordinator {
    raft_term: Option<f64>,
    leader_id: Option<String>,
    apply_rate_per_sec: Option<f64>,
    apply_error_rate_per_sec: Option<f64>,
    pending_instructions_total: Option<f64>,
    last_export_unix_seconds: Option<f64>,
    transfers_by_phase: Option<BTreeMap<String, Option<f64>>>,
    recovering: Option<bool>,
}

#[derive(Serialize, Default, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct ReplicaRow {
    address: String,
    node_id: Option<String>,
    role: Option<String>,
    phase: Option<&'static str>,
    term: Option<i64>,
    commit_index: Option<i64>,
    applied_index: Option<i64>,
    lag: Option<i64>,
    voters: Option<Vec<String>>,
    error: Option<String>,
}

#[derive(Serialize, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct ShardRow {
    shard_id: String,
    address: String,
    registered_at_unix_ns: Option<i64>,
    last_heartbeat_unix_ns: Option<i64>,
}

#[derive(Serialize, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct Domain {
    topology_key: String,
    topology_value: String,
    shard_id: String,
}

#[derive(Serialize, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
struct Quota {
    provider: String,
    region: String,
    per_shard: BTreeMap<String, i32>,
}

#[derive(Serialize, PartialEq, Debug)]
struct Provider {
    name: String,
    address: String,
    region: String,
}

const PHASES: [&str; 4] = ["empty", "forming", "open", "superseded"];

impl ReplicaRow {
    /// Behind by what the furthest replica has committed.
    fn new(replica: &Replica, furthest: i64) -> Self {
        let address = replica.address.clone();
        match &replica.status {
            Err(error) => Self { address, error: Some(error.clone()), ..Self::default() },
            Ok(status) => Self {
                address,
                node_id: Some(status.node_id.clone()),
                role: Some(status.role.clone()),
                phase: usize::try_from(status.phase).ok().and_then(|at| PHASES.get(at)).copied(),
                term: Some(status.term),
                commit_index: Some(status.commit_index),
                applied_index: Some(status.applied_index),
                lag: Some((furthest - status.applied_index).max(0)),
                voters: Some(status.voters.clone()),
                error: None,
            },
        }
    }
}

fn shard_row(entry: &ShardRegistryEntry) -> ShardRow {
    ShardRow {
        shard_id: entry.shard_id.clone(),
        address: entry.address.clone(),
        registered_at_unix_ns: instant(entry.registered_at_unix_ns),
        last_heartbeat_unix_ns: instant(entry.last_heartbeat_unix_ns),
    }
}

fn domain(wire: &DomainAssignment) -> Domain {
    Domain {
        topology_key: wire.topology_key.clone(),
        topology_value: wire.topology_value.clone(),
        shard_id: wire.shard_id.clone(),
    }
}

fn quota(wire: &QuotaAllocation) -> Quota {
    Quota {
        provider: wire.provider.clone(),
        region: wire.region.clone(),
        per_shard: wire.per_shard.clone(),
    }
}

fn provider(wire: &ProviderEntry) -> Provider {
    Provider { name: wire.name.clone(), address: wire.address.clone(), region: wire.region.clone() }
}

/// What metrics know of the coordinator; they are an addition here, so that their absence is a
/// warning and no failure.
async fn numbers(app: &Shared, coordinator: &mut Coordinator, warnings: &mut Vec<String>) {
    let ask = |metric, how, by| app.sources.metrics.instant(Query::new(metric, how, by));
    let (apply, pending, export, transfers, recovering) = tokio::join!(
        ask(names::APPLY, How::Rate(300), &["outcome"]),
        ask(names::PENDING, How::Sum, &[]),
        ask(names::EXPORT, How::Max, &[]),
        ask(names::TRANSFERS, How::Sum, &["phase"]),
        ask(names::RECOVERING, How::Max, &[]),
    );
    let (apply, pending, export, transfers, recovering) =
        match (apply, pending, export, transfers, recovering) {
            (Ok(a), Ok(b), Ok(c), Ok(d), Ok(e)) => (a, b, c, d, e),
            (Err(refusal), ..)
            | (_, Err(refusal), ..)
            | (_, _, Err(refusal), ..)
            | (_, _, _, Err(refusal), _)
            | (.., Err(refusal)) => {
                warnings.push(format!("no rates, instructions and transfers: {refusal}"));
                return;
            }
        };
    coordinator.apply_rate_per_sec = sum(&apply.value);
    coordinator.apply_error_rate_per_sec = error_rate(&by(&apply.value));
    coordinator.pending_instructions_total = sum(&pending.value);
    // Followers export 0.
    coordinator.last_export_unix_seconds = greatest(&export.value).filter(|at| *at > 0.0);
    // A coordinator exports every phase: where there is none, nobody scrapes one.
    coordinator.transfers_by_phase = (!transfers.value.is_empty()).then(|| {
        let transfers = by(&transfers.value).into_iter();
        transfers.map(|(phase, count)| (phase.to_owned(), count)).collect()
    });
    coordinator.recovering = greatest(&recovering.value).map(|recovering| recovering > 0.0);
}

/// Errors by outcome: one that is not there, beside others that are, was never counted.
fn error_rate(rates: &By<'_>) -> Option<f64> {
    let of = |outcome: &&str| rates.get(outcome).copied().unwrap_or(Some(0.0));
    total(["error", "fsm_error"].iter().map(of)).filter(|_| !rates.is_empty())
}

/// Who owns what, now.
pub(crate) async fn look(app: &Shared, page: &str) -> Result<Answer<Topology>, Refusal> {
    let coordinator = &app.sources.coordinator;
    let (shards, domains, quotas, providers, replicas) = tokio::join!(
        coordinator.shards(),
        coordinator.domains(page),
        coordinator.quotas(),
        coordinator.providers(),
        coordinator.replicas(),
    );
    let mut asked = Asked::new();
    let shards = asked.take(shards)?;
    let (domains, quotas) = (asked.take(domains)?, asked.take(quotas)?);
    let (providers, replicas) = (asked.take(providers)?, asked.take(replicas)?);
    let mut warnings = Vec::new();
    let statuses = || replicas.value.iter().filter_map(|replica| replica.status.as_ref().ok());
    let furthest = statuses().map(|status| status.commit_index).max().unwrap_or(0);
    let leader = statuses().find(|status| status.role == "leader");
    let mut of_coordinator = Coordinator {
        raft_term: leader.map(|leader| leader.term as f64),
        leader_id: leader.map(|leader| leader.node_id.clone()),
        ..Coordinator::default()
    };
    numbers(app, &mut of_coordinator, &mut warnings).await;
    for replica in &replicas.value {
        if let Err(error) = &replica.status {
            warnings.push(format!("replica {} does not answer: {error}", replica.address));
        }
    }
    if let Some(leader) = leader
        && replicas.value.len() < leader.voters.len()
    {
        let (known, voters) = (replicas.value.len(), leader.voters.len());
        warnings.push(format!(
            "{voters} replicas vote, --coordinator-addr reaches {known}: name them all"
        ));
    }
    let unheard = shards.value.iter().filter(|shard| shard.last_heartbeat_unix_ns == 0).count();
    let rebuilding = unheard > 0 && unheard == shards.value.len();
    let body = Topology {
        coordinator: of_coordinator,
        replicas: replicas.value.iter().map(|one| ReplicaRow::new(one, furthest)).collect(),
        shards: shards.value.iter().map(shard_row).collect(),
        domain_assignments: domains.value.assignments.iter().map(domain).collect(),
        domains_next: Some(domains.value.next_page_token.clone()).filter(|next| !next.is_empty()),
        quotas: quotas.value.iter().map(quota).collect(),
        providers: providers.value.iter().map(provider).collect(),
        rebuilding,
        warnings,
    };
    Ok(asked.answer(body))
}

pub(super) async fn topology(
    State(app): State<Shared>,
    Params(page): Params<Page>,
) -> Result<impl IntoResponse, Refusal> {
    look(&app, &page.domains_page).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_rate_is_known_or_not() {
        let rate =
            |rates: &[(&'static str, Option<f64>)]| error_rate(&rates.iter().copied().collect());
        assert_eq!(rate(&[]), None);
        let none = rate(&[("success", Some(2.0))]);
        assert_eq!((none, none.is_some_and(f64::is_sign_positive)), (Some(0.0), true));
        assert_eq!(rate(&[("error", Some(1.0)), ("fsm_error", Some(2.0))]), Some(3.0));
        assert_eq!(rate(&[("error", Some(1.0)), ("fsm_error", None)]), None);
    }
}
