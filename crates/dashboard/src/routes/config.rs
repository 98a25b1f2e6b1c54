//! What this dashboard is, and whom it speaks to.

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Serialize;

use super::Shared;
use crate::{
    api::{Answer, Source},
    auth::Viewer,
};

#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
}

/// It answers, therefore it is.
pub(super) async fn health() -> Answer<Health> {
    Answer::now(Health { status: "ok" })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config {
    grafana_url: String,
    prometheus_wired: bool,
    metrics_by: Option<&'static str>,
    coordinator_wired: bool,
    kubeconfig_wired: bool,
    plaintext: bool,
    open_to_network: bool,
    auth_mode: &'static str,
    viewer: Option<Who>,
    logout: Option<&'static str>,
    version: &'static str,
    base_path: String,
    unmet_reasons: BTreeMap<&'static str, &'static str>,
    sources: BTreeMap<&'static str, Wired>,
}

#[derive(Serialize)]
struct Who {
    name: String,
    clusters: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Wired {
    wired: bool,
    flag: &'static str,
}

pub(super) async fn config(State(app): State<Shared>, viewer: Viewer) -> Answer<Config> {
    let sources = &app.sources;
    let metrics_by = sources.metrics.name();
    let wired = |source: Source, wired| Wired { wired, flag: source.flag() };
    let who = |viewer: Viewer| Who {
        clusters: viewer.clusters.map(|all| all.iter().cloned().collect()),
        name: viewer.name,
    };
    let actions = (0..=4).map(|reason| (reason, 0)).chain((1..=6).map(|detail| (0, detail)));
    let actions = actions.map(|(reason, detail)| bigfleet_model::unmet::of(reason, detail));
    let facts = &app.facts;
    Answer::now(Config {
        grafana_url: facts.grafana_url.clone().unwrap_or_default(),
        prometheus_wired: metrics_by.is_some(),
        metrics_by,
        coordinator_wired: sources.coordinator.is_wired(),
        kubeconfig_wired: sources.clusters.is_wired(),
        plaintext: facts.plaintext,
        open_to_network: facts.open_to_network,
        auth_mode: facts.auth_mode,
        viewer: (facts.auth_mode != "none").then(|| who(viewer)),
        logout: (facts.auth_mode == "oidc").then_some("auth/logout"),
        version: env!("CARGO_PKG_VERSION"),
        base_path: facts.base_path.to_string(),
        unmet_reasons: actions.map(|reason| (reason.name, reason.action)).collect(),
        sources: [
            ("prometheus", wired(Source::Prometheus, metrics_by.is_some())),
            ("coordinator", wired(Source::Coordinator, sources.coordinator.is_wired())),
            ("kubeconfig", wired(Source::Kubeconfig, sources.clusters.is_wired())),
            ("grafana", Wired { wired: facts.grafana_url.is_some(), flag: "--grafana-url" }),
        ]
        .into(),
    })
}
