//! Where data comes from (experience chapter §2), each of which may be missing.

mod cluster;
pub(crate) mod clusters;
pub(crate) mod coalesce;
pub(crate) mod coordinator;
pub(crate) mod decisions;
pub(crate) mod metrics;
mod needs;
mod places;
pub(crate) mod shards;
pub(crate) mod web;

use std::sync::Arc;

use self::{
    clusters::Clusters,
    coordinator::Coordinator,
    metrics::{Metrics, MetricsSource, Prometheus, Scraper},
    shards::Shards,
    web::Web,
};
use crate::{Config, Error, api::Source, metrics::Metrics as Counted};

/// All sources of a dashboard.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Prometheus, or the scraper.
    pub(crate) metrics: MetricsSource,
    /// The leader, and every replica.
    pub(crate) coordinator: Arc<Coordinator>,
    /// Shards that the coordinator lists.
    pub(crate) shards: Shards,
    /// Managed clusters.
    pub(crate) clusters: Clusters,
}

impl Sources {
    /// As configured; dials nothing yet but the scraper's targets.
    pub(crate) fn new(config: &Config, counted: &Counted, web: &Web) -> Result<Self, Error> {
        let security = &config.security;
        let metrics: Option<Arc<dyn Metrics>> = if let Some(url) = &config.prometheus_url {
            Some(Arc::new(Prometheus::new(url, web.clone())))
        } else if config.scrape.is_empty() {
            None
        } else {
            Some(Arc::new(Scraper::start(config.scrape.clone(), web)))
        };
        let coordinator = Arc::new(Coordinator::new(&config.coordinator, security, counted)?);
        Ok(Self {
            metrics: MetricsSource::new(metrics, &counted.calls(Source::Prometheus)),
            shards: Shards::new(coordinator.clone(), security, counted),
            coordinator,
            clusters: Clusters::open(config.kubeconfig.as_deref(), counted)?,
        })
    }
}
