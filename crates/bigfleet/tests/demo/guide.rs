//! The guide's API, as its page uses it.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use crate::rig::{Demo, PATIENCE, call, open};

/// Every key that a page may count on; `[]` stands for each element.
const KEYS: &str = "
sequence atUnixMs
demo.ready demo.seed demo.kubernetes demo.hosted demo.plaintext demo.startedInMs demo.upForMs
demo.residentBytes demo.dashboardUrl demo.unitText demo.problem demo.session
fleet.dollarsPerHour
fleet.tiers[].tier fleet.tiers[].label fleet.tiers[].capacityType fleet.tiers[].committed
fleet.tiers[].priceFrom fleet.tiers[].priceTo fleet.tiers[].interruptionProbability
fleet.tiers[].dollarsPerHour fleet.tiers[].total
fleet.tiers[].states.speculative fleet.tiers[].states.creating fleet.tiers[].states.idle
fleet.tiers[].states.configuring fleet.tiers[].states.configured fleet.tiers[].states.draining
fleet.tiers[].states.deleting fleet.tiers[].states.failed
workspaces[].id workspaces[].cluster workspaces[].shard workspaces[].label
workspaces[].levels.batch workspaces[].levels.production workspaces[].levels.critical
workspaces[].pods.batch.wanted workspaces[].pods.production.running
workspaces[].pods.critical.pending workspaces[].pods.gang.wanted
workspaces[].nodes workspaces[].machines.BARE_METAL workspaces[].machines.RESERVED
workspaces[].machines.ON_DEMAND workspaces[].machines.SPOT workspaces[].dollarsPerHour
workspaces[].connected workspaces[].rollupsHeld workspaces[].unmet
coordinators[].id coordinators[].running coordinators[].leader coordinators[].term
coordinators[].address coordinators[].pid
shards[].id shards[].running shards[].address shards[].pid shards[].epoch shards[].cycle
shards[].computedAtUnixMs shards[].stale shards[].rebuilding shards[].mode shards[].sessions
shards[].needs shards[].needsUnmet
tiers[].tier tiers[].priority tiers[].penaltyDollars
scenarios[].name scenarios[].title scenarios[].action scenarios[].mustBeSeen scenarios[].state
scenarios[].passed scenarios[].failed scenarios[].lastMs
run.name run.state run.startedAtUnixMs run.endedAtUnixMs run.steps[].phase run.steps[].text
run.steps[].state run.steps[].atUnixMs run.steps[].detail run.claims run.explain
decisions[].shard decisions[].sequence decisions[].cycle decisions[].atUnixMs decisions[].kind
decisions[].machine decisions[].cluster decisions[].priority decisions[].preemptorPriority
decisions[].effectiveCost decisions[].runnerUpCost decisions[].graceSeconds decisions[].reason
decisions[].outcome decisions[].error decisions[].ofSequence decisions[].text
real simulated";

/// Whether a key is there, in every element of a list that is not empty.
fn has(value: &Value, key: &str) -> bool {
    let Some((first, rest)) = key.split_once('.') else {
        return value.get(key).is_some();
    };
    match first.strip_suffix("[]") {
        None => value.get(first).is_some_and(|value| has(value, rest)),
        Some(list) => {
            let list = value.get(list).and_then(Value::as_array);
            list.is_some_and(|list| !list.is_empty() && list.iter().all(|it| has(it, rest)))
        }
    }
}

#[tokio::test]
async fn a_page_shows_the_fleet_and_plays_with_it() {
    let mut demo = Demo::start(&[]);
    demo.until_up().await;
    demo.until_at_rest().await;
    let state = demo.get("/api/state").await.json();
    for key in KEYS.split_whitespace() {
        assert!(has(&state, key), "{key} is not in {state:#}");
    }
    let names = |list: &str, key: &str| -> Vec<String> {
        let all = state[list].as_array().unwrap();
        all.iter().map(|it| it[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("workspaces", "id"), ["a", "b", "c"]);
    assert_eq!(names("coordinators", "id").len(), 3);
    assert_eq!(names("shards", "mode"), ["ACTIVE", "ACTIVE"]);
    assert_eq!(names("scenarios", "state"), vec!["idle"; 15]);
    let tiers = state["fleet"]["tiers"].as_array().unwrap();
    let total: i64 = tiers.iter().map(|tier| tier["total"].as_i64().unwrap()).sum();
    let kinds: BTreeSet<&str> = tiers.iter().map(|tier| tier["tier"].as_str().unwrap()).collect();
    assert_eq!((total, kinds.len()), (152, 5));
    assert_eq!(state["fleet"]["dollarsPerHour"], 0.0, "the baseline costs nothing");
    let page = demo.get("/").await;
    assert!(page.status == 200 && page.head.contains("text/html"), "{}", page.head);
    assert_eq!(demo.get("/assets/none.js").await.status, 404);

    refusals(&demo).await;
    streams(&mut demo).await;
    plays(&mut demo).await;

    demo.process.signal("TERM").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}

async fn refusals(demo: &Demo) {
    for (path, body, status, word) in [
        ("/api/demand", r#"{"workspace": "d", "level": 1, "tier": "batch"}"#, 400, "workspace: "),
        ("/api/demand", r#"{"workspace": "a", "level": 41, "tier": "batch"}"#, 400, "level: "),
        ("/api/demand", r#"{"workspace": "a", "level": -1, "tier": "batch"}"#, 400, "body: "),
        ("/api/demand", r#"{"workspace": "a", "level": 1, "tier": "gold"}"#, 400, "gold"),
        ("/api/demand", r#"{"workspace": "a", "tier": "batch"}"#, 400, "level"),
        ("/api/demand", r#"{"workspace"#, 400, "body: "),
        ("/api/scenario", r#"{"name": "rm -rf"}"#, 404, "move, burst, saturate"),
        ("/api/scenario", r#"{}"#, 400, "name"),
        ("/api/reset", r#"{"now": true}"#, 400, "now"),
        ("/api/none", "{}", 404, ""),
    ] {
        let answer = demo.post(path, body).await;
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
        assert!(answer.text.contains(word), "{path} {body}: {answer:?}");
    }
    let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(4096));
    assert_eq!(demo.post("/api/scenario", &long).await.status, 413);
    // Later, for the writes above were counted too.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let plain = ["Content-Type: text/plain"];
    let answer = call(&demo.addr, "POST", "/api/reset", &plain, "{}").await.unwrap();
    assert_eq!(answer.status, 415, "{answer:?}");
    let answer = call(&demo.addr, "GET", "/api/reset", &[], "").await.unwrap();
    assert_eq!(answer.status, 405, "{answer:?}");
    let foreign = ["Host: evil.example:8090"];
    for (method, path) in [("GET", "/api/state"), ("POST", "/api/reset"), ("GET", "/")] {
        let answer = call(&demo.addr, method, path, &foreign, "").await.unwrap();
        assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
    }
    let kind = ["Content-Type: application/json"];
    let at_once = (0..30).map(|_| call(&demo.addr, "POST", "/api/demand", &kind, "{}"));
    let answers = join_all(at_once).await.into_iter().flatten();
    let refused = answers.into_iter().find(|answer| answer.status == 429);
    let refused = refused.expect("thirty writes at once are too many");
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
}

/// An open stream.
struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    async fn open(demo: &Demo) -> Self {
        let stream = open(&demo.addr, "GET", "/api/stream", &[], "").await.expect("a stream");
        Self(BufReader::new(stream).lines())
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.0.next_line()).await.expect("a line in time");
        line.unwrap().expect("not the end")
    }

    /// The next event of this kind: its id and its data.
    async fn event(&mut self, kind: &str) -> (String, Value) {
        let (mut id, mut event) = (String::new(), String::new());
        loop {
            let line = self.line().await;
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(text) = line.strip_prefix("event: ") {
                event = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ")
                && event == kind
            {
                return (id, serde_json::from_str(text).unwrap());
            }
        }
    }
}

async fn streams(demo: &mut Demo) {
    let mut first = Stream::open(demo).await;
    let (id, state) = first.event("state").await;
    assert_eq!(id, state["sequence"].to_string());
    for key in ["decisions", "real", "simulated", "tiers"] {
        assert!(state.get(key).is_none(), "{key} is for who asks once");
    }
    let body = r#"{"workspace": "a", "level": 2, "tier": "critical"}"#;
    assert_eq!(demo.post("/api/demand", body).await.status, 202);
    loop {
        let (_, news) = first.event("decisions").await;
        let news = news["decisions"].as_array().unwrap();
        assert!(!news.is_empty() && news.iter().all(|it| it["sequence"].is_i64()), "{news:?}");
        if news.iter().any(|it| it["text"].as_str().unwrap().contains("cluster-a")) {
            break;
        }
    }
    demo.until("critical pods run", |state| {
        (state["workspaces"][0]["pods"]["critical"]["running"] == 2).then_some(())
    })
    .await;
    let mut others = Vec::new();
    for _ in 0..63 {
        let mut stream = Stream::open(demo).await;
        assert!(stream.line().await.contains("200"));
        others.push(stream);
    }
    let refused = demo.get("/api/stream").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(others);
    let path = "/api/stream";
    let begun = tokio::time::Instant::now();
    loop {
        let stream = open(&demo.addr, "GET", path, &[], "").await.expect("a stream");
        let mut lines = BufReader::new(stream).lines();
        if lines.next_line().await.unwrap().unwrap().contains("200") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "places of those who left stay taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn plays(demo: &mut Demo) {
    assert_eq!(demo.post("/api/scenario", r#"{"name": "move"}"#).await.status, 202);
    let state = demo.get("/api/state").await.json();
    assert_eq!(
        (&state["run"]["name"], &state["run"]["state"]),
        (&"move".into(), &"running".into())
    );
    assert_eq!(state["scenarios"][0]["state"], "running");
    let claims = state["run"]["claims"].as_array().unwrap();
    assert!(!claims.is_empty() && claims.iter().all(|it| it["state"] == "pending"), "{claims:?}");
    let demand = r#"{"workspace": "a", "level": 1, "tier": "batch"}"#;
    for (path, body) in
        [("/api/scenario", r#"{"name": "burst"}"#), ("/api/reset", ""), ("/api/demand", demand)]
    {
        let answer = demo.post(path, body).await;
        assert_eq!(answer.status, 409, "{path}: {answer:?}");
    }
    let run = demo
        .until("move has ended", |state| {
            let run = &state["run"];
            (run["state"] != "running").then(|| run.clone())
        })
        .await;
    assert_eq!(run["state"], "passed", "{run:#}");
    demo.until("the run is counted", |state| {
        let row = &state["scenarios"][0];
        (row["state"] == "passed" && row["passed"] == 1).then_some(())
    })
    .await;
    assert_eq!(demo.post("/api/reset", "").await.status, 202);
    demo.until_at_rest().await;
}
