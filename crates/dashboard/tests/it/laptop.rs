//! The binary in front of real processes: `bigfleet all-in-one`, and a fleet with certificates.

use std::path::Path;

use bigfleet_dashboard::{ROUTES, Source};
use bigfleet_net::tls::Security;
use bigfleet_scripted::operator::{Operator, OperatorOptions};
use bigfleet_testkit::{
    binaries::binary,
    pki::Pki,
    ports::port,
    process::{Process, get, sum, until, until_or},
};
use futures_util::future::join_all;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
};

use crate::{process::BINARY, real::need, rig::PATIENCE, routes::MOUNTS};

/// The dashboard, as a process.
pub(crate) struct Dashboard {
    pub(crate) addr: String,
    process: Process,
}

impl Dashboard {
    pub(crate) async fn start(dir: &TempDir, more: &[String]) -> Self {
        let addr = port();
        let args: Vec<String> = [&[format!("--listen={addr}")], more].concat();
        let process = Process::spawn(Path::new(BINARY), &args, &dir.path().join("dashboard.log"));
        let ready = async || get(&addr, "/readyz").await.filter(|(status, _)| *status == 200);
        until("a dashboard that is ready", ready).await;
        Self { addr, process }
    }

    /// What a route says, once it is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let last = std::cell::RefCell::new(String::new());
        let what = || format!("{path}: {}", last.borrow());
        until_or(&what, PATIENCE, &mut async || {
            let (_, body) = get(&self.addr, path).await?;
            let value = serde_json::from_str(&body).unwrap_or_default();
            last.replace(body);
            Some(value).filter(|value| wanted(value))
        })
        .await
    }

    async fn metric(&self, name: &str) -> Option<f64> {
        sum(&get(&self.addr, "/metrics").await?.1, name)
    }
}

/// Somebody with an open stream.
pub(crate) struct Viewer {
    lines: Lines<BufReader<TcpStream>>,
}

impl Viewer {
    pub(crate) async fn open(addr: &str) -> Self {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request = format!(
            "GET /api/v1/stream?topics=summary,decisions,needs:shard-0 HTTP/1.1\r\nHost: {addr}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next_line().await.unwrap().unwrap_or_default();
        assert_eq!(status, "HTTP/1.1 200 OK");
        Self { lines }
    }

    /// The cycle of the next summary.
    pub(crate) async fn summary(&mut self) -> i64 {
        let reading = async {
            let mut of_summary = false;
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the stream goes on");
                if let Some(data) = line.strip_prefix("data: ").filter(|_| of_summary) {
                    let data: Value = serde_json::from_str(data).unwrap();
                    return data["cycle"].as_i64().unwrap();
                }
                of_summary = line == "event: summary" || (of_summary && line.starts_with("id: "));
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("a summary")
    }
}

/// How many watch a shard's cycles.
async fn watchers(http: &str, method: &str) -> Option<f64> {
    let metrics = get(http, "/metrics").await?.1;
    let series = format!("bigfleet_shard_observe_watchers{{method=\"{method}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&series)).and_then(|n| n.parse().ok())
}

struct Laptop {
    dir: TempDir,
    shard: String,
    http: String,
    coordinator: String,
    _process: Process,
}

impl Laptop {
    /// `bigfleet all-in-one`, with its sixteen machines.
    async fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let [coordinator, shard, raft, http] = std::array::from_fn(|_| port());
        let args = [
            "all-in-one".to_owned(),
            format!("--coordinator-listen={coordinator}"),
            format!("--shard-listen={shard}"),
            format!("--raft-bind={raft}"),
            format!("--shard-metrics-addr={http}"),
            format!("--coordinator-metrics-addr={http}"),
            format!("--data-dir={}", dir.path().join("data").display()),
        ];
        let process = Process::spawn(&binary("bigfleet"), &args, &dir.path().join("bigfleet.log"));
        let ready = async || get(&http, "/readyz").await.filter(|(status, _)| *status == 200);
        until("a laptop's fleet", ready).await;
        Self { dir, shard, http, coordinator, _process: process }
    }

    /// A dashboard of it, with its own eyes on metrics.
    async fn dashboard(&self) -> Dashboard {
        let flags = [
            format!("--coordinator-addr={}", self.coordinator),
            format!("--scrape=shard-0={}", self.http),
        ];
        Dashboard::start(&self.dir, &flags).await
    }

    async fn cycles(&self) -> f64 {
        let metrics = until("metrics", async || get(&self.http, "/metrics").await).await.1;
        sum(&metrics, "bigfleet_shard_cycle_duration_seconds_count").unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_shows_a_laptops_fleet() {
    let laptop = Laptop::start().await;
    let operator = OperatorOptions::new("prod-a");
    let operator = Operator::connect(&laptop.shard, &Security::Plaintext, operator).await.unwrap();
    let mut never = need(2_000, "5");
    never.min_unit = [("cpu".to_owned(), "100000".to_owned())].into();
    operator.roll_up(vec![need(1_000, "2"), never]).await.unwrap();
    let dashboard = laptop.dashboard().await;
    let config = dashboard.until("/api/v1/config", Value::is_object).await;
    assert_eq!((&config["plaintext"], &config["metricsBy"]), (&true.into(), &"scrape".into()));
    dashboard
        .until("/api/v1/fleet/overview", |body| {
            body["shards"] == 1 && body["machines"] == 16.0 && body["clusters"] == 1.0
        })
        .await;
    let judged = |body: &Value| {
        let needs = body["needs"].as_array();
        needs.is_some_and(|needs| {
            needs.len() == 2 && needs.iter().any(|need| need["satisfied"] == true)
        })
    };
    let needs = dashboard.until("/api/v1/needs?shard=shard-0", judged).await;
    let unmet = needs["needs"].as_array().unwrap().iter().find(|need| need["satisfied"] == false);
    let fingerprint = unmet.unwrap()["profileFingerprint"].as_str().unwrap();
    for route in ROUTES {
        let example = route.example.replace("fingerprint=f", &format!("fingerprint={fingerprint}"));
        let example = example.replace("/m-1", "/dev-cpu-0");
        for mount in MOUNTS {
            let path = format!("{mount}{example}");
            if route.path == "/stream" {
                assert!(Viewer::open(&dashboard.addr).await.summary().await > 0);
                continue;
            }
            if route.source == Some(Source::Kubeconfig) {
                let (status, body) = get(&dashboard.addr, &path).await.unwrap();
                assert_eq!(status, 503, "{path}: {body}");
                assert!(body.contains("--kubeconfig"), "{path}: {body}");
                continue;
            }
            // Rates need two scrapes.
            dashboard.until(&path, |body| body["queriedAt"].is_string()).await;
        }
    }
    let reports = dashboard.until("/api/v1/shard-reports", |body| body["rebuilding"] == false);
    assert_eq!(reports.await["reports"][0]["summary"]["totalMachines"], 16);
}

/// The budget of a hundred viewers, kept by there being one; and nothing of the fleet waits for
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_has_one_watcher_and_outlives_it() {
    let laptop = Laptop::start().await;
    let mut dashboard = laptop.dashboard().await;
    let sessions = "/api/v1/sessions?shard=shard-0";
    dashboard.until(sessions, |body| body["sessions"].is_array()).await;
    let mut viewers = join_all((0..100).map(|_| Viewer::open(&dashboard.addr))).await;
    join_all(viewers.iter_mut().map(async |viewer| {
        let first = viewer.summary().await;
        while viewer.summary().await <= first {}
    }))
    .await;
    assert_eq!(dashboard.metric("bigfleet_web_dashboard_stream_viewers").await, Some(100.0));
    for method in ["WatchSummary", "WatchDecisions"] {
        assert_eq!(watchers(&laptop.http, method).await, Some(1.0), "{method}");
    }
    dashboard.process.kill().await;
    until("a shard that nobody watches", async || {
        watchers(&laptop.http, "WatchSummary").await.filter(|count| *count == 0.0)
    })
    .await;
    let before = laptop.cycles().await;
    until("cycles without a dashboard", async || {
        Some(laptop.cycles().await).filter(|now| *now >= before + 3.0)
    })
    .await;
}

/// Everybody proves who they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_with_certificates_is_seen_by_its_reader_alone() {
    let (dir, pki) = (TempDir::new().unwrap(), Pki::new().unwrap());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let vouch = |identity: &str| pki.material(&[identity]).unwrap();
    let (leader, member) = (vouch("bigfleet://coordinator/c-0"), vouch("bigfleet://shard/shard-0"));
    let [coordinator, raft, leader_http, shard, shard_http] = std::array::from_fn(|_| port());
    let args = [
        "coordinator".to_owned(),
        "--id=c-0".to_owned(),
        format!("--listen={coordinator}"),
        format!("--raft-bind={raft}"),
        format!("--metrics-addr={leader_http}"),
        "--bootstrap=true".to_owned(),
        format!("--data-dir={}", path("c-0")),
    ];
    let args = [&args[..], &leader.args()].concat();
    let _leader = Process::spawn(&binary("bigfleet"), &args, Path::new(&path("c-0.log")));
    let args = [
        "shard".to_owned(),
        "--id=shard-0".to_owned(),
        format!("--listen={shard}"),
        format!("--metrics-addr={shard_http}"),
        format!("--coordinator-addr={coordinator}"),
        "--coordinator-heartbeat-interval=500ms".to_owned(),
        "--cycle-interval=200ms".to_owned(),
        "--seed-machines=5".to_owned(),
        format!("--data-dir={}", path("shard-0")),
    ];
    let args = [&args[..], &member.args()].concat();
    let _shard = Process::spawn(&binary("bigfleet"), &args, Path::new(&path("shard-0.log")));
    let reader = vouch("bigfleet://readonly");
    let flags = [format!("--coordinator-addr={coordinator}"), "--require-tls".to_owned()];
    let dashboard = Dashboard::start(&dir, &[&flags[..], &reader.args()].concat()).await;
    let topology = dashboard
        .until("/api/v1/topology", |body| body["shards"][0]["lastHeartbeatUnixNs"].is_i64())
        .await;
    assert_eq!(topology["coordinator"]["leaderId"], "c-0", "{topology}");
    let machines = "/api/v1/machines?shard=shard-0";
    dashboard.until(machines, |body| body["total"] == 5).await;
    let needs = "/api/v1/needs?shard=shard-0";
    dashboard.until(needs, |body| body["rebuilding"] == false).await;
    let config = dashboard.until("/api/v1/config", Value::is_object).await;
    assert_eq!(config["plaintext"], false);
    assert_eq!(dashboard.metric("bigfleet_tls_enabled").await, Some(1.0));
    // Without a certificate nobody hears anything.
    let flags = [format!("--coordinator-addr={coordinator}")];
    let stranger = Dashboard::start(&dir, &flags).await;
    let (status, said) = get(&stranger.addr, machines).await.unwrap();
    assert_eq!(status, 502, "{said}");
    // Who may change the fleet is not who looks.
    let admin = vouch("bigfleet://admin");
    let args = [&[format!("--listen={}", port())], &flags[..], &admin.args()].concat();
    let mut refused = Process::spawn(Path::new(BINARY), &args, Path::new(&path("admin.log")));
    assert!(!refused.ended().await.success());
    assert!(refused.tail().contains("bigfleet://readonly"), "{}", refused.tail());
}
