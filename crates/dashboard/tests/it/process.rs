//! The binary.

use std::{path::Path, process::Stdio};

use bigfleet_testkit::{
    ports::port,
    process::{PATIENCE, Process, get, until},
};
use tempfile::TempDir;
use tokio::process::Command;

use crate::rig::Stubs;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_bigfleet-web-dashboard");

async fn run(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BIGFLEET_")) {
        command.env_remove(name);
    }
    let output = command.args(args).stdin(Stdio::null()).output();
    let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn flags_that_do_not_fit_end_it_with_2() {
    for args in [&["--auth=oidc"][..], &["--tls-cert=x"], &["--nonsense"], &["--listen=x"]] {
        let (code, _, errors) = run(args).await;
        assert_eq!(code, 2, "{args:?}: {errors}");
    }
    let (code, _, errors) = run(&["--listen=127.0.0.1:0", "--kubeconfig=/nowhere"]).await;
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("kubeconfig /nowhere"), "{errors}");
}

#[tokio::test]
async fn the_reader_role_is_printed() {
    let (code, out, _) = run(&["reader-role"]).await;
    assert_eq!(code, 0);
    assert!(
        out.contains("kind: ClusterRole") && out.contains("verbs: [get, list, watch]"),
        "{out}"
    );
}

/// Idle, with every source wired and asked once.
#[tokio::test]
async fn it_stays_small_and_stops_when_told() {
    let (stubs, dir) = (Stubs::start().await, TempDir::new().unwrap());
    let addr = port();
    let args = [
        format!("--listen={addr}"),
        format!("--prometheus-url=http://{}", stubs.prometheus.addr),
        format!("--coordinator-addr={}", stubs.coordinator.addr()),
        format!("--kubeconfig={}", stubs.kube.kubeconfig().display()),
    ];
    let mut process = Process::spawn(Path::new(BINARY), &args, &dir.path().join("log"));
    until("it is ready", async || get(&addr, "/readyz").await.filter(|(status, _)| *status == 200))
        .await;
    for path in ["/api/v1/fleet/overview", "/api/v1/topology", "/api/v1/clusters", "/", "/metrics"]
    {
        let (status, body) = get(&addr, path).await.unwrap();
        assert_eq!(status, 200, "{path}: {body}");
    }
    if let Some(bytes) = process.resident_bytes() {
        println!("resident: {} KiB", bytes / 1024);
        assert!(bytes < 64 << 20, "{bytes} bytes resident");
    }
    process.signal("TERM").await;
    assert!(process.ended().await.success());
}
