//! Where a machine is, for somebody who knows only its node.

use super::{Shared, fanout::first};
use crate::{
    api::{Refusal, Source},
    auth::Viewer,
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
