//! How every need of a shard fared.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::InspectNeedsRequest;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::{
    api::{
        Answer, Params, Refusal, Source,
        params::{limit, required},
    },
    auth::Viewer,
    view::{NeedsBody, instant},
};

/// Which needs.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    shard: String,
    #[serde(default)]
    cluster: String,
    limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    total_needs: usize,
    rebuilding: bool,
}

/// Why is this not satisfied?
pub(super) async fn needs(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let id = required("shard", &which.shard)?;
    let limit = limit(which.limit, 2_000, 100_000)?;
    viewer.check(&which.cluster)?;
    // A shard is asked for one cluster or for all of them. Of all, a viewer who may see some needs
    // those past anybody's limit as well, and one who may see none as few as can be asked for.
    let cluster = match which.cluster.as_str() {
        "" => viewer.only().unwrap_or_default().to_owned(),
        given => given.to_owned(),
    };
    let all = viewer.is_scoped() && cluster.is_empty();
    let cap = match all {
        true => i32::from(viewer.sees_none()),
        false => i32::try_from(limit).unwrap_or(i32::MAX),
    };
    let request = InspectNeedsRequest { cluster_id: cluster, limit: cap };
    let rows = app.sources.shards.needs(id, request).await?;
    let (json, visible) = rows.value.visible(|cluster| viewer.sees(cluster), limit as usize);
    let header = &rows.value.header;
    let head = Head {
        shard: id,
        cycle: header.cycle,
        computed_at_unix_nanos: instant(header.computed_at_unix_nanos),
        total_needs: if all { visible } else { usize::try_from(header.total_needs).unwrap_or(0) },
        rebuilding: header.cycle == 0,
    };
    let mut head = serde_json::to_vec(&Answer::at(rows.at, head))
        .map_err(|error| Refusal::failed(Source::Shard, error))?;
    head.pop();
    head.extend_from_slice(b",\"needs\":[");
    let mut body = NeedsBody::default();
    body.push(head);
    match json {
        std::borrow::Cow::Borrowed(all) => body.push(rows.value.json.slice_ref(all)),
        std::borrow::Cow::Owned(some) => body.push(some),
    }
    body.push(&b"]}"[..]);
    Ok(body)
}
