//! Where a machine is, for somebody who knows only its id or its node.

use std::sync::Arc;

use bigfleet_wire::v1alpha1::GetMachineResponse;

use super::{Shared, fanout::first};
use crate::{
    api::{Refusal, Source},
    auth::Viewer,
    source::coalesce::Fetched,
};

/// The machine behind a node of this cluster, or of any that the viewer sees.
pub(super) async fn machine_of_node(
    app: &Shared,
    viewer: &Viewer,
    cluster: &str,
    node: &str,
) -> Result<String, Refusal> {
    let sources = &app.sources;
    let asked = |id: &&str| viewer.sees(id) && (cluster.is_empty() || *id == cluster);
    let ids = sources.clusters.ids()?.filter(asked).map(str::to_owned).collect();
    let ask = |id: String| async move { sources.clusters.places(&id).await };
    let found = first(Source::Kubeconfig, ids, ask, |_, places| places.value.get(node).cloned());
    let unknown = || Refusal::NotFound(format!("no UpcomingNode stands for a node {node:?}"));
    found.await?.ok_or_else(unknown)
}

/// A machine, and the shard that has it: the one that was asked, or else any other. One that the
/// viewer may not see is refused as one that nobody has, wherever it is: else ids could be tried.
pub(super) async fn shard_of_machine(
    app: &Shared,
    viewer: &Viewer,
    shard: &str,
    machine: &str,
) -> Result<(String, Arc<Fetched<GetMachineResponse>>), Refusal> {
    let shards = &app.sources.shards;
    let seen = |answer: &Arc<Fetched<GetMachineResponse>>| {
        let machine = answer.value.view.as_ref().and_then(|view| view.machine.as_ref());
        machine.is_some_and(|machine| viewer.sees(&machine.cluster))
    };
    let missed = match shards.machine(shard, machine).await {
        Ok(answer) if seen(&answer) => return Ok((shard.to_owned(), answer)),
        Ok(_) | Err(Refusal::NotFound(_)) => {
            let seen = if viewer.is_scoped() { " that you may see" } else { "" };
            Refusal::NotFound(format!("no shard has a machine {machine:?}{seen}"))
        }
        Err(missed) => missed,
    };
    let listed = shards.listed().await?;
    let others = listed.iter().map(|entry| entry.shard_id.clone()).filter(|id| id != shard);
    let ask = |id: String| async move { shards.machine(&id, machine).await };
    let wanted = |id: &str, answer: &Arc<Fetched<GetMachineResponse>>| {
        seen(answer).then(|| (id.to_owned(), answer.clone()))
    };
    let found = first(Source::Shard, others.collect(), ask, wanted).await;
    match (found, missed) {
        (Ok(Some(found)), _) => Ok(found),
        // Not found is only said when everybody was asked.
        (Err(failed), Refusal::NotFound(_)) => Err(failed),
        (_, missed) => Err(missed),
    }
}
