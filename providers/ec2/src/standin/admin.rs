//! What tests ask for and look at.
//!
//! | Call | Does |
//! |---|---|
//! | `POST /admin/faults {field: value, …}` | changes how the stand-in behaves |
//! | `POST /admin/interrupt {machine, kind: rebalance\|termination, notice_ms}` | tells the queue; a termination ends the instance after the notice |
//! | `POST /admin/end {machine}` | ends it behind everybody's back |
//! | `POST /admin/stop {machine}` | stops it |
//! | `POST /admin/price {type, zone, price}` | a new market price; without `zone` a new list price |
//! | `GET /admin/truth` | every live instance, and slots with more than one |

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{
    server::{Shared, lock, reply},
    world::{World, now},
};
use crate::slots::MACHINE_ID;

/// Between a termination notice and the end.
const NOTICE_MS: u64 = 120_000;

pub(super) fn router() -> Router<Shared> {
    Router::new()
        .route("/admin/faults", post(faults))
        .route("/admin/interrupt", post(interrupt))
        .route("/admin/end", post(end))
        .route("/admin/stop", post(stop))
        .route("/admin/price", post(price))
        .route("/admin/truth", get(truth))
}

async fn faults(State(world): State<Shared>, Json(patch): Json<Value>) -> Response {
    let mut world = lock(&world);
    match world.faults.patched(&patch) {
        Ok(faults) => {
            world.faults = faults;
            reply(StatusCode::OK, &json!({}))
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn interrupt(State(world): State<Shared>, Json(body): Json<Value>) -> Response {
    let mut world = lock(&world);
    let Some(id) = live(&world, &body) else { return nobody() };
    let termination = body.get("kind").and_then(Value::as_str) == Some("termination");
    let kind = match termination {
        true => "EC2 Spot Instance Interruption Warning",
        false => "EC2 Instance Rebalance Recommendation",
    };
    world.tell(json!({"detail-type": kind, "detail": {"instance-id": id}}).to_string());
    if termination {
        let notice = body.get("notice_ms").and_then(Value::as_u64).unwrap_or(NOTICE_MS);
        world.end(&id, now() + notice, "Server.SpotInstanceTermination");
    }
    reply(StatusCode::OK, &json!({"instance": id}))
}

async fn end(State(world): State<Shared>, Json(body): Json<Value>) -> Response {
    let mut world = lock(&world);
    let Some(id) = live(&world, &body) else { return nobody() };
    world.end(&id, now(), "Server.InternalError");
    reply(StatusCode::OK, &json!({"instance": id}))
}

async fn stop(State(world): State<Shared>, Json(body): Json<Value>) -> Response {
    let mut world = lock(&world);
    let Some(id) = live(&world, &body) else { return nobody() };
    world.change(&id, |host| host.stopped = true);
    reply(StatusCode::OK, &json!({"instance": id}))
}

async fn price(State(world): State<Shared>, Json(body): Json<Value>) -> Response {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(price) = body.get("price").and_then(Value::as_f64) else { return nobody() };
    let mut world = lock(&world);
    match body.get("zone") {
        Some(_) => drop(world.spot_prices.insert((text("type"), text("zone")), price)),
        None => drop(world.list_prices.insert(text("type"), price)),
    }
    reply(StatusCode::OK, &json!({}))
}

async fn truth(State(world): State<Shared>) -> Response {
    let (world, now) = (lock(&world), now());
    let hosts = world.hosts.values().filter(|host| host.is_live(now)).map(|host| {
        let joined = host.joined.as_ref();
        json!({
            "id": host.id,
            "machine": host.tags.get(MACHINE_ID),
            "token": host.token,
            "state": host.state(now),
            "visible": now >= host.visible,
            "tags": host.tags,
            "cluster": joined.map(|joined| joined.cluster.as_str()),
            "blob_sha256": joined.map(|joined| joined.blob_sha256.as_str()),
            "blob_bytes": joined.map(|joined| joined.blob_bytes),
            "reboots": host.reboots,
        })
    });
    let hosts: Vec<_> = hosts.collect();
    let launched = world.hosts.len();
    reply(
        StatusCode::OK,
        &json!({"hosts": hosts, "crowded": world.crowded(), "launched": launched}),
    )
}

/// The live instance of the machine that the body names.
fn live(world: &World, body: &Value) -> Option<String> {
    let (now, machine) = (now(), body.get("machine")?.as_str()?);
    let mut hosts = world.hosts.values();
    let found = hosts.find(|host| {
        host.is_live(now) && host.tags.get(MACHINE_ID).is_some_and(|id| id == machine)
    });
    found.map(|host| host.id.clone())
}

fn nobody() -> Response {
    (StatusCode::NOT_FOUND, "no live instance of that machine, or a field is missing")
        .into_response()
}
