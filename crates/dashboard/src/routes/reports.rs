//! What each shard holds and lacks, as it told the coordinator.

use std::collections::BTreeMap;

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::{
    NodeSelectorRequirement, PoolRow, Resources, ShardReportSnapshot, Shortfall,
};
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::{
    api::{Asked, Params, Refusal},
    auth::Viewer,
    view::{bucket, capacity_type, instant, requirements, vector},
};

/// Which shard.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    shard: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reports<'a> {
    reports: Vec<Report<'a>>,
    silent_shards: Vec<&'a str>,
    rebuilding: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    shard_id: &'a str,
    cycle: i64,
    received_at_unix_ns: Option<i64>,
    summary: Option<Summary<'a>>,
    shortfalls: Vec<ShortfallRow<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    total_machines: i32,
    free_machines: i32,
    instance_type_counts: &'a BTreeMap<String, i32>,
    zone_counts: &'a BTreeMap<String, i32>,
    provider_address: &'a str,
    pools: Vec<Pool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pool<'a> {
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'static str,
    idle: i32,
    speculative: i32,
    configured: i32,
    allocatable: Option<&'a BTreeMap<String, String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShortfallRow<'a> {
    priority: i32,
    deficit: Option<&'a BTreeMap<String, String>>,
    age_cycles: i32,
    #[serde(serialize_with = "bucket")]
    penalty_bucket: i32,
    #[serde(serialize_with = "requirements")]
    requirements: &'a [NodeSelectorRequirement],
    min_unit: Option<&'a BTreeMap<String, String>>,
    escalated: bool,
    hidden: bool,
}

fn pool(wire: &PoolRow) -> Pool<'_> {
    Pool {
        instance_type: &wire.instance_type,
        zone: &wire.zone,
        capacity_type: capacity_type(wire.capacity_type),
        idle: wire.idle,
        speculative: wire.speculative,
        configured: wire.configured,
        allocatable: vector(wire.allocatable.as_ref()),
    }
}

/// A shortfall does not say whose it is: somebody who may not see every cluster is told that there
/// is one, how grave and how old it is, and not what it asks for.
fn shortfall<'a>(wire: &'a Shortfall, viewer: &Viewer) -> ShortfallRow<'a> {
    let hidden = viewer.is_scoped();
    let told = |amount: Option<&'a Resources>| vector(amount.filter(|_| !hidden));
    ShortfallRow {
        priority: wire.priority,
        deficit: told(wire.deficit.as_ref()),
        age_cycles: wire.age_cycles,
        penalty_bucket: wire.interruption_penalty_bucket,
        requirements: if hidden { &[] } else { &wire.requirements },
        min_unit: told(wire.min_unit.as_ref()),
        escalated: wire.age_cycles > 5,
        hidden,
    }
}

fn report<'a>(wire: &'a ShardReportSnapshot, viewer: &Viewer) -> Report<'a> {
    Report {
        shard_id: &wire.shard_id,
        cycle: wire.cycle,
        received_at_unix_ns: instant(wire.received_at_unix_ns),
        summary: wire.summary.as_ref().map(|summary| Summary {
            total_machines: summary.total_machines,
            free_machines: summary.free_machines,
            instance_type_counts: &summary.per_instance_type_counts,
            zone_counts: &summary.per_zone_counts,
            provider_address: &summary.provider_address,
            pools: summary.pools.iter().map(pool).collect(),
        }),
        shortfalls: wire.shortfalls.iter().map(|one| shortfall(one, viewer)).collect(),
    }
}

/// What does each shard hold and lack? A new leader knows who is registered before it has heard
/// anybody.
pub(super) async fn reports(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let coordinator = &app.sources.coordinator;
    let (shards, reports) = tokio::join!(coordinator.shards(), coordinator.reports(&which.shard));
    let mut asked = Asked::new();
    let (shards, reports) = (asked.take(shards)?, asked.take(reports)?);
    let registered = || shards.value.iter().map(|shard| shard.shard_id.as_str());
    if !which.shard.is_empty() && !registered().any(|id| id == which.shard) {
        return Err(Refusal::NotFound(format!("no shard is called {:?}", which.shard)));
    }
    let asked_about = |id: &&str| which.shard.is_empty() || *id == which.shard;
    let reported = |id: &&str| reports.value.iter().any(|report| report.shard_id == **id);
    let silent: Vec<&str> = registered().filter(asked_about).filter(|id| !reported(id)).collect();
    let body = Reports {
        rebuilding: reports.value.is_empty() && !silent.is_empty(),
        reports: reports.value.iter().map(|one| report(one, &viewer)).collect(),
        silent_shards: silent,
    };
    Ok(asked.answer(body).into_response())
}
