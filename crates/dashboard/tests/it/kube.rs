//! API servers of two managed clusters, behind one port.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch};

use crate::rig::Mood;

pub(crate) struct Kube {
    addr: SocketAddr,
    mood: Arc<watch::Sender<Mood>>,
    dir: TempDir,
}

impl Kube {
    pub(crate) async fn start() -> Self {
        let mood = Arc::new(watch::Sender::new(Mood::Good));
        let router = Router::new()
            .route("/{cluster}/apis/bigfleet.lucy.sh/v1alpha1/{kind}", get(list))
            .with_state(mood.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let kube = Self { addr, mood, dir: TempDir::new().unwrap() };
        kube.write();
        kube
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    fn write(&self) {
        let named = |name: &str| json!({"name": name, "cluster": {"server": format!("http://{}/{name}", self.addr)}});
        let context =
            |name: &str| json!({"name": name, "context": {"cluster": name, "user": "reader"}});
        let config = json!({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [named("prod-a"), named("prod-b")],
            "contexts": [context("prod-a"), context("prod-b")],
            "users": [{"name": "reader", "user": {"token": "t"}}],
        });
        std::fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }
}

/// The second cluster fails whatever the mood of the first.
async fn list(
    State(mood): State<Arc<watch::Sender<Mood>>>,
    Path((cluster, kind)): Path<(String, String)>,
) -> Response {
    let now = *mood.borrow();
    match now {
        Mood::Hanging => std::future::pending().await,
        Mood::Failing => failure(),
        Mood::Good if cluster == "prod-b" => failure(),
        Mood::Good => Json(json!({
            "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "List",
            "metadata": {}, "items": items(&kind),
        }))
        .into_response(),
    }
}

fn failure() -> Response {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "forbidden: no reader role", "reason": "Forbidden", "code": 403});
    (StatusCode::FORBIDDEN, Json(status)).into_response()
}

fn items(kind: &str) -> Value {
    match kind {
        "capacityrequests" => json!([
            {"metadata": {"name": "done", "namespace": "n"},
             "spec": {"priority": 1, "resources": {"cpu": "1"}},
             "status": {"phase": "Acknowledged"}},
            {"metadata": {"name": "waits", "namespace": "n"},
             "spec": {"priority": 1, "resources": {"cpu": "1"}},
             "status": {"phase": "Pending", "conditions": [{"type": "Satisfied", "status": "False",
                "reason": "NoMatchingSupply", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
        ]),
        "upcomingnodes" => json!([
            {"metadata": {"name": "u", "annotations": {"bigfleet.lucy.sh/machine-id": "m-1"}},
             "spec": {"resources": {}},
             "status": {"phase": "Ready", "nodeRef": {"name": "node-7"}}},
        ]),
        _ => json!([
            {"metadata": {"name": "hint"},
             "spec": {"availability": "High", "availableCount": 4, "cost": "0.38", "resources": {}}},
        ]),
    }
}
