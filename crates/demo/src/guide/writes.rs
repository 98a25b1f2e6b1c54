//! What a visitor may do.

use std::sync::{Arc, PoisonError};

use axum::{
    body::{Body, to_bytes},
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::Instant;

use super::{Guide, answer, is_json, refuse};
use crate::{
    cluster::workload::{Class, MOST, Workload},
    flags::names,
    scenario,
    show::Piece,
};

/// Longest body.
const LONGEST: usize = 4 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Demand {
    workspace: String,
    level: u32,
    tier: Class,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) async fn demand(
    State(guide): State<Arc<Guide>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let demand: Demand = match read(&guide, &headers, body).await {
        Ok(demand) => demand,
        Err(refusal) => return refusal,
    };
    let clusters = &guide.show.fleet.clusters;
    let Some(at) = clusters.iter().position(|cluster| cluster.id == demand.workspace) else {
        let text = format!("workspace: {:?} is none; write a, b or c", demand.workspace);
        return refuse(StatusCode::BAD_REQUEST, &text);
    };
    if demand.level > MOST {
        let text = format!("level: {} is out of range; write 0 to {MOST}", demand.level);
        return refuse(StatusCode::BAD_REQUEST, &text);
    }
    if guide.show.is_playing() {
        return refuse(StatusCode::CONFLICT, "a scenario runs; wait for its end");
    }
    guide.show.fleet.demand(at, Workload::Plain(demand.tier), demand.level);
    accepted()
}

pub(super) async fn scenario(
    State(guide): State<Arc<Guide>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let named: Named = match read(&guide, &headers, body).await {
        Ok(named) => named,
        Err(refusal) => return refusal,
    };
    let Some(scenario) = scenario::named(&named.name) else {
        let text = format!("name: {:?} is none; there are {}", named.name, names());
        return refuse(StatusCode::NOT_FOUND, &text);
    };
    play(&guide, Piece::Scenario(scenario)).await
}

pub(super) async fn reset(
    State(guide): State<Arc<Guide>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match read::<Nothing>(&guide, &headers, body).await {
        Ok(_) => play(&guide, Piece::Reset).await,
        Err(refusal) => refusal,
    }
}

async fn play(guide: &Guide, piece: Piece) -> Response {
    if guide.show.clone().try_play(piece).await {
        return accepted();
    }
    refuse(StatusCode::CONFLICT, "another scenario runs; wait for its end")
}

fn accepted() -> Response {
    answer(StatusCode::ACCEPTED, &json!({ "accepted": true }))
}

/// Before anything else a write is counted, whatever it says.
async fn read<T: DeserializeOwned>(
    guide: &Guide,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Response> {
    let allowed = guide.writes.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
    if !allowed {
        return Err(refuse(StatusCode::TOO_MANY_REQUESTS, "too many changes; try in a second"));
    }
    // A page elsewhere can post anything but this without asking first.
    if !is_json(headers) {
        let text = "send Content-Type: application/json";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let Ok(bytes) = to_bytes(body, LONGEST).await else {
        let text = format!("the body is longer than {LONGEST} bytes");
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &text));
    };
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(bytes)
        .map_err(|error| refuse(StatusCode::BAD_REQUEST, &format!("body: {error}")))
}
