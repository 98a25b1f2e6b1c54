//! Flags of §17: what cannot be meant is refused, with a text that helps.

use std::{fs, process::Command};

use crate::{
    process::{Process, get, until},
    rig::binaries::bigfleet,
    site::{SMALL, Site},
};

/// Ends by itself, with that code and these words; returns all its words.
fn refused(site: &Site, args: &[&str], code: i32, words: &[&str]) {
    let mut command = Command::new(bigfleet());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BIGFLEET_")) {
        command.env_remove(name);
    }
    let ended = command.args(site.shard_args(args)).output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(code), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?} does not say {word:?}: {text}");
    }
}

#[test]
fn a_wrong_value_is_a_usage_error_that_names_the_flag() {
    let site = Site::new();
    let cases: &[(&str, &str)] = &[
        ("--listen=", "--listen"),
        ("--listen=nowhere", "--listen"),
        ("--listen=127.0.0.1:99999", "--listen"),
        ("--metrics-addr=nowhere", "--metrics-addr"),
        ("--id=", "name the shard"),
        ("--id=a b", "A-Z a-z 0-9 . _ -"),
        ("--epoch-floor=-1", "must be from 0"),
        ("--epoch-floor=99999999999", "must be from 0"),
        ("--cycle-interval=0s", "above 0"),
        ("--cycle-interval=10", "--cycle-interval"),
        ("--execute-timeout=0s", "above 0"),
        ("--bootstrap-timeout=0s", "above 0"),
        ("--coordinator-heartbeat-interval=0s", "above 0"),
        ("--available-capacity-interval=soon", "--available-capacity-interval"),
        ("--execute-concurrency=0", "whole number above 0"),
        ("--provider-max-inflight=0", "whole number above 0"),
        ("--provider-list-page=-1", "--provider-list-page"),
        ("--provider-identity=bigfleet://shard/s", "bigfleet://provider/NAME"),
        ("--max-actions-per-cycle=-1", "--max-actions-per-cycle"),
        ("--metrics-warmup-cycles=-1", "--metrics-warmup-cycles"),
        ("--reclaim-cap-fraction=1.5", "from 0 to 1"),
        ("--reclaim-cap-fraction=NaN", "from 0 to 1"),
        ("--incremental-reconcile=perhaps", "--incremental-reconcile"),
        ("--empty-rollup-guard=perhaps", "--empty-rollup-guard"),
        ("--actuation-paused=perhaps", "--actuation-paused"),
        ("--dry-run=perhaps", "--dry-run"),
        ("--phase-attribution-log=perhaps", "--phase-attribution-log"),
        ("--local-bootstrap=perhaps", "--local-bootstrap"),
        ("--shared-provider=perhaps", "--shared-provider"),
        ("--failure-rate-per-sec=-1", "from 0 up"),
        ("--seed-density-multiplier=inf", "from 0 up"),
        ("--log-level=loud", "--log-level"),
        ("--log-format=xml", "--log-format"),
        ("--dance", "--dance"),
        ("--data-dir=", "--data-dir: empty"),
        ("--tls-cert=leaf", "--tls-key and --tls-ca"),
        ("--require-tls", "--tls-cert"),
        ("--shared-provider", "--coordinator-addr"),
        ("--seed-machines=1", "remove --provider-addr"),
        ("--seed-speculative=1", "remove --provider-addr"),
        ("--seed-spot=1", "remove --provider-addr"),
        ("--seed-configured-per-cluster=1", "remove --provider-addr"),
        ("--failure-rate-per-sec=1", "remove --provider-addr"),
        ("--speculative-shed-at-seconds=1", "remove --provider-addr"),
    ];
    for (arg, words) in cases {
        refused(&site, &[arg], 2, &[words]);
    }
    assert_eq!(site.epoch(), 0, "whoever is refused takes no epoch");
}

#[test]
fn a_world_that_does_not_fit_is_an_error_that_says_what_to_do() {
    let site = Site::new();
    let file = site.path("file");
    fs::write(&file, "").unwrap();
    let under = |name: &str| format!("{name}={}/below", file.display());
    refused(&site, &[&under("--data-dir")], 1, &["--data-dir"]);
    refused(&site, &[&under("--audit-log")], 1, &["--audit-log", "may write"]);
    refused(&site, &[&under("--pause-file")], 1, &["--pause-file"]);
    refused(&site, &["--listen=192.0.2.1:1"], 1, &["cannot listen on 192.0.2.1:1"]);
    refused(&site, &["--provider-addr=nowhere"], 1, &["nowhere", "host:port"]);
    let tls = ["--tls-cert", "--tls-key", "--tls-ca"].map(&under);
    refused(&site, &[&tls[0], &tls[1], &tls[2]], 1, &["below"]);

    let data = site.path("data");
    for (text, words) in [("twelve", "--epoch-floor"), ("", "--epoch-floor")] {
        fs::write(data.join("epoch"), text).unwrap();
        refused(&site, &[], 1, &[words]);
        assert_eq!(fs::read_to_string(data.join("epoch")).unwrap(), text, "never a silent reset");
    }
    fs::write(data.join("epoch"), "1").unwrap();
    fs::write(data.join("assignment"), "{}").unwrap();
    refused(&site, &[], 1, &["--shared-provider"]);
    let shared = ["--shared-provider", "--coordinator-addr=127.0.0.1:1"];
    refused(&site, &shared, 1, &["assignment", "do not remove the file"]);
    fs::remove_file(data.join("assignment")).unwrap();
    fs::write(data.join("actuation"), "half a li").unwrap();
    refused(&site, &[], 1, &["--actuation-paused"]);
}

/// What has no other test in this directory.
#[tokio::test]
async fn values_have_their_effect() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    let ready = async |shard: &mut Process| {
        until("a session", async || {
            assert!(shard.is_running(), "{}", shard.tail());
            let addr: std::net::SocketAddr = site.shard.parse().unwrap();
            tokio::net::TcpStream::connect(addr).await.ok()
        })
        .await
    };
    let mut shard = site.spawn_shard(&["--metrics-addr=0", "--log-format=json"]);
    ready(&mut shard).await;
    assert!(get(&site.shard_http, "/healthz").await.is_none(), "0 disables");
    assert!(shard.log().lines().all(|line| line.starts_with('{')), "{}", shard.log());
    shard.kill().await;

    let _shard = site
        .boot_shard(&[
            "--local-bootstrap",
            "--provider-list-page=2",
            "--incremental-reconcile",
            "--execute-concurrency=2",
            "--max-actions-per-cycle=1",
        ])
        .await;
    let member = site.member("c", 8);
    let served = |now: &bigfleet_scripted::member::Standing| now.demand_met && now.machines == 4;
    member.wait_for("machines", served, crate::process::PATIENCE).await.unwrap();
    let asked = member.operator().await.read(|state| state.received.bootstrap_requests);
    assert_eq!(asked, 0, "--local-bootstrap asks nobody");
    assert_eq!(site.metric("bigfleet_shard_actions_total").await, Some(4.0));
    assert!(site.metric("bigfleet_shard_actions_deferred_total").await > Some(0.0));
    let lists = site.provider_metric("bigfleet_provider_rpc_total", &["method=\"List\""]).await;
    assert!(lists >= 2.0, "pages");
}
