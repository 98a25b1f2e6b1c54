//! A Prometheus that knows one series, which has every label, unless it is told others.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::rig::Mood;

#[derive(Clone)]
struct Script {
    mood: Mood,
    /// What every value is.
    value: String,
    /// Whether it knows anything.
    empty: bool,
    /// Series by what is in the question.
    told: Vec<(&'static str, Vec<Series>)>,
    asked: Vec<String>,
    /// The only `Authorization` that it takes, if it asks for one.
    takes: Option<String>,
}

/// Labels, and values by instant.
#[derive(Clone)]
struct Series(Value, Vec<Option<&'static str>>);

pub(crate) struct Prometheus {
    pub(crate) addr: SocketAddr,
    script: Arc<watch::Sender<Script>>,
}

impl Prometheus {
    pub(crate) async fn start() -> Self {
        let script = Script {
            mood: Mood::Good,
            value: "3".to_owned(),
            empty: false,
            told: Vec::new(),
            asked: Vec::new(),
            takes: None,
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

    pub(crate) fn know_nothing(&self) {
        self.script.send_modify(|script| script.empty = true);
    }

    /// Knows these series alone where a question contains this text: of each its labels, and its
    /// values from the first instant on, or now.
    pub(crate) fn tell(&self, of: &'static str, series: &[(Value, &[Option<&'static str>])]) {
        let series = series.iter().map(|(labels, values)| Series(labels.clone(), values.to_vec()));
        let series = series.collect();
        self.script.send_modify(|script| script.told.push((of, series)));
    }

    /// Answers nobody else.
    pub(crate) fn take_only(&self, authorization: &str) {
        self.script.send_modify(|script| script.takes = Some(authorization.to_owned()));
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.script.borrow().asked.clone()
    }
}

type Scripted = State<Arc<watch::Sender<Script>>>;
type Params = Query<std::collections::HashMap<String, String>>;

async fn answer(
    script: &watch::Sender<Script>,
    params: &Params,
    headers: &HeaderMap,
    values: impl Fn(&[Option<&str>]) -> Value,
) -> Response {
    let now = script.borrow().clone();
    let query = params["query"].clone();
    let told = now.told.iter().find(|(of, _)| query.contains(of)).map(|(_, series)| series.clone());
    script.send_modify(|script| script.asked.push(query));
    let given = headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap());
    if now.takes.is_some() && now.takes.as_deref() != given {
        return (StatusCode::UNAUTHORIZED, "who are you").into_response();
    }
    match now.mood {
        Mood::Failing => (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        Mood::Hanging => std::future::pending().await,
        Mood::Good => {
            let series = |labels: &Value, of: &[Option<&str>]| {
                let mut series = json!({ "metric": labels });
                let values = values(of);
                series.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
                series
            };
            let labels = json!({
                "pod": "shard-0", "state": "idle", "capacity_type": "spot", "kind": "Delete",
                "interruption_penalty_bucket": "pinned", "reason": "no_matching_supply",
                "phase": "phase1", "outcome": "success",
            });
            let result = match told {
                Some(told) => told.iter().map(|Series(labels, of)| series(labels, of)).collect(),
                None if now.empty => json!([]),
                None => json!([series(&labels, &[Some(now.value.as_str())])]),
            };
            Json(json!({"status": "success", "data": {"result": result}})).into_response()
        }
    }
}

async fn query(State(script): Scripted, params: Params, headers: HeaderMap) -> Response {
    answer(&script, &params, &headers, |values| json!({"value": [1_700_000_000.5, values[0]]}))
        .await
}

async fn query_range(State(script): Scripted, params: Params, headers: HeaderMap) -> Response {
    let number = |name: &str| -> i64 { params[name].parse().unwrap() };
    let (start, step) = (number("start"), number("step"));
    let values = |values: &[Option<&str>]| {
        let instants = (0..).map(|at| start + at * step);
        let known = instants.zip(values).filter_map(|(at, value)| Some(json!([at, (*value)?])));
        json!({ "values": known.collect::<Vec<_>>() })
    };
    answer(&script, &params, &headers, values).await
}
