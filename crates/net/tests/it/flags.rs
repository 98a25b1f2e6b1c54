//! Flags and their environment, in processes of their own: the environment
//! belongs to the process.

use std::{
    path::Path,
    process::{Command, Output},
};

use bigfleet_net::{
    duration,
    flags::{self, DiagnosticFlags, LogFlags, LogFormat, MetricsFlags, TlsFlags},
    listen::ListenAddr,
};
use clap::Parser;

#[derive(Debug, Parser)]
struct Flags {
    #[arg(long, default_value = ":7780")]
    listen: ListenAddr,
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    cycle_interval: std::time::Duration,
    #[command(flatten)]
    metrics: MetricsFlags<8780>,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    diagnostics: DiagnosticFlags,
    #[command(subcommand)]
    command: Option<Sub>,
}

#[derive(Debug, clap::Subcommand)]
enum Sub {
    Run {
        #[arg(long, default_value = "none")]
        deep: String,
    },
}

const ARGS: &str = "NET_TEST_ARGS";

/// Not a test: the body of the child processes below.
#[test]
fn child() {
    let Ok(args) = std::env::var(ARGS) else {
        return;
    };
    let args = std::iter::once("test").chain(args.split('\n').filter(|arg| !arg.is_empty()));
    match flags::try_parse_from::<Flags>(args) {
        Ok(flags) => println!("{flags:?}"),
        Err(error) => error.exit(),
    }
}

fn run(args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["flags::child", "--exact", "--nocapture"])
        .env(ARGS, args.join("\n"))
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn shown(args: &[&str], env: &[(&str, &str)]) -> String {
    let output = run(args, env);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn parse(args: &[&str]) -> Flags {
    flags::try_parse_from(std::iter::once("test").chain(args.iter().copied())).unwrap()
}

#[test]
fn defaults() {
    let flags = parse(&[]);
    assert_eq!(flags.listen, ListenAddr::all_interfaces(7780));
    assert_eq!(flags.metrics.metrics_addr.to_string(), ":8780");
    assert_eq!(flags.cycle_interval.as_secs(), 10);
    assert!(flags.tls.tls_cert.is_none() && !flags.tls.require_tls);
    assert_eq!(flags.log.log_level, "info".parse().unwrap());
    assert_eq!(flags.log.log_format, LogFormat::Text);
    assert!(!flags.diagnostics.debug_endpoints && flags.diagnostics.otlp_endpoint.is_empty());
}

#[test]
fn flags_are_read() {
    let flags = parse(&[
        "--tls-cert=/c",
        "--tls-key",
        "/k",
        "--tls-ca",
        "",
        "--require-tls",
        "--metrics-addr",
        "0",
        "--log-format=json",
        "--debug-endpoints",
        "--otlp-endpoint",
        "http://localhost:4317",
    ]);
    assert_eq!(flags.tls.tls_cert.as_deref(), Some(Path::new("/c")));
    assert_eq!(flags.tls.tls_ca.as_deref(), Some(Path::new("")));
    assert!(flags.tls.require_tls && flags.diagnostics.debug_endpoints);
    assert_eq!(flags.metrics.metrics_addr.to_string(), "0");
    assert_eq!(flags.log.log_format, LogFormat::Json);
}

#[test]
fn every_flag_is_read_from_the_environment() {
    let shown = shown(
        &["run"],
        &[
            ("BIGFLEET_LISTEN", "127.0.0.1:1"),
            ("BIGFLEET_CYCLE_INTERVAL", "5m"),
            ("BIGFLEET_METRICS_ADDR", "0"),
            ("BIGFLEET_TLS_CERT", "/from-env"),
            ("BIGFLEET_TLS_KEY", ""),
            ("BIGFLEET_REQUIRE_TLS", "1"),
            ("BIGFLEET_LOG_LEVEL", "debug"),
            ("BIGFLEET_LOG_FORMAT", "json"),
            ("BIGFLEET_DEBUG_ENDPOINTS", "true"),
            ("BIGFLEET_OTLP_ENDPOINT", "http://env"),
            ("BIGFLEET_DEEP", "deep-env"),
        ],
    );
    for part in [
        "host: \"127.0.0.1\", port: 1",
        "cycle_interval: 300s",
        "metrics_addr: Disabled",
        "tls_cert: Some(\"/from-env\")",
        "tls_key: Some(\"\")",
        "require_tls: true",
        "LogLevel(\"debug\")",
        "log_format: Json",
        "debug_endpoints: true",
        "otlp_endpoint: \"http://env\"",
        "deep: \"deep-env\"",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_flag_wins_over_the_environment() {
    let shown = shown(
        &["--tls-cert=/from-flag", "--require-tls=false", "--log-level=warn", "--listen=:5"],
        &[
            ("BIGFLEET_TLS_CERT", "/from-env"),
            ("BIGFLEET_REQUIRE_TLS", "true"),
            ("BIGFLEET_LOG_LEVEL", "debug"),
            ("BIGFLEET_LISTEN", ":6"),
        ],
    );
    for part in ["Some(\"/from-flag\")", "require_tls: false", "LogLevel(\"warn\")", "port: 5"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn usage_errors_exit_2_and_say_what_to_write() {
    for (args, env, text) in [
        (&["--no-such-flag"][..], &[][..], "--no-such-flag"),
        (&["--log-level=loud"], &[], "write off, error, warn"),
        (&["--log-format=xml"], &[], "text, json"),
        (&["--cycle-interval=10"], &[], "write for example 10s or 10m"),
        (&["--metrics-addr=8780"], &[], "write :8780"),
        (&[], &[("BIGFLEET_CYCLE_INTERVAL", "soon")], "is not a duration"),
        (&[], &[("BIGFLEET_REQUIRE_TLS", "perhaps")], "perhaps"),
    ] {
        let output = run(args, env);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?} {env:?}: {stderr}");
        assert!(stderr.contains(text), "{args:?} {env:?}: {stderr}");
    }
}
