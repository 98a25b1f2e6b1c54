//! What happens, as it happens.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde::Deserialize;

use super::Shared;
use crate::{
    api::{Params, Refusal, params::required},
    auth::Viewer,
    stream::{Hub, Topic, frames},
};

/// Topics of one viewer.
const MOST_TOPICS: usize = 64;

/// What to tell.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Which {
    #[serde(default)]
    topics: String,
    last_event_id: Option<String>,
}

/// Tells what happens until either end goes.
pub(super) async fn stream(
    State(app): State<Shared>,
    viewer: Viewer,
    headers: HeaderMap,
    Params(which): Params<Which>,
) -> Result<Response, Refusal> {
    let topics = required("topics", &which.topics)?.split(',').map(str::trim);
    let parse = |text: &str| {
        let unknown = || {
            let known = "write summary, decisions, topology or needs:SHARD";
            Refusal::BadParameter(format!("topic {text:?}: {known}"))
        };
        Topic::parse(text).ok_or_else(unknown)
    };
    let mut topics: Vec<Topic> = topics.map(parse).collect::<Result<_, _>>()?;
    topics.sort();
    topics.dedup();
    if topics.len() > MOST_TOPICS {
        return Err(Refusal::BadParameter(format!("topics: more than {MOST_TOPICS}")));
    }
    let listed = app.sources.shards.listed().await?;
    for topic in &topics {
        if let Topic::Needs(shard) = topic
            && !listed.iter().any(|entry| entry.shard_id == *shard)
        {
            return Err(Refusal::NotFound(format!("no shard is called {shard:?}")));
        }
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last.or(which.last_event_id.as_deref()).filter(|id| !id.is_empty());
    let subscriber = Hub::subscribe(&app, topics, last)?;
    let headers = [
        (CONTENT_TYPE.as_str(), "text/event-stream"),
        (CACHE_CONTROL.as_str(), "no-store"),
        // Proxies that would collect the answer first.
        ("x-accel-buffering", "no"),
    ];
    let frames = frames(subscriber, viewer, &app.hub);
    Ok((headers, Body::from_stream(frames)).into_response())
}
