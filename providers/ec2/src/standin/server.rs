//! One port for everything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{CATALOGUE, REGION, admin, auth, json as services, query, world::World};

/// Shared by all handlers.
pub(super) type Shared = Arc<Mutex<World>>;

/// The largest body: one part of a blob, and then some.
const MAX_BODY: usize = 8 << 20;

pub(super) fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn router(world: Shared) -> Router {
    Router::new()
        .route("/", post(call))
        .route("/spot-advisor-data.json", get(advice))
        .merge(admin::router())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(world)
}

async fn call(State(world): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let signed = auth::is_signed(&headers, uri.path(), &body);
    match target {
        None if !signed => {
            query::refusal(&("AuthFailure", "the signature does not match".to_owned()))
        }
        None => query::serve(&world, &body),
        Some(_) if !signed => {
            services::refusal(&("AccessDeniedException", "the signature does not match".to_owned()))
        }
        Some(target) => services::serve(&world, target, &body).await,
    }
}

/// The public document of interruption frequencies.
async fn advice() -> Response {
    let types = CATALOGUE.iter().filter_map(|entry| {
        let bucket = entry.bucket?;
        Some((entry.name.to_owned(), json!({"s": 60, "r": bucket})))
    });
    let types: serde_json::Map<String, Value> = types.collect();
    reply(StatusCode::OK, &json!({"spot_advisor": {REGION: {"Linux": types}}}))
}

/// JSON.
pub(super) fn reply(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
