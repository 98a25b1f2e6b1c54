//! Clusters that are, or were, connected to a shard.

use axum::{extract::State, response::IntoResponse};
use bigfleet_wire::v1alpha1::SessionView;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::{
    api::{Answer, Params, Refusal, params::required},
    auth::Viewer,
    view::instant,
};

/// Which sessions.
#[derive(Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    shard: String,
    #[serde(default)]
    cluster: String,
}

#[derive(Serialize)]
struct Sessions<'a> {
    shard: &'a str,
    sessions: Vec<Session<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session<'a> {
    cluster_id: &'a str,
    connected: bool,
    connected_since_unix_nanos: Option<i64>,
    last_rollup_unix_nanos: Option<i64>,
    needs: i32,
    rollups_held: i32,
    outbox_depth: i32,
    last_rejection: &'a str,
    peer: &'a str,
    protocol_version: &'a str,
    features: &'a [String],
}

impl<'a> From<&'a SessionView> for Session<'a> {
    fn from(wire: &'a SessionView) -> Self {
        Self {
            cluster_id: &wire.cluster_id,
            connected: wire.connected,
            connected_since_unix_nanos: instant(wire.connected_since_unix_nanos),
            last_rollup_unix_nanos: instant(wire.last_rollup_unix_nanos),
            needs: wire.needs,
            rollups_held: wire.rollups_held,
            outbox_depth: wire.outbox_depth,
            last_rejection: &wire.last_rejection,
            peer: &wire.peer,
            protocol_version: &wire.protocol_version,
            features: &wire.features,
        }
    }
}

/// Who is connected?
pub(super) async fn sessions(
    State(app): State<Shared>,
    viewer: Viewer,
    Params(which): Params<Which>,
) -> Result<impl IntoResponse, Refusal> {
    let shard = required("shard", &which.shard)?;
    viewer.check(&which.cluster)?;
    let sessions = app.sources.shards.sessions(shard, &which.cluster).await?;
    let seen = sessions.value.iter().filter(|session| viewer.sees(&session.cluster_id));
    let body = Sessions { shard, sessions: seen.map(Session::from).collect() };
    Ok(Answer::at(sessions.at, body).into_response())
}
