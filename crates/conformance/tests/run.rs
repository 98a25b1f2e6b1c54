//! The binary against served targets: verdicts, exit codes, reports.

#![cfg(feature = "self-test")]
#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::process::{Command, Output};

const SUITE: &str = env!("CARGO_BIN_EXE_bigfleet-conformance");

/// Runs the suite against the fault target, broken or sound.
fn run(mutant: &str, arguments: &[&str]) -> Output {
    let target = format!(
        "'{SUITE}' serve fault --addr={{addr}} --state={{state}} --seed-count={{seed}} \
         --metrics-addr={{metrics}} --log-level=warn --mutant={mutant}"
    );
    Command::new(SUITE)
        .env_remove("BIGFLEET_PROVIDER_TARGET")
        .args(["run", "--target-cmd", &target, "--seed", "5"])
        .args(arguments)
        .output()
        .expect("the suite runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_the_filter_leaves_out_keeps_the_certificate_open() {
    let output = run("", &["--filter", "SM-06,SM-17"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{out}");
    assert!(out.contains("Smoke        2/25, 23 not tried"), "{out}");
    assert!(out.ends_with("INCOMPLETE core\n"), "{out}");
}

#[test]
fn a_profile_without_gaps_is_certified() {
    let output = run("", &["--profile", "spot"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).ends_with("CERTIFIED spot\n"));
    assert!(text(&output.stdout).contains("readiness  observed\n"), "{}", text(&output.stdout));
}

#[test]
fn a_broken_target_fails_with_its_calls() {
    let dir = tempfile::tempdir().expect("a directory");
    let (json, junit) = (dir.path().join("r.json"), dir.path().join("r.xml"));
    let files = [json.to_str().expect("text"), junit.to_str().expect("text")];
    let output = run(
        "fence-off",
        &["--filter", "SM-17", "--human", "--json", files[0], "--junit", files[1]],
    );
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("FAILED SM-17 a new shard's token is accepted once"), "{out}");
    assert!(out.contains("must answer FAILED_PRECONDITION, not OK"), "{out}");

    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    assert_eq!(report["verdict"], "FAILED");
    assert_eq!(report["seed"], 5);
    assert_eq!(report["gates"]["slot"], true);
    let tests = report["tests"].as_array().expect("tests");
    let failed = tests.iter().find(|test| test["id"] == "SM-17").expect("the test");
    assert_eq!(failed["status"], "failed");
    let calls = failed["evidence"].as_array().expect("calls");
    assert!(calls.iter().all(|call| call["code"] == "OK"), "{calls:?}");
    assert!(std::fs::read_to_string(&junit).expect("a report").contains("<failure message="));
}

#[test]
fn nobody_there_is_neither_pass_nor_fail() {
    let output = Command::new(SUITE).args(["--target", "127.0.0.1:1"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("does not answer"), "{}", text(&output.stderr));
    let output = run("no-such-mutant", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no such mutant"), "{}", text(&output.stderr));
}
