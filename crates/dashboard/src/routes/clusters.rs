//! Managed clusters, as their own objects show them.

use std::collections::BTreeMap;

use axum::{extract::State, response::IntoResponse};
use bigfleet_crds::{
    AvailableCapacity, CapacityRequest, Quantity, Requirement, UpcomingNode, keys,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

use super::{Shared, fanout::of_each};
use crate::{
    api::{Answer, InPath, Params, Refusal, Source, params::limit},
    auth::Viewer,
    source::{clusters::is_pending, coalesce::Outcome},
};

/// Which clusters.
#[derive(Deserialize)]
pub(super) struct Page {
    limit: Option<u32>,
    #[serde(default)]
    after: String,
    #[serde(default)]
    search: String,
    #[serde(default)]
    cluster: String,
}

/// Clusters of one page.
struct Chosen {
    ids: Vec<String>,
    total: usize,
    next: Option<String>,
}

fn choose(app: &Shared, viewer: &Viewer, page: &Page) -> Result<Chosen, Refusal> {
    viewer.check(&page.cluster)?;
    let limit = limit(page.limit, 200, 1_000)? as usize;
    if !page.cluster.is_empty() && !app.sources.clusters.ids()?.any(|id| id == page.cluster) {
        let cluster = &page.cluster;
        let problem = format!("no context of the kubeconfig is called {cluster:?}");
        return Err(Refusal::NotFound(problem));
    }
    let wanted = |id: &&str| {
        viewer.sees(id)
            && (page.cluster.is_empty() || *id == page.cluster)
            && id.contains(page.search.as_str())
    };
    let all: Vec<&str> = app.sources.clusters.ids()?.filter(wanted).collect();
    let after = all.partition_point(|id| !page.after.is_empty() && *id <= page.after.as_str());
    let ids: Vec<String> = all[after..].iter().take(limit).map(|&id| id.to_owned()).collect();
    let more = all.len() > after + ids.len();
    Ok(Chosen { next: ids.last().filter(|_| more).cloned(), total: all.len(), ids })
}

#[derive(Serialize)]
struct List<T> {
    clusters: Vec<T>,
    total: usize,
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster: String,
    capacity_requests: Option<usize>,
    pending_capacity_requests: Option<usize>,
    upcoming_nodes: Option<usize>,
    error: Option<String>,
}

/// What do clusters ask and get?
pub(super) async fn list(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(page): Params<Page>,
) -> Result<impl IntoResponse, Refusal> {
    let Chosen { ids, total, next } = choose(&app, &viewer, &page)?;
    let sources = &app.sources;
    let (at, ask) =
        (Timestamp::now(), |id: String| async move { sources.clusters.counts(&id).await });
    let rows = of_each(Source::Kubeconfig, ids, ask).await;
    let row = |(cluster, counts): (String, Outcome<crate::source::clusters::Counts>)| {
        let known = counts.as_ref().ok().map(|counts| counts.value);
        Row {
            cluster,
            capacity_requests: known.map(|counts| counts.requests),
            pending_capacity_requests: known.map(|counts| counts.pending),
            upcoming_nodes: known.map(|counts| counts.nodes),
            error: counts.err().map(|refusal| refusal.to_string()),
        }
    };
    Ok(Answer::at(at, List { clusters: rows.into_iter().map(row).collect(), total, next })
        .into_response())
}

#[derive(Serialize)]
struct Capacities {
    cluster: String,
    error: Option<String>,
    capacities: Option<Vec<Capacity>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capacity {
    name: String,
    resources: BTreeMap<String, Quantity>,
    available_count: i32,
    availability: bigfleet_crds::Availability,
    cost: Quantity,
    requirements: Vec<Requirement>,
    created_at: Option<String>,
}

impl From<&AvailableCapacity> for Capacity {
    fn from(hint: &AvailableCapacity) -> Self {
        Self {
            name: hint.name_any(),
            resources: hint.spec.resources.clone(),
            available_count: hint.spec.available_count,
            availability: hint.spec.availability,
            cost: hint.spec.cost.clone(),
            requirements: hint.spec.requirements.clone(),
            created_at: created(hint),
        }
    }
}

fn created(object: &impl kube::Resource) -> Option<String> {
    object.meta().creation_timestamp.as_ref().map(|time| time.0.to_string())
}

/// What could I get?
pub(super) async fn available_capacity(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(page): Params<Page>,
) -> Result<impl IntoResponse, Refusal> {
    let Chosen { ids, total, next } = choose(&app, &viewer, &page)?;
    let sources = &app.sources;
    let (at, ask) =
        (Timestamp::now(), |id: String| async move { sources.clusters.hints(&id).await });
    let rows = of_each(Source::Kubeconfig, ids, ask).await;
    let row = |(cluster, hints): (String, Outcome<Vec<AvailableCapacity>>)| Capacities {
        cluster,
        capacities: hints.as_ref().ok().map(|all| all.value.iter().map(Capacity::from).collect()),
        error: hints.err().map(|refusal| refusal.to_string()),
    };
    Ok(Answer::at(at, List { clusters: rows.into_iter().map(row).collect(), total, next })
        .into_response())
}

/// How much of a cluster.
#[derive(Deserialize)]
pub(super) struct Rows {
    limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    cluster: &'a str,
    capacity_requests: usize,
    pending_capacity_requests: usize,
    capacity_requests_by_phase: BTreeMap<String, usize>,
    upcoming_nodes: usize,
    upcoming_nodes_by_phase: BTreeMap<String, usize>,
    requests: Vec<RequestRow<'a>>,
    nodes: Vec<NodeRow<'a>>,
    requests_truncated: bool,
    nodes_truncated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestRow<'a> {
    namespace: &'a str,
    name: &'a str,
    phase: String,
    priority: i32,
    resources: &'a BTreeMap<String, Quantity>,
    requirements: &'a [Requirement],
    interruption_penalty: Option<&'a Quantity>,
    reclamation_penalty: Option<&'a Quantity>,
    co_location: Option<&'a bigfleet_crds::CoLocation>,
    satisfied: Option<&'a str>,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    created_at: Option<String>,
}

impl<'a> From<&'a CapacityRequest> for RequestRow<'a> {
    fn from(request: &'a CapacityRequest) -> Self {
        let mut conditions = request.status.iter().flat_map(|status| &status.conditions);
        let satisfied = conditions.find(|one| one.type_ == "Satisfied");
        Self {
            namespace: request.metadata.namespace.as_deref().unwrap_or_default(),
            name: request.metadata.name.as_deref().unwrap_or_default(),
            phase: phase_of(request),
            priority: request.spec.priority,
            resources: &request.spec.resources,
            requirements: &request.spec.requirements,
            interruption_penalty: request.spec.interruption_penalty.as_ref(),
            reclamation_penalty: request.spec.reclamation_penalty.as_ref(),
            co_location: request.spec.co_location.as_ref(),
            satisfied: satisfied.map(|one| one.status.as_str()),
            reason: satisfied.map(|one| one.reason.as_str()),
            message: satisfied.map(|one| one.message.as_str()),
            created_at: created(request),
        }
    }
}

fn phase_of(request: &CapacityRequest) -> String {
    format!("{:?}", request.phase())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeRow<'a> {
    name: &'a str,
    machine_id: Option<&'a str>,
    phase: Option<String>,
    node_name: Option<&'a str>,
    provider_id: Option<&'a str>,
    instance_type: Option<&'a str>,
    zone: Option<&'a str>,
    resources: &'a BTreeMap<String, Quantity>,
    last_error: Option<&'a str>,
    created_at: Option<String>,
}

impl<'a> From<&'a UpcomingNode> for NodeRow<'a> {
    fn from(node: &'a UpcomingNode) -> Self {
        let status = node.status.as_ref();
        let label = |key: &str| node.spec.labels.get(key).map(String::as_str);
        Self {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            machine_id: node.annotations().get(keys::MACHINE_ID).map(String::as_str),
            phase: status.map(|status| format!("{:?}", status.phase)),
            node_name: status.and_then(|status| status.node_ref.as_ref()?.name.as_deref()),
            provider_id: status.and_then(|status| status.provider_id.as_deref()),
            instance_type: label(bigfleet_model::machine::INSTANCE_TYPE_LABEL),
            zone: label(bigfleet_model::machine::ZONE_LABEL),
            resources: &node.spec.resources,
            last_error: status.and_then(|status| status.last_error.as_deref()),
            created_at: created(node),
        }
    }
}

fn tally(phases: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for phase in phases {
        *tally.entry(phase).or_default() += 1;
    }
    tally
}

/// What does my cluster ask and get?
pub(super) async fn detail(
    State(app): State<Shared>,
    viewer: Viewer,
    InPath(cluster): InPath<String>,
    Params(params): Params<Rows>,
) -> Result<impl IntoResponse, Refusal> {
    viewer.check(&cluster)?;
    let limit = limit(params.limit, 500, 5_000)? as usize;
    let detail = app.sources.clusters.detail(&cluster).await?;
    let (requests, nodes) = (&detail.value.requests, &detail.value.nodes);
    let by_phase = tally(requests.iter().map(phase_of));
    let pending = by_phase.iter().filter(|(phase, _)| is_pending(phase)).map(|(_, count)| count);
    let pending: usize = pending.sum();
    let node_phase = |node: &UpcomingNode| {
        node.status.as_ref().map_or_else(String::new, |status| format!("{:?}", status.phase))
    };
    // What waits comes first, so that a cut list still shows it.
    let mut request_rows: Vec<RequestRow<'_>> = requests.iter().map(RequestRow::from).collect();
    request_rows.sort_by_key(|row| (!is_pending(&row.phase), row.satisfied == Some("True")));
    let mut node_rows: Vec<NodeRow<'_>> = nodes.iter().map(NodeRow::from).collect();
    node_rows.sort_by_key(|row| row.phase.as_deref() == Some("Ready"));
    request_rows.truncate(limit);
    node_rows.truncate(limit);
    let body = Detail {
        cluster: &cluster,
        capacity_requests: requests.len(),
        pending_capacity_requests: pending,
        capacity_requests_by_phase: by_phase,
        upcoming_nodes: nodes.len(),
        upcoming_nodes_by_phase: tally(nodes.iter().map(node_phase)),
        requests_truncated: requests.len() > request_rows.len(),
        nodes_truncated: nodes.len() > node_rows.len(),
        requests: request_rows,
        nodes: node_rows,
    };
    Ok(Answer::at(detail.at, body).into_response())
}
