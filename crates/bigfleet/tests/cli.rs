//! The binary as a person meets it.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::process::{Command, Output};

fn bigfleet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(arguments).output().expect("bigfleet runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn no_command_and_an_unknown_command_are_usage_errors() {
    for arguments in [&[][..], &["dance"], &["bench", "--runs", "0"], &["bench", "dance"]] {
        let output = bigfleet(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let usage = text(&output.stderr);
        assert!(usage.contains("Usage: bigfleet") || usage.contains("--help"), "{usage}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_names_every_command() {
    let output = bigfleet(&["help"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("bench"));
}

#[test]
fn a_failure_at_run_time_says_what_to_do() {
    let output = bigfleet(&["bench", "need", "--runs", "1", "--baseline", "/nonexistent/baseline"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.starts_with("bigfleet bench: cannot read baseline /nonexistent/baseline"),
        "{error}"
    );
    assert!(error.contains("bigfleet bench --json"), "{error}");
}

#[test]
fn a_bench_is_a_baseline_for_the_next() {
    let json = bigfleet(&["bench", "need", "--runs", "2", "--json"]);
    assert!(json.status.success(), "{}", text(&json.stderr));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let baseline = folder.path().join("baseline.json");
    std::fs::write(&baseline, &json.stdout).expect("the baseline is written");
    let table =
        bigfleet(&["bench", "need", "--runs", "2", "--baseline", baseline.to_str().unwrap()]);
    assert!(table.status.success(), "{}", text(&table.stderr));
    let table = text(&table.stdout);
    assert!(table.starts_with("SCENARIO"), "{table}");
    assert!(table.contains("(+0%)"), "equal work allocates equally: {table}");
}

#[test]
fn every_flag_can_be_set_by_environment_and_a_flag_wins() {
    let run = |runs: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        let output = command.args(arguments).env("BIGFLEET_RUNS", runs).output();
        output.expect("bigfleet runs").status.code()
    };
    assert_eq!(run("0", &["bench", "need", "--json"]), Some(2), "refused like the flag");
    assert_eq!(run("0", &["bench", "need", "--json", "--runs", "1"]), Some(0));
}

#[test]
fn a_switch_is_set_by_environment_in_any_usual_word() {
    for (value, json) in [("1", true), ("true", true), ("0", false), ("false", false)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        let output = command.args(["bench", "need", "--runs", "1"]).env("BIGFLEET_JSON", value);
        let output = output.output().expect("bigfleet runs");
        assert_eq!(output.status.code(), Some(0), "{value}: {}", text(&output.stderr));
        assert_eq!(output.stdout.starts_with(b"["), json, "{value}");
    }
}
