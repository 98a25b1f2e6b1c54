//! What every route shares.

use std::sync::Arc;

use crate::{
    BasePath, Holds,
    api::Source,
    auth::Pages,
    metrics::Metrics,
    routes::{Money, Turns},
    source::{Sources, coalesce::Coalesced},
    stream::Hub,
};

/// What every route shares.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) facts: Facts,
    pub(crate) sources: Sources,
    pub(crate) pages: Pages,
    pub(crate) hub: Arc<Hub>,
    pub(crate) whatif_turns: Turns,
    pub(crate) money: Coalesced<String, Money>,
    pub(crate) metrics: Metrics,
}

/// What the app is told about its server.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) grafana_url: Option<String>,
    pub(crate) plaintext: bool,
    pub(crate) open_to_network: bool,
    pub(crate) auth_mode: &'static str,
    pub(crate) base_path: BasePath,
    pub(crate) holds: Holds,
}

impl App {
    pub(crate) fn new(
        facts: Facts,
        sources: Sources,
        pages: Pages,
        hub: Hub,
        metrics: Metrics,
    ) -> Self {
        let (hub, calls) = (Arc::new(hub), metrics.calls(Source::Shard));
        let (whatif_turns, money) = (Turns::new(&calls), Coalesced::new(&calls));
        Self { facts, sources, pages, hub, whatif_turns, money, metrics }
    }
}
