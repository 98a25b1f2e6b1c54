//! The binary as a person meets it.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

fn bigfleet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bigfleet")).args(arguments).output().expect("bigfleet runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn no_command_and_an_unknown_command_are_usage_errors() {
    for arguments in [&[][..], &["dance"], &["bench", "all", "--cycles", "0"], &["bench"]] {
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
    let output = bigfleet(&["bench", "gate-need", "--baseline", "/nonexistent/baseline"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    let expected = "bigfleet bench: cannot read baseline /nonexistent/baseline";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("bigfleet bench all --json FILE"), "{error}");
    let output = bigfleet(&["bench", "dance"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`bigfleet bench list` names them"));
}

#[test]
fn a_bench_is_a_baseline_for_the_next() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let baseline = folder.path().join("baseline.json");
    let baseline = baseline.to_str().expect("a path in text");
    let written = bigfleet(&["bench", "gate-need", "--cycles", "2", "--json", baseline]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let read = bigfleet(&["bench", "gate-need", "--cycles", "2", "--baseline", baseline]);
    let table = text(&read.stdout);
    assert!(table.starts_with("SCENARIO"), "{table}");
    assert!(table.contains("(+0%)"), "equal work allocates equally: {table}");
}

#[test]
fn several_scenarios_run_in_processes_of_their_own_and_are_told_together() {
    let output = bigfleet(&["bench", "gate-need", "gate-need", "--cycles", "1", "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let scenarios = report["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 2);
    assert!(scenarios.iter().all(|one| one["name"] == "gate-need" && one["cycles"] == 1));
    assert!(scenarios.iter().all(|one| one["peak_rss_bytes"].is_u64()), "{report}");
}

#[test]
fn a_bench_that_got_worse_fails() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("baseline.json");
    let better = r#"{"scenarios": [{"name": "gate-need", "variant": "gate", "threads": 1,
        "machines": 0, "needs": 1000, "cycles": 1, "p50_ms": 0, "p99_ms": 0, "max_ms": 0,
        "scan_ratio": 1e9, "allocs_per_cycle": 1, "bytes_per_cycle": 1, "peak_rss_bytes": 1,
        "bytes_per_machine": 1}]}"#;
    std::fs::write(&path, better).expect("the baseline is written");
    let path = path.to_str().expect("a path in text");
    let output = bigfleet(&["bench", "gate-need", "--cycles", "1", "--baseline", path]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("worse than the baseline: gate-need gate: allocations"), "{error}");
}

#[test]
fn bench_list_names_the_scenarios() {
    let output = bigfleet(&["bench", "list"]);
    assert!(text(&output.stdout).contains("gate-rollup-25k "));
}

#[test]
fn every_flag_can_be_set_by_environment_and_a_flag_wins() {
    let run = |cycles: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        let output = command.args(arguments).env("BIGFLEET_CYCLES", cycles).output();
        output.expect("bigfleet runs").status.code()
    };
    assert_eq!(run("0", &["bench", "gate-need"]), Some(2), "refused like the flag");
    assert_eq!(run("0", &["bench", "gate-need", "--cycles", "1"]), Some(0));
}

const EXAMPLE: &str = r#"
{"needs": [{"name": "web", "cluster": "a", "aggregate": {"cpu": "8"}, "min_unit": {"cpu": "500m"}}],
 "machines": [{"id": "small", "count": 3, "resources": {"cpu": "4", "memory": "16Gi"}, "price_per_hour": 0.2},
              {"id": "big", "state": "Speculative", "resources": {"cpu": "16"}, "price_per_hour": 0.7}]}
"#;

fn decide(world: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("world.json");
    std::fs::write(&path, world).expect("the world is written");
    let path = path.to_str().expect("a path in text");
    bigfleet(&[&["decide", "--input", path], arguments].concat())
}

#[test]
fn decide_tells_what_the_engine_would_do() {
    let output = decide(EXAMPLE, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let decision: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let actions = decision["actions"].as_array().expect("actions");
    let told: Vec<_> = actions.iter().map(|a| (&a["kind"], &a["machine"])).collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|(kind, _)| *kind == "Bootstrap"));
    assert_eq!(told[0].1, "small-0");
    assert_eq!(told[1].1, "small-1");
    assert!(actions[0].get("explain").is_none());
    let explained = decide(EXAMPLE, &["--explain"]);
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    assert_eq!(explained["actions"][0]["explain"]["domain_rule"], 0);
}

/// Two cores of pods run on `m`, and one more pod wants more than any machine has.
#[test]
fn decide_takes_no_machine_from_pods_for_one_that_fits_nowhere() {
    let world = |stamp: &str| {
        format!(
            r#"{{"needs": [{{"name": "web", "cluster": "a", "aggregate": {{"cpu": "502"}}, "min_unit": {{"cpu": "500"}}}}],
                "machines": [{{"id": "m", "state": "Configured", "cluster": "a", "resources": {{"cpu": "4"}} {stamp}}}]}}"#
        )
    };
    for (stamp, outgrown) in [
        (r#", "stamp": {"need": "web"}"#, serde_json::json!({"m": 0})),
        ("", serde_json::json!({})),
    ] {
        let output = decide(&world(stamp), &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let decision: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(decision["actions"], serde_json::json!([]));
        assert_eq!(decision["outgrown"], outgrown);
        assert_eq!(decision["verdicts"][0]["reason"], "NO_MATCHING_SUPPLY");
        assert_eq!(decision["verdicts"][0]["deficit"]["cpu"], "502");
    }
}

#[test]
fn decide_names_what_is_wrong_and_where() {
    for (world, error) in [
        (
            "{\"machines\": [\n {\"id\": \"a\", \"price_per_hour\": -1}]}",
            "machines[0].price_per_hour: -1 is not a finite number >= 0 at line 2 column 32",
        ),
        (
            "{\"needs\": [{\"cluster\": \"c\", \"aggregate\": {\"cpu\": \"x\"}}]}",
            "needs[0].aggregate[\"cpu\"]: unparseable quantity \"x\" at line 1 column 50",
        ),
        (
            "{\"machines\": [{\"id\": \"a\", \"stamp\": {\"need\": \"web\"}}]}",
            "machines[0].stamp.need: no need is named \"web\" at line 1 column 45",
        ),
        (
            "{\"machines\": [{\"id\": \"a\", \"count\": 4294967295}]}",
            "machines[0].count: 4294967295 machines are more than 5000000 at line 1 column 36",
        ),
        ("{\"machine\": []}", "machine: unknown field `machine`"),
        ("{", ".: EOF while parsing an object at line 1 column 1"),
    ] {
        let output = decide(world, &[]);
        assert_eq!(output.status.code(), Some(2), "{world}");
        let told = text(&output.stderr);
        assert!(told.starts_with(&format!("bigfleet decide: {error}")), "{told}");
    }
}

#[test]
fn a_switch_takes_the_usual_words_from_the_environment() {
    for (value, code) in [("1", 0), ("true", 0), ("0", 0), ("false", 0), ("maybe", 2)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args(["decide", "--input", "-"]).env("BIGFLEET_EXPLAIN", value);
        let mut running = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bigfleet runs");
        let mut input = running.stdin.take().expect("standard input");
        // It may have refused the variable and gone before it reads.
        let _ = input.write_all(b"{}");
        drop(input);
        let status = running.wait().expect("bigfleet ends");
        assert_eq!(status.code(), Some(code), "BIGFLEET_EXPLAIN={value}");
    }
}
