//! The conformance suite against this provider: in a real API server with the rights of
//! `rbac.yaml` and no others, and simulated.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../it/cluster.rs"]
#[allow(dead_code, reason = "shared with the other tests, which use all of it")]
mod cluster;

use std::{fs, path::PathBuf};

use bigfleet_conformance::{
    catalogue::Profile,
    filter::Filter,
    progress::Progress,
    runner::{self, Options},
    target::{Target, TargetCommand},
    tls::{Credentials, ShardIssuer},
    verdict::Verdict,
};
use bigfleet_testkit::pki::Pki;
use cluster::Cluster;

/// The suite boots several instances at once. Each has a state of its own, and all share
/// the API server; so each gets slots, and with them Nodes, of its own.
const NAMED_AFTER_STATE: &str = r#"
    state=$1; shift
    exec "$@" --state="$state" --slot-prefix="local-$(basename "$(dirname "$state")")"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certified_in_a_real_api_server() {
    let Some(cluster) = Cluster::start_or_skip() else {
        return;
    };
    certify(&format!("--default-cluster={}", cluster.kubeconfig().display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certified_on_simulated_clusters() {
    certify("--use-fake-backend").await;
}

/// Over mTLS, or nobody could tell that a shard speaks for another.
async fn certify(backend: &str) {
    let pki = Pki::new().unwrap();
    let tls = pki.material(&["bigfleet://provider/local"]).unwrap();
    let ca_key = tls.dir().join("ca.key");
    fs::write(&ca_key, pki.ca_key_pem()).unwrap();
    let issuer = ShardIssuer::load(&tls.ca(), &tls.ca(), &ca_key).unwrap();
    let flag = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    let tls_flags =
        [flag("tls-cert", tls.cert()), flag("tls-key", tls.key()), flag("tls-ca", tls.ca())];

    let words = [
        ["/bin/sh", "-c", NAMED_AFTER_STATE, "sh", "{state}"].as_slice(),
        &[env!("CARGO_BIN_EXE_bigfleet-provider-local"), backend],
        &["--addr={addr}", "--metrics-addr={metrics}", "--seed-count={seed}"],
        &tls_flags.each_ref().map(String::as_str),
    ];
    let command = TargetCommand::of_words(words.concat().into_iter().map(str::to_owned).collect());
    let variable = |name| std::env::var(name).unwrap_or_default();
    let seed = variable("BIGFLEET_SEED").parse().unwrap_or(1);
    println!("seed {seed}; BIGFLEET_SEED takes another");
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
    let (target, credentials) = (Target::Command(command), Credentials::Issued(Box::new(issuer)));
    let report = runner::run(options, target, credentials, &Progress::silent()).await.unwrap();
    println!("{}", report.human());
    assert_eq!(report.verdict, Verdict::Certified, "{}", report.human());
}
