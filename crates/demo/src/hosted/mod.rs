//! The demo for visitors: a fleet each, for as long as somebody is there.

mod client;
mod memory;
mod table;

use std::{
    collections::HashMap,
    io::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use bigfleet_dashboard::Assets;
use bigfleet_net::shutdown::Shutdown;
use serde_json::json;
use table::{Memory, PER_CLIENT, Refusal, Secret, Table};
use tokio::time::Instant;
use tower::Service as _;

use crate::{
    Error, dashboard,
    flags::DemoFlags,
    guide::{self, Guide, Server, answer, refuse},
    scenario::stage,
    secret::secret,
    show::{Piece, Show},
    state::Surroundings,
};

/// Between two looks at who has left.
const LOOK: Duration = Duration::from_secs(1);
/// Under which path dashboards are; a secret follows.
const BOARDS: &str = "/dashboard/";
const OVER: &str = "the session is over; POST /api/session for another";

/// One visitor's fleet.
struct Tenant {
    show: Arc<Show>,
    guide: Arc<Guide>,
    calls: Router,
    board: Option<Shown>,
    stop: Shutdown,
    /// When its session ends in any case, by the wall clock.
    ends: i64,
}

/// A visitor's dashboard, behind a secret of its own: a page that is opened by a link can send
/// none in a header, and this one only lets look.
struct Shown {
    secret: Secret,
    router: Router,
}

/// A fleet without a visitor yet. All that takes time is done: whoever asks for it and leaves
/// at once must not take it along.
struct Waiting {
    show: Arc<Show>,
    board: Option<Shown>,
    stop: Shutdown,
}

/// All of them.
struct Host {
    seed: u64,
    assets: Assets,
    table: Mutex<Table>,
    tenants: Mutex<HashMap<Secret, Tenant>>,
    /// A fleet that waits for its visitor.
    warm: Warm<Waiting>,
    /// How much memory there is.
    memory: fn() -> Option<Memory>,
}

/// What waits for a visitor.
type Warm<T> = Mutex<Option<T>>;

/// Gives it away, if that fits; else says whether it does.
fn hand_out<T>(warm: &Warm<T>, fits: bool) -> Result<T, bool> {
    let waiting = if fits { lock(warm).take() } else { None };
    waiting.ok_or(fits)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves visitors until the stop.
pub(crate) async fn run(flags: &DemoFlags, stop: &Shutdown) -> Result<(), Error> {
    let server = Server::bind(&flags.listen).await?;
    writeln!(std::io::stdout(), "visitors   {}", server.url)?;
    let host = Arc::new(Host {
        seed: flags.seed,
        assets: Assets::guide()?,
        table: Mutex::default(),
        tenants: Mutex::default(),
        warm: Mutex::default(),
        memory: memory::memory,
    });
    let app =
        Router::new().route("/api/session", post(open)).fallback(dispatch).with_state(host.clone());
    let until = stop.clone();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(server.listener, app)
        .with_graceful_shutdown(async move { until.requested().await });
    tokio::select! {
        served = serving => served?,
        () = host.reap() => {}
        () = host.warm_up() => {}
        () = stop.requested() => {}
    }
    let tenants: Vec<Tenant> = lock(&host.tenants).drain().map(|(_, tenant)| tenant).collect();
    for tenant in tenants {
        tenant.stop.request();
        tenant.show.close().await?;
    }
    let warm = lock(&host.warm).take();
    match warm {
        Some(warm) => {
            warm.stop.request();
            warm.show.close().await
        }
        None => Ok(()),
    }
}

impl Host {
    /// Whether one more fleet fits beside those that have a visitor: the one that waits, or is
    /// still to be started.
    fn fits(&self) -> bool {
        let running = lock(&self.table).len();
        // Where nobody tells how much memory there is, nobody is let in.
        (self.memory)().is_some_and(|memory| memory.fits(running))
    }

    /// Ends the fleets of those who have left.
    async fn reap(&self) {
        loop {
            let due = lock(&self.table).expire(Instant::now());
            for secret in due {
                let tenant = lock(&self.tenants).remove(&secret);
                if let Some(tenant) = tenant {
                    tenant.stop.request();
                    if let Err(error) = tenant.show.close().await {
                        tracing::error!(%error, "a fleet did not end");
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Keeps one fleet ready, while there is room.
    async fn warm_up(&self) {
        loop {
            if lock(&self.warm).is_none() && self.fits() {
                match Show::open(self.seed, true, false).await {
                    Ok(show) => {
                        let (show, stop) = (Arc::new(show), Shutdown::new());
                        let board = board(&show, &stop).await;
                        *lock(&self.warm) = Some(Waiting { show, board, stop });
                    }
                    Err(error) => tracing::error!(%error, "no fleet could be started"),
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn open(
    State(host): State<Arc<Host>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let client = client::client(peer.ip(), &headers);
    // Before anything is handed out: whoever comes first must not have them all.
    if let Some(wait) = lock(&host.table).may_not_begin(client, Instant::now()) {
        return enough(wait);
    }
    let Waiting { show, board, stop } = match hand_out(&host.warm, host.fits()) {
        Ok(waiting) => waiting,
        // One is being started.
        Err(true) => return full(Duration::from_secs(5)),
        Err(false) => return full(lock(&host.table).next_end(Instant::now())),
    };
    let Ok(secret) = secret() else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "no secret could be drawn");
    };
    let now = Instant::now();
    let path = board.as_ref().map(|board| format!("{BOARDS}{}/", board.secret));
    let around = Surroundings { dashboard: path, session: None };
    let guide = Guide::new(show.clone(), around, stop.clone());
    let calls = guide::router(guide.clone());
    let (playing, until) = (show.clone(), stop.clone());
    tokio::spawn(async move {
        playing.play(Piece::Reset).await;
        tokio::select! {
            () = playing.look_after() => {}
            () = until.requested() => {}
        }
    });
    let ends = wall(lock(&host.table).begin(secret.clone(), client, now), now);
    let tenant = Tenant { show, guide, calls, board, stop, ends };
    lock(&host.tenants).insert(secret.clone(), tenant);
    answer(StatusCode::CREATED, &json!({"session": secret, "endsAtUnixMs": ends}))
}

/// A dashboard of one fleet. Without one the rest is there all the same.
async fn board(show: &Show, stop: &Shutdown) -> Option<Shown> {
    let secret = secret().ok()?;
    let path = format!("{BOARDS}{secret}/").parse().ok()?;
    match dashboard::start(&show.fleet, path, stop).await {
        Ok(board) => Some(Shown { secret, router: board.router }),
        Err(error) => {
            tracing::error!(%error, "a visitor has no dashboard");
            None
        }
    }
}

fn full(wait: Duration) -> Response {
    later(StatusCode::SERVICE_UNAVAILABLE, "no fleet is free", wait)
}

fn enough(wait: Duration) -> Response {
    let text = format!(
        "{PER_CLIENT} fleets run for this address already; go on with one of them, or leave one alone"
    );
    later(StatusCode::TOO_MANY_REQUESTS, &text, wait)
}

/// Says when to try again.
fn later(status: StatusCode, why: &str, wait: Duration) -> Response {
    let seconds = wait.as_secs().max(1);
    let mut response = refuse(status, &format!("{why}; try again in {seconds} s"));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

impl Host {
    /// Somebody is there; says when the session ends, by the wall clock.
    fn touch(&self, secret: &str) -> Result<(i64, i64), Refusal> {
        let now = Instant::now();
        let (end, idle) = lock(&self.table).touch(secret, now)?;
        let mut ends = (wall(end, now), wall(idle, now));
        if let Some(tenant) = lock(&self.tenants).get(secret) {
            ends.0 = tenant.ends;
            tenant.guide.session(ends);
        }
        Ok(ends)
    }
}

impl Host {
    /// A visitor looks at the dashboard, and so is there.
    async fn look(&self, board: &str, request: Request) -> Response {
        let found = lock(&self.tenants).iter().find_map(|(session, tenant)| {
            let shown = tenant.board.as_ref().filter(|shown| shown.secret == board)?;
            Some((session.clone(), shown.router.clone()))
        });
        match found {
            Some((session, mut router)) if self.touch(&session).is_ok() => {
                router.call(request).await.unwrap_or_else(|never| match never {})
            }
            Some(_) => refuse(StatusCode::GONE, OVER),
            None => {
                let text = "there is no such dashboard; it ends with its session, see the guide";
                refuse(StatusCode::NOT_FOUND, text)
            }
        }
    }
}

/// A moment by the wall clock, which says `now` now.
fn wall(at: Instant, now: Instant) -> i64 {
    stage::now() + at.duration_since(now).as_millis() as i64
}

async fn dispatch(State(host): State<Arc<Host>>, request: Request) -> Response {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix(BOARDS) {
        let secret = rest.split('/').next().unwrap_or_default().to_owned();
        return host.look(&secret, request).await;
    }
    if !path.starts_with("/api/") {
        return guide::page::page(&host.assets, &request);
    }
    let Some(secret) = shown(&request) else {
        let text = "no session; POST /api/session, and send Authorization: Bearer <session>";
        return refuse(StatusCode::UNAUTHORIZED, text);
    };
    match host.touch(&secret) {
        Err(Refusal::Unknown) => return refuse(StatusCode::UNAUTHORIZED, "no such session"),
        Err(Refusal::Over) => {
            return refuse(StatusCode::GONE, OVER);
        }
        Ok(_) if path == "/api/heartbeat" => return StatusCode::NO_CONTENT.into_response(),
        Ok(_) => {}
    }
    let calls = lock(&host.tenants).get(&secret).map(|tenant| tenant.calls.clone());
    match calls {
        Some(mut calls) => calls.call(request).await.unwrap_or_else(|never| match never {}),
        None => refuse(StatusCode::GONE, OVER),
    }
}

/// The secret that a request shows: in a header, or where a browser cannot send one, in the query.
fn shown(request: &Request) -> Option<Secret> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(secret) = header.and_then(|value| value.strip_prefix("Bearer ")) {
        return Some(secret.to_owned());
    }
    let pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.filter_map(|pair| pair.strip_prefix("session=")).next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(uri: &str, header: Option<&str>) -> Request {
        let mut request = Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header(AUTHORIZATION, header);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn a_secret_is_shown_in_the_header_or_in_the_query() {
        assert_eq!(shown(&request("/api/state", Some("Bearer x"))).as_deref(), Some("x"));
        assert_eq!(shown(&request("/api/stream?a=b&session=y", None)).as_deref(), Some("y"));
        assert_eq!(shown(&request("/api/state", Some("Basic x"))), None);
        assert_eq!(shown(&request("/api/state", None)), None);
    }

    fn host(memory: fn() -> Option<Memory>) -> Arc<Host> {
        Arc::new(Host {
            seed: 0,
            assets: Assets::guide().unwrap(),
            table: Mutex::default(),
            tenants: Mutex::default(),
            warm: Mutex::default(),
            memory,
        })
    }

    fn peer(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 1).into()
    }

    async fn ask(host: Arc<Host>, peer: SocketAddr) -> Response {
        open(State(host), ConnectInfo(peer), HeaderMap::new()).await
    }

    /// Of 10 GiB.
    fn used(percent: u64) -> Option<Memory> {
        let total = 10 << 30;
        Some(Memory { total, used: total / 100 * percent })
    }

    #[tokio::test]
    async fn a_fleet_that_waits_is_kept_while_memory_is_short() {
        let warm = Mutex::new(Some("a fleet"));
        let short = host(|| used(81));
        assert_eq!(hand_out(&warm, short.fits()), Err(false));
        assert_eq!(*lock(&warm), Some("a fleet"), "it waits on");
        lock(&short.table).begin("other".to_owned(), peer(9).ip(), Instant::now());
        let response = ask(short, peer(1)).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let again: u64 = response.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((295..=300).contains(&again), "when the next session ends: {again}");

        let enough = host(|| used(79));
        assert_eq!(hand_out(&warm, enough.fits()), Ok("a fleet"));
        assert_eq!(hand_out(&warm, enough.fits()), Err(true), "the next is being started");
        assert_eq!(ask(enough, peer(1)).await.headers()[RETRY_AFTER], "5");
    }

    #[tokio::test]
    async fn one_client_has_so_many_fleets_and_is_told_what_to_do() {
        let host = host(|| used(10));
        for number in 0..PER_CLIENT {
            lock(&host.table).begin(number.to_string(), peer(1).ip(), Instant::now());
        }
        let refused = ask(host.clone(), peer(1)).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let again: u64 = refused.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((295..=300).contains(&again), "when one of them ends: {again}");
        let body = axum::body::to_bytes(refused.into_body(), 1_000).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        for part in ["3 fleets", "go on with one", "try again in"] {
            assert!(text.contains(part), "{text}");
        }
        let other = ask(host, peer(2)).await;
        assert_eq!(other.status(), StatusCode::SERVICE_UNAVAILABLE, "none is warm yet");
    }

    #[tokio::test]
    async fn a_dashboard_is_for_whom_its_secret_was_given() {
        let host = host(|| None);
        for path in ["/dashboard/", "/dashboard/0123/", "/dashboard/0123/api/shards"] {
            let response = dispatch(State(host.clone()), request(path, None)).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn without_a_session_nothing_is_told_and_after_it_that_it_is_over() {
        let host = host(|| None);
        let ask = async |header: Option<&str>| {
            dispatch(State(host.clone()), request("/api/state", header)).await.status()
        };
        assert_eq!(ask(None).await, StatusCode::UNAUTHORIZED);
        assert_eq!(ask(Some("Bearer other")).await, StatusCode::UNAUTHORIZED);
        lock(&host.table).begin("mine".to_owned(), peer(1).ip(), Instant::now());
        assert_eq!(ask(Some("Bearer mine")).await, StatusCode::GONE, "it has no fleet");
    }
}
