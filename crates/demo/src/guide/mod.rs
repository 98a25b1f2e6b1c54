//! The guide: text on the left, the live fleet on the right, and a door to play with it.

mod bucket;
pub(crate) mod page;
mod stream;
mod writes;

use std::{
    io::ErrorKind,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, HOST, RETRY_AFTER},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bigfleet_dashboard::Assets;
use bigfleet_net::{listen::ListenAddr, shutdown::Shutdown};
use bucket::Bucket;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    Error,
    show::Show,
    state::{self, Surroundings},
};

/// Streams at once.
const STREAMS: usize = 64;

/// What the routes share.
pub(crate) struct Guide {
    show: Arc<Show>,
    around: Mutex<Surroundings>,
    streams: Arc<Semaphore>,
    writes: Mutex<Bucket>,
    sequence: AtomicU64,
    stop: Shutdown,
}

impl Guide {
    /// Of one fleet.
    pub(crate) fn new(show: Arc<Show>, around: Surroundings, stop: Shutdown) -> Arc<Self> {
        Arc::new(Self {
            show,
            around: Mutex::new(around),
            streams: Arc::new(Semaphore::new(STREAMS)),
            writes: Mutex::new(Bucket::new(tokio::time::Instant::now())),
            sequence: AtomicU64::new(0),
            stop,
        })
    }

    /// When the visitor's session ends.
    pub(crate) fn session(&self, ends: (i64, i64)) {
        self.around.lock().unwrap_or_else(PoisonError::into_inner).session = Some(ends);
    }

    fn around(&self) -> Surroundings {
        self.around.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A bound guide.
pub(crate) struct Server {
    pub(crate) listener: tokio::net::TcpListener,
    /// Where it is.
    pub(crate) url: String,
}

impl Server {
    /// Takes the address.
    pub(crate) async fn bind(addr: &ListenAddr) -> Result<Self, Error> {
        let taken = |error| match error {
            bigfleet_net::Error::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                let problem = format!(
                    "{addr} is taken, perhaps by another demo; end that one, or write another port, \
                     127.0.0.1:0 for any that is free"
                );
                Error::Flag { flag: "--listen", problem }
            }
            other => other.into(),
        };
        let listener = addr.bind().await.map_err(taken)?;
        let url = format!("http://{}/", listener.local_addr()?);
        Ok(Self { listener, url })
    }

    /// Serves until the stop.
    pub(crate) async fn serve(
        self,
        show: Arc<Show>,
        dashboard: Option<String>,
        stop: Shutdown,
    ) -> Result<(), Error> {
        let around = Surroundings { dashboard, session: None };
        let guide = Guide::new(show, around, stop.clone());
        let assets = Arc::new(Assets::guide()?);
        let page = move |request: Request| {
            let assets = assets.clone();
            async move { page::page(&assets, &request) }
        };
        let app = router(guide).fallback(page).layer(middleware::from_fn(same_machine));
        let until = async move { stop.requested().await };
        axum::serve(self.listener, app).with_graceful_shutdown(until).await?;
        Ok(())
    }
}

/// The calls of one fleet.
pub(crate) fn router(guide: Arc<Guide>) -> Router {
    Router::new()
        .route("/api/state", get(whole))
        .route("/api/stream", get(stream::open))
        .route("/api/demand", post(writes::demand))
        .route("/api/scenario", post(writes::scenario))
        .route("/api/reset", post(writes::reset))
        .with_state(guide)
}

async fn whole(State(guide): State<Arc<Guide>>) -> Response {
    let sequence = guide.next();
    answer(StatusCode::OK, &state::whole(&guide.show, sequence, &guide.around()))
}

/// A name that somebody else made point to loopback is not us: without this, any web page could
/// break the fleet.
async fn same_machine(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback(host) {
        return next.run(request).await;
    }
    let text = format!("this demo is not called {host:?}; open it as localhost or 127.0.0.1");
    refuse(StatusCode::FORBIDDEN, &text)
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

pub(crate) fn refuse(status: StatusCode, text: &str) -> Response {
    let mut response = answer(status, &json!({ "error": text }));
    if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
    }
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().map(str::trim) == Some("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "localhost:8090", "127.0.0.1:8090", "[::1]:8090", "127.0.0.1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "evil.example:8090", "localhost.evil.example", "10.0.0.1:8090", "[::2]:1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
