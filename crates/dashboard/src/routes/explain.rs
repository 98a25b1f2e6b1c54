//! Why one need fares as it does.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::{
    AheadNeed, CapacityNeed, DomainCoverage, ExplainNeedRequest, NeedView, SupplyFunnel,
};
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::{
    api::{Answer, Params, Refusal, params::required},
    auth::Viewer,
    view::{
        decision::Decision,
        instant,
        need::{Need, domains},
    },
};

/// Which need.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    shard: String,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    fingerprint: String,
    #[serde(default)]
    group: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    need: Need<'a>,
    rank: i32,
    rank_of: i32,
    funnel: Option<Funnel>,
    ahead: Vec<Ahead<'a>>,
    hidden_ahead: Hidden,
    #[serde(serialize_with = "domains")]
    domains: &'a [DomainCoverage],
    decisions: Vec<Decision<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Funnel {
    matching: i32,
    usable: i32,
    bound_here: i32,
    bound_elsewhere: i32,
    idle_free: i32,
    speculative_free: i32,
    in_transition: i32,
    failed: i32,
    held_back: i32,
    taken_this_cycle: i32,
    claimed: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ahead<'a> {
    cluster_id: &'a str,
    profile_fingerprint: &'a str,
    group: &'a str,
    priority: i32,
    machines_taken: i32,
    arrival_unix_nanos: Option<i64>,
}

/// Needs of clusters that the viewer may not see: that they exist explains the verdict, whose they
/// are does not.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Hidden {
    needs: usize,
    machines_taken: i32,
}

fn funnel(wire: &SupplyFunnel) -> Funnel {
    Funnel {
        matching: wire.matching,
        usable: wire.usable,
        bound_here: wire.bound_here,
        bound_elsewhere: wire.bound_elsewhere,
        idle_free: wire.idle_free,
        speculative_free: wire.speculative_free,
        in_transition: wire.in_transition,
        failed: wire.failed,
        held_back: wire.held_back,
        taken_this_cycle: wire.taken_this_cycle,
        claimed: wire.claimed,
    }
}

fn ahead(wire: &AheadNeed) -> Ahead<'_> {
    Ahead {
        cluster_id: &wire.cluster_id,
        profile_fingerprint: &wire.profile_fingerprint,
        group: &wire.group,
        priority: wire.priority,
        machines_taken: wire.machines_taken,
        arrival_unix_nanos: instant(wire.arrival_unix_nanos),
    }
}

/// Why is this need not satisfied?
pub(super) async fn explain(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let shard = required("shard", &which.shard)?;
    let request = ExplainNeedRequest {
        cluster_id: required("cluster", &which.cluster)?.to_owned(),
        profile_fingerprint: required("fingerprint", &which.fingerprint)?.to_owned(),
        group: which.group.clone(),
    };
    viewer.check(&which.cluster)?;
    let answer = app.sources.shards.explain(shard, request).await?;
    let (asked, nothing) = (CapacityNeed::default(), NeedView::default());
    let seen = |one: &&AheadNeed| viewer.sees(&one.cluster_id);
    let wire = &answer.value;
    let hidden = || wire.ahead.iter().filter(|one| !seen(one));
    let decisions = wire.decisions.iter().filter(|one| viewer.sees(&one.cluster_id));
    let body = Explained {
        shard,
        cycle: wire.cycle,
        computed_at_unix_nanos: instant(wire.computed_at_unix_nanos),
        need: Need::new(wire.need.as_ref().unwrap_or(&nothing), &asked),
        rank: wire.rank,
        rank_of: wire.rank_of,
        funnel: wire.funnel.as_ref().map(funnel),
        ahead: wire.ahead.iter().filter(seen).map(ahead).collect(),
        hidden_ahead: Hidden {
            needs: hidden().count(),
            machines_taken: hidden().map(|one| one.machines_taken).sum(),
        },
        domains: &wire.domains,
        decisions: decisions.map(|one| Decision::new(one, &viewer)).collect(),
    };
    Ok(Answer::at(answer.at, body).into_response())
}
