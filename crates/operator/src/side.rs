//! What runs beside the session: nodes and hints.

use std::{sync::Arc, time::Duration};

use bigfleet_in_cluster::{Error, Paced, events::Recorder};
use bigfleet_net::shutdown::Shutdown;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::watch;

use crate::{
    metrics::Metrics,
    pod_status::PodStatus,
    rollup::Demanded,
    session::{Downstream, Lead},
};

/// What it works with.
#[derive(Clone, Debug)]
pub struct Context {
    /// Whose frames are followed.
    pub cluster_id: String,
    /// The API server.
    pub paced: Paced,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where it tells.
    pub events: Recorder,
    /// What events about us regard.
    pub ourselves: ObjectReference,
    /// Who tells evicted pods.
    pub pod_status: Arc<PodStatus>,
    /// The profiles that our roll-ups name.
    pub demanded: watch::Receiver<Demanded>,
    /// Whether this process leads.
    pub lead: Lead,
}

/// Takes frames, and has caches and workers of its own.
pub trait Side: Downstream {
    /// Works until the stop is asked for.
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()>;

    /// Returns when its caches are filled, or that they are not after this time.
    fn synced(&self, cap: Duration) -> BoxFuture<'_, Result<(), Error>>;

    /// Why it cannot work just now, if it cannot: a cache is not filled, or a definition is missing.
    fn unready(&self) -> Option<String>;
}

/// Makes the side of an operator.
pub type MakeSide = Box<dyn FnOnce(Context) -> Arc<dyn Side> + Send>;
