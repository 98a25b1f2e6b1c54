//! Metrics, probes and debugging over plain HTTP.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bigfleet_net::{
    http::HttpServer, listen::MetricsAddr, metrics, readiness::Readiness, shutdown::Shutdown,
    tls::Security,
};
use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};
use prometheus_client::registry::Registry;
use time::{Duration, OffsetDateTime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::rig::{mtls, nobody_listens, soon};

async fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

async fn status(addr: SocketAddr, path: &str) -> u16 {
    get(addr, path).await.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn start(server: HttpServer) -> (SocketAddr, Shutdown) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let shutdown = Shutdown::new();
    tokio::spawn(server.serve(listener, shutdown.clone()));
    (addr, shutdown)
}

fn server(security: &Security, readiness: Readiness) -> HttpServer {
    let mut registry = Registry::default();
    metrics::register(&mut registry, security);
    HttpServer::new(registry, readiness)
}

#[tokio::test]
async fn readyz_says_why_not() {
    let readiness = Readiness::new("no raft leader observed");
    let (addr, _shutdown) = start(server(&Security::Plaintext, readiness.clone())).await;
    let answer = get(addr, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nno raft leader observed"), "{answer}");
    assert_eq!(status(addr, "/healthz").await, 200);
    readiness.set_ready();
    assert_eq!(status(addr, "/readyz").await, 200);
    readiness.set_not_ready("fenced");
    assert_eq!(status(addr, "/readyz").await, 503);
}

#[tokio::test]
async fn healthz_asks_the_process_where_it_has_an_opinion() {
    let alive = Arc::new(AtomicBool::new(true));
    let asked = alive.clone();
    let check = move || match asked.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("no cycle for 2m".to_owned()),
    };
    let server = server(&Security::Plaintext, Readiness::new("")).liveness(check);
    let (addr, _shutdown) = start(server).await;
    assert_eq!(status(addr, "/healthz").await, 200);
    alive.store(false, Ordering::Relaxed);
    let answer = get(addr, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("no cycle for 2m"), "{answer}");
}

#[tokio::test]
async fn plaintext_metrics() {
    let (addr, _shutdown) = start(server(&Security::Plaintext, Readiness::new(""))).await;
    let answer = get(addr, "/metrics").await;
    assert!(
        answer.contains(
            "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
        ),
        "{answer}"
    );
    assert!(answer.contains("\nbigfleet_tls_enabled 0\n"), "{answer}");
    assert!(!answer.contains("bigfleet_tls_cert_expiry"), "{answer}");
    assert!(answer.contains("\nbigfleet_build_info{version=\"0.1.0\"} 1\n"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
}

/// No handshake happens here: the scrape itself looks at the files.
#[tokio::test]
async fn certificate_expiry_follows_a_rotation() {
    let pki = Pki::new().unwrap();
    let now = OffsetDateTime::now_utc();
    let leaf = |days| pki.issue_between(&[], LOOPBACK, now, now + Duration::days(days)).unwrap();
    let material = Material::write(&leaf(1), &pki.ca_pem()).unwrap();
    let (addr, _shutdown) = start(server(&mtls(&material), Readiness::new(""))).await;
    for days in [1, 7] {
        material.replace_leaf(&leaf(days)).unwrap();
        let expiry = (now + Duration::days(days)).unix_timestamp();
        let answer = get(addr, "/metrics").await;
        assert!(answer.contains("\nbigfleet_tls_enabled 1\n"), "{answer}");
        let line = format!("\nbigfleet_tls_cert_expiry_timestamp_seconds {expiry}\n");
        assert!(answer.contains(&line), "{line}{answer}");
    }
}

#[tokio::test]
async fn zero_disables_the_server_but_not_the_wait() {
    let shutdown = Shutdown::new();
    let server = server(&Security::Plaintext, Readiness::new(""));
    let stop = shutdown.clone();
    let serving = tokio::spawn(async move { server.serve_at(&MetricsAddr::Disabled, stop).await });
    assert!(!serving.is_finished());
    shutdown.request();
    soon(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_ends_the_server() {
    let shutdown = Shutdown::new();
    let server = server(&Security::Plaintext, Readiness::new(""));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = tokio::spawn(server.serve(listener, shutdown.clone()));
    assert_eq!(status(addr, "/healthz").await, 200);
    shutdown.request();
    soon(serving).await.unwrap().unwrap();
    nobody_listens(addr).await;
}

#[tokio::test]
async fn debug_is_hidden_unless_asked_for() {
    let (addr, _shutdown) = start(server(&Security::Plaintext, Readiness::new(""))).await;
    for path in ["/debug/", "/debug/runtime", "/debug/profile?seconds=1"] {
        assert_eq!(status(addr, path).await, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn debug_shows_runtime_and_profile() {
    let server = server(&Security::Plaintext, Readiness::new("")).debug_endpoints(true);
    let (addr, _shutdown) = start(server).await;
    assert!(get(addr, "/debug/").await.contains("/debug/profile"));
    let runtime = get(addr, "/debug/runtime").await;
    assert!(runtime.contains("\nworkers 2\n") || runtime.contains("\r\nworkers 2\n"), "{runtime}");
    for seconds in ["0", "61", "x", "-1", ""] {
        assert_eq!(status(addr, &format!("/debug/profile?seconds={seconds}")).await, 400);
    }

    // Something to see, for as long as it takes.
    let busy = Arc::new(AtomicBool::new(true));
    let until = busy.clone();
    let worker = std::thread::Builder::new().name("busy-thread".into()).spawn(move || {
        let mut sum = 0_u64;
        while until.load(Ordering::Relaxed) {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 7);
        }
    });
    // One at a time: of two at once, one is turned away.
    let path = "/debug/profile?seconds=2";
    let (first, second) = tokio::join!(get(addr, path), get(addr, path));
    let (profile, refusal) =
        if second.starts_with("HTTP/1.1 409 ") { (first, second) } else { (second, first) };
    assert!(refusal.starts_with("HTTP/1.1 409 "), "{refusal}");
    busy.store(false, Ordering::Relaxed);
    worker.unwrap().join().unwrap();
    assert!(profile.starts_with("HTTP/1.1 200 "), "{profile}");
    let stacks: Vec<_> = profile.lines().filter(|line| line.starts_with("busy-thread;")).collect();
    assert!(!stacks.is_empty(), "{profile}");
    for stack in stacks {
        stack.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    }
}
