//! The conformance suite against this provider in a real API server, with the rights of
//! `rbac.yaml` and no others.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../it/cluster.rs"]
#[allow(dead_code, reason = "shared with the other tests, which use all of it")]
mod cluster;

use bigfleet_conformance::{
    catalogue::Profile,
    filter::Filter,
    progress::Progress,
    runner::{self, Options},
    target::{Target, TargetCommand},
    tls::Credentials,
    verdict::Verdict,
};
use cluster::Cluster;

/// The suite boots several instances at once. Each has a state of its own, and all share
/// the API server; so each gets a name, and with it Nodes, of its own.
const NAMED_AFTER_STATE: &str =
    r#"state=$1; shift; exec "$@" --state="$state" --provider="local-$(basename "$state")""#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certified_in_a_real_api_server() {
    let Some(cluster) = Cluster::start_or_skip() else {
        return;
    };
    let default = format!("--default-cluster={}", cluster.kubeconfig().display());
    let words = [
        ["/bin/sh", "-c", NAMED_AFTER_STATE, "sh", "{state}"].as_slice(),
        &[env!("CARGO_BIN_EXE_bigfleet-provider-local")],
        &["--addr={addr}", "--metrics-addr={metrics}", "--seed-count={seed}", &default],
    ];
    let command = TargetCommand::of_words(words.concat().into_iter().map(str::to_owned).collect());
    let variable = |name| std::env::var(name).unwrap_or_default();
    let seed = variable("BIGFLEET_SEED").parse().unwrap_or(1);
    let options = Options {
        profiles: vec![
            Profile::Core,
            Profile::Cloud,
            Profile::Spot,
            Profile::Durable,
            Profile::Strict,
        ],
        filter: Filter::parse(&variable("BIGFLEET_CONFORMANCE_FILTER")),
        seed,
        ..Options::default()
    };
    println!("seed {seed}: BIGFLEET_SEED replays it");
    let progress = Progress::on_stderr(0);
    let report =
        runner::run(options, Target::Command(command), Credentials::Plaintext, &progress).await;
    let report = report.unwrap();
    assert_eq!(report.verdict, Verdict::Certified, "{}", report.human());
    println!("{}", report.human());
}
