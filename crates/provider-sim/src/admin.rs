//! The experimenter's door over HTTP. It has no lock, hence loopback only.

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use bigfleet_net::listen::{ListenAddr, MetricsAddr};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::{Controls, Error, Selector, config::from_value};

/// Fields that say who is meant; the rest says what is done.
const SELECTOR: [&str; 5] = ["cloud", "machines", "tier", "zone", "share"];

/// Serves until the answer is dropped; nothing where the address is `0`.
pub async fn start(
    addr: &MetricsAddr,
    controls: Controls,
) -> Result<Option<AbortOnDropHandle<()>>, Error> {
    let MetricsAddr::Listen(addr) = addr else { return Ok(None) };
    let listener = bind(addr).await?;
    let addr = listener.local_addr().map_err(bigfleet_net::Error::Serve)?;
    tracing::info!(%addr, "serving the admin calls of simulated clouds");
    let served = async move {
        if let Err(error) = axum::serve(listener, router(controls)).await {
            tracing::error!(%error, "admin server ended");
        }
    };
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(served))))
}

async fn bind(addr: &ListenAddr) -> Result<TcpListener, Error> {
    let refused = || {
        let problem = format!("{addr} is not loopback; write 127.0.0.1:9091, or 0 for none");
        Error::field("--admin-addr", problem)
    };
    let loopback = |ip: &std::net::IpAddr| ip.is_loopback();
    let host = addr.host();
    if host != "localhost" && !host.parse().as_ref().is_ok_and(loopback) {
        return Err(refused());
    }
    let listener = addr.bind().await?;
    // `localhost` is what the system says it is.
    let bound = listener.local_addr().map_err(bigfleet_net::Error::Serve)?;
    if loopback(&bound.ip()) { Ok(listener) } else { Err(refused()) }
}

/// The four calls.
pub fn router(controls: Controls) -> Router {
    Router::new()
        .route("/interrupt", post(interrupt))
        .route("/kill", post(kill))
        .route("/stock", post(stock))
        .route("/freeze", post(freeze))
        .with_state(controls)
}

async fn interrupt(State(controls): State<Controls>, headers: HeaderMap, body: Bytes) -> Response {
    answer("hosts", read(&headers, &body).and_then(|(whom, how)| controls.interrupt(&whom, how)))
}

async fn kill(State(controls): State<Controls>, headers: HeaderMap, body: Bytes) -> Response {
    answer("hosts", read(&headers, &body).and_then(|(whom, how)| controls.kill(&whom, how)))
}

async fn stock(State(controls): State<Controls>, headers: HeaderMap, body: Bytes) -> Response {
    answer("pools", read(&headers, &body).and_then(|(whom, how)| controls.stock(&whom, how)))
}

async fn freeze(State(controls): State<Controls>, headers: HeaderMap, body: Bytes) -> Response {
    answer("machines", read(&headers, &body).and_then(|(whom, how)| controls.freeze(&whom, how)))
}

fn read<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<(Selector, T), Error> {
    // A web page can post anything but this without asking first.
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let problem = "send Content-Type: application/json (curl --json does)";
        return Err(Error::Syntax(problem.to_owned()));
    }
    let object: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| Error::Syntax(format!("body: {error}")))?;
    let (whom, how) =
        object.into_iter().partition::<Map<_, _>, _>(|(key, _)| SELECTOR.contains(&key.as_str()));
    Ok((from_value(Value::Object(whom))?, from_value(Value::Object(how))?))
}

fn answer(what: &str, done: Result<usize, Error>) -> Response {
    let (status, body) = match done {
        Ok(count) => (StatusCode::OK, json!({ what: count })),
        Err(error) => {
            let mut body = json!({ "error": error.to_string() });
            if let Error::Field { field, .. } = &error {
                body["field"] = json!(field);
            }
            (StatusCode::BAD_REQUEST, body)
        }
    };
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
