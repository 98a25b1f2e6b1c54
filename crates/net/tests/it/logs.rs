//! Log lines.

use std::{
    io,
    sync::{Arc, Mutex},
};

use bigfleet_net::{
    flags::{LogFlags, LogFormat},
    grpc::GrpcServer,
    readiness::Readiness,
    shutdown::Shutdown,
    telemetry,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::Pki;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'writer> MakeWriter<'writer> for Buffer {
    type Writer = Self;

    fn make_writer(&'writer self) -> Self {
        self.clone()
    }
}

/// Captures this thread's lines until the guard goes.
fn capture(level: &str, log_format: LogFormat) -> (Buffer, tracing::subscriber::DefaultGuard) {
    let flags = LogFlags { log_level: level.parse().unwrap(), log_format };
    let buffer = Buffer::default();
    let subscriber = telemetry::subscriber(&flags, buffer.clone());
    (buffer, tracing::subscriber::set_default(subscriber))
}

#[test]
fn json_lines_parse() {
    let (buffer, _guard) = capture("info", LogFormat::Json);
    tracing::info!(machine = "m-1", cost = 0.25, "a \"quoted\"\nmessage");
    tracing::error!("second");
    let text = buffer.text();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["message"], "a \"quoted\"\nmessage");
    assert_eq!(lines[0]["machine"], "m-1");
    assert_eq!(lines[0]["level"], "INFO");
    assert!(lines[0]["timestamp"].is_string());
    assert_eq!(lines[1]["level"], "ERROR");
}

#[test]
fn levels_hold_and_libraries_stay_quiet() {
    for (level, expected) in [
        ("off", &[][..]),
        ("warn", &["ours-warn"]),
        ("info", &["ours-warn", "ours-info", "lib-info"]),
        ("debug", &["ours-warn", "ours-info", "ours-debug", "lib-info"]),
        ("debug,h2=debug", &["ours-warn", "ours-info", "ours-debug", "lib-info", "lib-debug"]),
        ("warn,h2=debug", &["ours-warn", "lib-info", "lib-debug"]),
    ] {
        let (buffer, _guard) = capture(level, LogFormat::Text);
        tracing::warn!("ours-warn");
        tracing::info!("ours-info");
        tracing::debug!("ours-debug");
        tracing::info!(target: "h2::codec", "lib-info");
        tracing::debug!(target: "h2::codec", "lib-debug");
        let text = buffer.text();
        for line in ["ours-warn", "ours-info", "ours-debug", "lib-info", "lib-debug"] {
            assert_eq!(text.contains(line), expected.contains(&line), "{level}: {line} in {text}");
        }
    }
}

#[test]
fn libraries_whose_callers_speak_are_silent_until_asked() {
    for (level, told) in [("info", false), ("debug", true), ("info,kube_client=error", true)] {
        let (buffer, _guard) = capture(level, LogFormat::Text);
        tracing::error!(target: "kube_client::client::builder", "failed with error");
        tracing::warn!("ours");
        let text = buffer.text();
        assert_eq!(text.contains("failed with error"), told, "{level}: {text}");
        assert!(text.contains("ours"));
    }
}

#[tokio::test]
async fn plaintext_to_the_network_is_a_warning() {
    let pki = Pki::new().unwrap();
    let material = pki.material(&["bigfleet://shard/s"]).unwrap();
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
    let tls = Security::Mtls(Arc::new(tls));
    for (addr, security, warned) in [
        ("127.0.0.1:0", Security::Plaintext, false),
        ("0.0.0.0:0", tls, false),
        ("0.0.0.0:0", Security::Plaintext, true),
    ] {
        let (buffer, _guard) = capture("info", LogFormat::Text);
        let listener = tokio::net::TcpListener::bind(addr).await.unwrap();
        let shutdown = Shutdown::new();
        shutdown.request();
        GrpcServer::new(security, Readiness::new("")).serve(listener, shutdown).await.unwrap();
        let text = buffer.text();
        assert!(text.contains("serving gRPC"), "{text}");
        assert_eq!(text.contains("WARN") && text.contains("to the network"), warned, "{text}");
    }
}

#[test]
fn a_failing_reload_is_logged_once_per_failure() {
    let pki = Pki::new().unwrap();
    let material = pki.material(&["bigfleet://shard/s"]).unwrap();
    let key = std::fs::read_to_string(material.key()).unwrap();
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
    let (buffer, _guard) = capture("info", LogFormat::Text);
    let lines = || buffer.text().lines().count();
    let look = || (0..3).for_each(|_| drop(tls.own_identity()));
    look();
    assert_eq!(lines(), 0, "nothing changed: {}", buffer.text());
    std::fs::write(material.cert(), "half").unwrap();
    look();
    assert_eq!(lines(), 1, "{}", buffer.text());
    std::fs::remove_file(material.cert()).unwrap();
    look();
    assert_eq!(lines(), 2, "another failure: {}", buffer.text());
    material.replace_leaf(&pki.issue(&[], &[]).unwrap()).unwrap();
    look();
    assert_eq!(lines(), 3, "healed: {}", buffer.text());
    std::fs::remove_file(material.cert()).unwrap();
    look();
    assert_eq!(lines(), 4, "a failure after a success is news: {}", buffer.text());
    assert!(key.lines().all(|line| !buffer.text().contains(line)));
}
