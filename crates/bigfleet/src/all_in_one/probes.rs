//! Metrics and probes: a server each, or one for parts that share an address.

use std::collections::BTreeMap;

use bigfleet_net::{
    Error as NetError, flags::DiagnosticFlags, http::HttpServer, listen::MetricsAddr,
    readiness::Readiness, shutdown::Shutdown, tls::Security,
};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

/// Says whether a part is alive.
pub(super) type Alive = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Servers that are not started yet, by their addresses.
#[derive(Default)]
pub(super) struct Probes(BTreeMap<String, Probe>);

struct Probe {
    addr: MetricsAddr,
    registry: Registry,
    parts: Vec<Readiness>,
    alive: Vec<Alive>,
}

impl Probes {
    /// Adds a part at an address.
    pub(super) fn add(
        &mut self,
        addr: &MetricsAddr,
        readiness: Readiness,
        alive: Option<Alive>,
        register: impl FnOnce(&mut Registry),
    ) {
        let probe = self.0.entry(addr.to_string()).or_insert_with(|| {
            let mut registry = Registry::default();
            bigfleet_net::metrics::register(&mut registry, &Security::Plaintext);
            Probe { addr: addr.clone(), registry, parts: Vec::new(), alive: Vec::new() }
        });
        register(&mut probe.registry);
        probe.parts.push(readiness);
        probe.alive.extend(alive);
    }

    /// Serves until the stop.
    pub(super) fn serve(
        self,
        diagnostics: &DiagnosticFlags,
        stop: &Shutdown,
        side: &mut JoinSet<Result<(), NetError>>,
    ) {
        for Probe { addr, registry, parts, alive } in self.0.into_values() {
            let readiness = Readiness::new("starting");
            side.spawn(all(parts, readiness.clone()));
            let server = HttpServer::new(registry, readiness)
                .liveness(move || alive.iter().try_for_each(|alive| alive()))
                .debug_endpoints(diagnostics.debug_endpoints);
            let until = stop.clone();
            side.spawn(async move { server.serve_at(&addr, until).await });
        }
    }
}

/// Ready as soon as, and as long as, all parts are.
async fn all(parts: Vec<Readiness>, whole: Readiness) -> Result<(), NetError> {
    let mut changes: Vec<_> = parts.iter().map(Readiness::subscribe).collect();
    loop {
        match parts.iter().map(Readiness::state).find_map(Result::err) {
            Some(reason) => whole.set_not_ready(reason),
            None => whole.set_ready(),
        }
        let waiting = changes.iter_mut().map(|change| Box::pin(change.changed()));
        let (changed, _, _) = futures_util::future::select_all(waiting).await;
        if changed.is_err() {
            return Ok(());
        }
    }
}
