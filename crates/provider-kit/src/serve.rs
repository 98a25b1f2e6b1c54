//! A provider process, from flags to exit code.

use std::{fmt::Display, process::ExitCode, sync::Arc};

use bigfleet_net::{
    grpc::GrpcServer, http::HttpServer, identity::Identity, metrics, readiness::Readiness,
    rule::Rule, shutdown::Shutdown, telemetry::Telemetry,
};
use prometheus_client::registry::Registry;

use crate::{
    Error,
    cloud::Cloud,
    flags::ProviderFlags,
    kit::Kit,
    store::{FileStore, MemStore, Store},
};

/// The store that the flags name.
pub fn open_store(flags: &ProviderFlags) -> Result<Arc<dyn Store>, Error> {
    if flags.state.as_os_str().is_empty() {
        tracing::warn!(
            "state is kept in memory: a restart forgets bindings and fence marks; give --state"
        );
        return Ok(Arc::new(MemStore::new()));
    }
    Ok(Arc::new(FileStore::open(&flags.state)?))
}

/// Serves until the stop is asked for: not ready, then the calls drain, then the
/// store is closed.
pub async fn serve<C: Cloud>(
    cloud: C,
    store: Arc<dyn Store>,
    flags: &ProviderFlags,
    shutdown: Shutdown,
) -> Result<(), Error> {
    let security = flags.tls.load()?;
    let identity = Identity::Provider(flags.provider.clone());
    security.check_own_identity(&Rule::exactly(identity))?;
    let readiness = Readiness::new("starting");
    let kit = Kit::start(cloud, store, flags.config(), readiness.clone()).await?;
    let served = async {
        let mut registry = Registry::default();
        metrics::register(&mut registry, &security);
        kit.register_metrics(&mut registry);
        let http = HttpServer::new(registry, readiness.clone())
            .debug_endpoints(flags.diagnostics.debug_endpoints);
        let grpc = GrpcServer::new(security.clone(), readiness.clone())
            .reflection(flags.reflection)
            .add_service(kit.service().into_server());
        let listener = flags.addr.bind().await?;
        let stop = async {
            shutdown.requested().await;
            kit.refuse();
            Ok(())
        };
        tokio::try_join!(
            grpc.serve(listener, shutdown.clone()),
            http.serve_at(&flags.metrics.metrics_addr, shutdown.clone()),
            stop,
        )
    }
    .await;
    kit.stop().await;
    served.map(drop).map_err(Error::from)
}

/// The `main` of a provider: `make` builds its cloud, within the runtime.
pub fn main<C: Cloud, E: Display>(
    name: &'static str,
    flags: &ProviderFlags,
    make: impl AsyncFnOnce() -> Result<C, E>,
) -> ExitCode {
    main_on(name, flags, open_store, make)
}

/// [`main`] on a store of one's own.
pub fn main_on<C: Cloud, E: Display>(
    name: &'static str,
    flags: &ProviderFlags,
    store: impl FnOnce(&ProviderFlags) -> Result<Arc<dyn Store>, Error>,
    make: impl AsyncFnOnce() -> Result<C, E>,
) -> ExitCode {
    let run = async {
        let telemetry = Telemetry::init(name, &flags.log, &flags.diagnostics)
            .map_err(|error| error.to_string())?;
        let shutdown = Shutdown::on_signal().map_err(|error| error.to_string())?;
        let cloud = make().await.map_err(|error| error.to_string())?;
        let store = store(flags).map_err(|error| error.to_string())?;
        let served = serve(cloud, store, flags, shutdown).await;
        telemetry.flush().await;
        served.map_err(|error| error.to_string())
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(name, &error),
    };
    match runtime.block_on(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(name, &error),
    }
}

fn failed(name: &str, error: &impl Display) -> ExitCode {
    eprintln!("{name}: {error}");
    ExitCode::FAILURE
}
