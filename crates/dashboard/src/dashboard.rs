//! One dashboard: its listener, its router, its end.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use bigfleet_net::{http::HttpServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use http::Method;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::{
    App, Config, Error,
    api::Refusal,
    app::Facts,
    assets::Assets,
    auth::{self, AuthConfig, Guard, Pages},
    metrics::Metrics,
    routes,
    source::{Sources, web::Web},
    stream::Hub,
};

/// Answers under way when the stop comes get this long.
const DRAIN: Duration = Duration::from_secs(5);

/// A dashboard that listens.
#[derive(Debug)]
pub struct Dashboard {
    listener: TcpListener,
    addr: SocketAddr,
    router: Router,
    /// Ends the streams of viewers.
    streams: Shutdown,
    readiness: Readiness,
}

impl Dashboard {
    /// Checks what it is told, reads its files and listens. Sources are dialled when somebody asks.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let listener = config.listen.bind().await?;
        let addr = listener.local_addr().map_err(bigfleet_net::Error::Serve)?;
        let open = !addr.ip().to_canonical().is_loopback();
        if open && matches!(config.auth, AuthConfig::None) {
            tracing::warn!(%addr, "anybody who reaches this address sees the fleet; give --auth, or \
                listen on 127.0.0.1");
        }
        if matches!(config.security, Security::Plaintext) && !config.coordinator.is_empty() {
            tracing::warn!(
                "coordinator and shards are dialled in plaintext: nobody proves who they \
                are; give --tls-cert, --tls-key and --tls-ca"
            );
        }
        let web = Web::new()?;
        let metrics = Metrics::default();
        let sources = Sources::new(&config, &metrics, &web)?;
        let pages = Pages::new(&config.auth)?;
        let guard = Guard::new(&config.auth, &config.base_path, web)?;
        let assets = Arc::new(Assets::dashboard(&config.base_path, config.grafana_url.as_deref())?);
        let streams = Shutdown::new();
        let hub = Hub::new(boot()?, streams.clone(), metrics.viewers.clone());
        let facts = Facts {
            grafana_url: config.grafana_url.clone(),
            plaintext: matches!(config.security, Security::Plaintext),
            open_to_network: open && matches!(config.auth, AuthConfig::None),
            auth_mode: config.auth.name(),
            base_path: config.base_path.clone(),
            holds: config.holds,
        };
        let readiness = Readiness::new("starting");
        let mut registry = Registry::default();
        bigfleet_net::metrics::register(&mut registry, &config.security);
        metrics.register(&mut registry);
        let app = Arc::new(App::new(facts, sources, pages, hub, metrics));
        let probes = HttpServer::new(registry, readiness.clone())
            .debug_endpoints(config.debug_endpoints)
            .router();
        let router = router(&config, app, &Arc::new(guard), assets).merge(probes);
        Ok(Self { listener, addr, router, streams, readiness })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything that it serves, for a process with a server of its own. Requests need
    /// [`ConnectInfo`](axum::extract::ConnectInfo) where a proxy names viewers.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Where somebody on this machine finds it.
    #[must_use]
    pub fn url(&self) -> String {
        let ip = self.addr.ip();
        let host = if ip.is_unspecified() { IpAddr::from([127, 0, 0, 1]) } else { ip };
        format!("http://{}", SocketAddr::new(host, self.addr.port()))
    }

    /// Serves until the stop is asked for.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        tracing::info!(addr = %self.addr, "serving the dashboard");
        self.readiness.set_ready();
        let (stop, streams) = (shutdown.clone(), self.streams.clone());
        let service = self.router.into_make_service_with_connect_info::<SocketAddr>();
        let server = axum::serve(self.listener, service).with_graceful_shutdown(async move {
            stop.requested().await;
            streams.request();
        });
        tokio::select! {
            ended = async { server.await } => Ok(ended.map_err(bigfleet_net::Error::Serve)?),
            () = async { shutdown.requested().await; tokio::time::sleep(DRAIN).await } => Ok(()),
        }
    }
}

/// Tells this process's events from another's.
fn boot() -> Result<String, Error> {
    let number = getrandom::u64().map_err(|error| Error::System(error.to_string()))?;
    Ok(format!("{number:x}"))
}

fn router(config: &Config, app: Arc<App>, guard: &Arc<Guard>, assets: Arc<Assets>) -> Router {
    let api = || {
        let unknown = || async { Refusal::NotFound("no such route".to_owned()) };
        let api = routes::router(&app).fallback(unknown);
        api.layer(middleware::from_fn_with_state(guard.clone(), auth::require))
    };
    let page = {
        let (guard, assets) = (guard.clone(), assets.clone());
        move |request: Request| {
            let (guard, assets) = (guard.clone(), assets.clone());
            async move { serve_page(&guard, &assets, request).await }
        }
    };
    let all = Router::new()
        .nest("/api/v1", api())
        .nest("/api", api())
        .merge(auth::router(guard.clone()))
        .with_state(app)
        .fallback(page);
    // A proxy in front may strip the base path or pass it on.
    let prefix = config.base_path.prefix();
    let all =
        if prefix.is_empty() { all } else { Router::new().nest(prefix, all.clone()).merge(all) };
    all.layer(middleware::from_fn_with_state(assets, only_reads))
}

/// The page, to whoever may see it.
async fn serve_page(guard: &Guard, assets: &Assets, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match guard.send_to_login(&parts) {
        Some(redirect) => redirect,
        None => assets.serve(parts.uri.path(), &parts.headers),
    }
}

/// Nothing here changes anything, and browsers are told what else not to do.
async fn only_reads(State(assets): State<Arc<Assets>>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = if reads || request.uri().path().ends_with(auth::LOGOUT) {
        next.run(request).await
    } else {
        routes::other_method().await.into_response()
    };
    assets.guard(response.headers_mut());
    response
}
