//! Every route of the API (experience chapter §3.2), in one table.

mod clusters;
mod config;
mod decisions;
mod explain;
mod fanout;
mod finops;
mod fleet;
mod machine_pages;
mod machines;
mod needs;
mod numbers;
mod reports;
mod sessions;
mod shards;
mod stream;
mod topology;
mod whatif;
mod whereabouts;

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    routing::{MethodRouter, get},
};

pub(crate) use self::{finops::Money, topology::look as look_at_topology, whatif::Turns};
use crate::{
    App,
    api::{Refusal, Source},
};

type Shared = Arc<App>;

/// One route.
#[derive(Debug)]
pub struct Route {
    /// Under either mount.
    pub path: &'static str,
    /// The source that it cannot do without.
    pub source: Option<Source>,
    /// A question that stubs of all sources can answer.
    pub example: &'static str,
    handler: fn() -> MethodRouter<Shared>,
}

macro_rules! table {
    ($($path:literal $source:expr, $example:literal => $handler:path;)+) => {
        /// All of them.
        pub const TABLE: &[Route] = &[$(Route {
            path: $path,
            source: $source,
            example: $example,
            handler: || get($handler).fallback(other_method),
        }),+];
    };
}

const PROMETHEUS: Option<Source> = Some(Source::Prometheus);
const COORDINATOR: Option<Source> = Some(Source::Coordinator);
const SHARD: Option<Source> = Some(Source::Shard);
const KUBECONFIG: Option<Source> = Some(Source::Kubeconfig);

table! {
    "/health" None, "/health" => config::health;
    "/config" None, "/config" => config::config;
    "/fleet/overview" PROMETHEUS, "/fleet/overview" => fleet::overview;
    "/fleet/actions" PROMETHEUS, "/fleet/actions?duration=1h&step=1m" => fleet::actions;
    "/shards" PROMETHEUS, "/shards" => shards::list;
    "/shards/{pod}" PROMETHEUS, "/shards/shard-0" => shards::detail;
    "/shards/{pod}/trends" PROMETHEUS, "/shards/shard-0/trends" => shards::trends;
    "/clusters" KUBECONFIG, "/clusters" => clusters::list;
    "/clusters/{id}" KUBECONFIG, "/clusters/prod-a" => clusters::detail;
    "/available-capacity" KUBECONFIG, "/available-capacity" => clusters::available_capacity;
    "/topology" COORDINATOR, "/topology" => topology::topology;
    "/shard-reports" COORDINATOR, "/shard-reports" => reports::reports;
    "/needs" SHARD, "/needs?shard=shard-0" => needs::needs;
    "/finops/snapshot" PROMETHEUS, "/finops/snapshot" => finops::snapshot;
    "/finops/trend" PROMETHEUS, "/finops/trend" => finops::trend;
    "/finops/shard" SHARD, "/finops/shard?shard=shard-0" => finops::shard;
    "/finops/savings" SHARD, "/finops/savings?shard=shard-0" => finops::savings;
    "/machines" SHARD, "/machines?shard=shard-0&state=idle" => machines::list;
    "/machines/{shard}/{id}" SHARD, "/machines/shard-0/m-1" => machines::detail;
    "/sessions" SHARD, "/sessions?shard=shard-0" => sessions::sessions;
    "/decisions" SHARD, "/decisions?shard=shard-0&after=-1" => decisions::decisions;
    "/explain" SHARD, "/explain?shard=shard-0&cluster=prod-a&fingerprint=f" => explain::explain;
    "/whatif" SHARD, "/whatif?shard=shard-0&cluster=prod-a&need=%7B%22aggregateResources%22%3A%7B%22cpu%22%3A%221%22%7D%7D" => whatif::whatif;
    "/stream" COORDINATOR, "/stream?topics=summary" => stream::stream;
}

/// With any other method.
pub(crate) async fn other_method() -> Refusal {
    Refusal::Method { allowed: "GET, HEAD" }
}

/// The API, without its mount.
pub(crate) fn router(app: &Shared) -> Router<Shared> {
    TABLE.iter().fold(Router::new(), |router, route| {
        let metrics = app.metrics.clone();
        let counted = middleware::from_fn(move |request: Request, next: Next| {
            let metrics = metrics.clone();
            async move {
                let response = next.run(request).await;
                metrics.answered(route.path, response.status());
                response
            }
        });
        router.route(route.path, (route.handler)().layer(counted))
    })
}
