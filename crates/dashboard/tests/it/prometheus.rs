//! A Prometheus that knows one series, which has every label.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::rig::Mood;

#[derive(Clone)]
struct Script {
    mood: Mood,
    /// What every value is.
    value: String,
    /// What it is for one pod.
    of_pod: Option<(String, String)>,
    /// Whether it knows anything.
    empty: bool,
    asked: Vec<String>,
}

pub(crate) struct Prometheus {
    pub(crate) addr: SocketAddr,
    script: Arc<watch::Sender<Script>>,
}

impl Prometheus {
    pub(crate) async fn start() -> Self {
        let script = Script {
            mood: Mood::Good,
            value: "3".to_owned(),
            of_pod: None,
            empty: false,
            asked: Vec::new(),
        };
        let script = Arc::new(watch::Sender::new(script));
        let router = Router::new()
            .route("/api/v1/query", get(query))
            .route("/api/v1/query_range", get(query_range))
            .with_state(script.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { addr, script }
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.script.send_modify(|script| script.mood = mood);
    }

    pub(crate) fn say(&self, value: &str) {
        self.script.send_modify(|script| value.clone_into(&mut script.value));
    }

    pub(crate) fn say_of(&self, pod: &str, value: &str) {
        let of_pod = Some((format!("pod=\"{pod}\""), value.to_owned()));
        self.script.send_modify(|script| script.of_pod = of_pod);
    }

    pub(crate) fn know_nothing(&self) {
        self.script.send_modify(|script| script.empty = true);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.script.borrow().asked.clone()
    }
}

type Scripted = State<Arc<watch::Sender<Script>>>;
type Params = Query<std::collections::HashMap<String, String>>;

async fn answer(script: &watch::Sender<Script>, params: &Params, values: Value) -> Response {
    let now = script.borrow().clone();
    script.send_modify(|script| script.asked.push(params["query"].clone()));
    match now.mood {
        Mood::Failing => (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        Mood::Hanging => std::future::pending().await,
        Mood::Good => {
            let mut series = json!({"metric": {
                "pod": "shard-0", "state": "idle", "capacity_type": "spot", "kind": "Delete",
                "interruption_penalty_bucket": "pinned", "reason": "no_matching_supply",
                "phase": "phase1", "outcome": "success",
            }});
            series.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
            let result = if now.empty { json!([]) } else { json!([series]) };
            Json(json!({"status": "success", "data": {"result": result}})).into_response()
        }
    }
}

impl Script {
    /// The value that is asked for.
    fn value(&self, params: &Params) -> String {
        let of_pod = self.of_pod.iter().find(|(pod, _)| params["query"].contains(pod));
        of_pod.map_or(&self.value, |(_, value)| value).clone()
    }
}

async fn query(State(script): Scripted, params: Params) -> Response {
    let value = script.borrow().value(&params);
    answer(&script, &params, json!({"value": [1_700_000_000.5, value]})).await
}

async fn query_range(State(script): Scripted, params: Params) -> Response {
    let value = script.borrow().value(&params);
    let start: i64 = params["start"].parse().unwrap();
    answer(&script, &params, json!({"values": [[start, value]]})).await
}
