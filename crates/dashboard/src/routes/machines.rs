//! Machines of a shard.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::ListMachinesRequest;
use serde::{Deserialize, Serialize};

use super::{
    Shared,
    machine_pages::{Place, read, with_machine},
    whereabouts::{machine_of_node, shard_of_machine},
};
use crate::{
    api::{
        Answer, InPath, Params, Refusal,
        params::{limit, required},
    },
    auth::{Pages, Viewer},
    view::{
        instant,
        machine::{Machine, Transition},
        state_number,
    },
};

/// Which machines.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Which {
    shard: String,
    state: String,
    cluster: String,
    #[serde(rename = "type")]
    instance_type: String,
    zone: String,
    prefix: String,
    host_ref: String,
    with_error: bool,
    node: String,
    limit: Option<u32>,
    page: String,
}

impl Which {
    /// Where its page begins.
    fn place(&self, pages: &Pages) -> Result<Place, Refusal> {
        let place = pages.open(&self.page).and_then(|bytes| Place::parse(&bytes));
        place.ok_or_else(|| Refusal::BadParameter("page: not a token of this API".to_owned()))
    }

    fn request(&self) -> Result<ListMachinesRequest, Refusal> {
        let bad = Refusal::BadParameter;
        let states = self.state.split(',').filter(|name| !name.is_empty());
        let state = |name: &str| {
            let known = state_number(name);
            known.ok_or_else(|| bad(format!("state {name:?}: write idle, configured, failed, …")))
        };
        Ok(ListMachinesRequest {
            states: states.map(state).collect::<Result<_, _>>()?,
            cluster_id: self.cluster.clone(),
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            id_prefix: self.prefix.clone(),
            host_ref: self.host_ref.clone(),
            with_error: self.with_error,
            ..ListMachinesRequest::default()
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    total: Option<i32>,
    next: Option<String>,
    machines: Vec<Machine<'a>>,
}

/// Where is this machine?
pub(super) async fn list(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let mut shard = required("shard", &which.shard)?.to_owned();
    viewer.check(&which.cluster)?;
    let limit = limit(which.limit, 200, 1_000)? as usize;
    let (mut request, place) = (which.request()?, which.place(&app.pages)?);
    let exactly = if which.node.is_empty() {
        None
    } else {
        app.sources.shards.find(&shard).await?;
        let id = machine_of_node(&app, &viewer, &which.cluster, &which.node).await?;
        match shard_of_machine(&app, &viewer, &shard, &id).await {
            Ok((other, _)) => shard = other,
            // A node may outlive its machine: then no shard has any.
            Err(Refusal::NotFound(_)) => {}
            Err(refusal) => return Err(refusal),
        }
        request.id_prefix.clone_from(&id);
        Some(id)
    };
    let mut page = read(&app, &viewer, &shard, request.clone(), place, limit).await?;
    // A whole id, of which nobody needs to know the shard.
    if exactly.is_none() && page.is_nothing() && !which.prefix.is_empty() && which.page.is_empty() {
        match shard_of_machine(&app, &viewer, &shard, &which.prefix).await {
            Ok((other, _)) if other != shard => {
                page = read(&app, &viewer, &other, request, Place::default(), limit).await?;
                shard = other;
            }
            Ok(_) | Err(Refusal::NotFound(_)) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    let machines =
        page.machines().filter(|(_, machine)| exactly.as_ref().is_none_or(|id| *id == machine.id));
    let machines: Vec<_> =
        machines.map(|(view, machine)| Machine::new(view, machine, &viewer)).collect();
    // Machines of others must not even be counted.
    let counted = exactly.is_none() && (!viewer.is_scoped() || !which.cluster.is_empty());
    let total = match (&exactly, counted) {
        (Some(_), _) => i32::try_from(machines.len()).ok(),
        (None, true) => Some(page.total),
        (None, false) => None,
    };
    let next = page.next.as_ref().map(|next| app.pages.close(&next.to_bytes()));
    let (cycle, computed) = (page.cycle, instant(page.computed_at));
    let body =
        List { shard: &shard, cycle, computed_at_unix_nanos: computed, total, next, machines };
    Ok(Answer::at(page.at, body).into_response())
}

#[derive(Serialize)]
struct Detail<'a> {
    shard: &'a str,
    machine: Machine<'a>,
    transitions: Vec<Transition<'a>>,
}

/// What happened to it?
pub(super) async fn detail(
    State(app): State<Shared>,
    viewer: Viewer,
    InPath((shard, id)): InPath<(String, String)>,
) -> Result<impl IntoResponse, Refusal> {
    app.sources.shards.find(&shard).await?;
    let (shard, answer) = shard_of_machine(&app, &viewer, &shard, &id).await?;
    let known = answer.value.view.as_ref().and_then(with_machine);
    let (view, machine) =
        known.ok_or_else(|| Refusal::NotFound(format!("no machine {id:?} in {shard}")))?;
    let body = Detail {
        shard: &shard,
        machine: Machine::new(view, machine, &viewer),
        transitions: answer
            .value
            .transitions
            .iter()
            .map(|transition| Transition::new(transition, &viewer))
            .collect(),
    };
    Ok(Answer::at(answer.at, body).into_response())
}
