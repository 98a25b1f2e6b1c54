//! What cannot be meant is refused before anything is touched, with a text that helps.

use std::process::Command;

use crate::{
    fleet::Fleet,
    rig::{
        binaries::bigfleet,
        process::{Process, get, until},
    },
};

fn refused(args: &[&str], code: i32, says: &str) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut command = Command::new(bigfleet());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BIGFLEET_")) {
        command.env_remove(name);
    }
    let data_dir = format!("--data-dir={}", data.display());
    let ended = command.args(["coordinator", &data_dir]).args(args).output().unwrap();
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(code), "{args:?}: {text}");
    assert!(text.contains(says), "{args:?} does not say {says:?}: {text}");
    assert!(!data.exists(), "{args:?}: nothing was touched");
}

#[test]
fn contradictions_end_the_process_with_a_word_of_help() {
    const JOINS: &str = "--join-addr=c:7790";
    let cases: &[(&[&str], &str)] = &[
        (&[JOINS, "--id=coordinator"], "must end in -<ordinal>"),
        (&[JOINS, "--initial-replicas=1"], "a single replica has no --join-addr"),
        (&[JOINS, "--initial-replicas=2"], "at least 3"),
        (&[JOINS], "--raft-advertise"),
        (&["--tls-cert=/nowhere"], "incomplete TLS flags: --tls-key and --tls-ca missing"),
        (&["--require-tls"], "--require-tls forbids plaintext"),
        (&["--rebalance-interval=70s"], "--rebalance-cooldown must be longer"),
        (&["--shard-stale-after=6m"], "--shard-expire-after must be longer"),
        (&["--raft-timer-scale=21"], "1..=20"),
        (&["--raft-timer-scale=0"], "1..=20"),
        (&["--id=a b"], "A-Z a-z 0-9 . _ -"),
        (&["--listen=nowhere"], "--listen"),
        (&["--sing"], "--sing"),
    ];
    for (args, says) in cases {
        refused(args, 2, says);
    }
    let files = ["--tls-cert=/nowhere", "--tls-key=/nowhere", "--tls-ca=/nowhere"];
    refused(&files, 1, "/nowhere");
}

#[tokio::test]
async fn a_single_replica_in_plaintext_opens_at_once_and_warns() {
    let fleet = Fleet::new();
    let place = &fleet.places[0];
    let port = |addr: &str| addr.rsplit_once(':').unwrap().1.to_owned();
    let args = [
        "coordinator".to_owned(),
        "--bootstrap".to_owned(),
        format!("--listen=:{}", port(&place.grpc)),
        format!("--raft-bind={}", place.raft),
        format!("--metrics-addr={}", place.http),
        format!("--data-dir={}", fleet.data_dir(0).display()),
    ];
    let mut process = Process::spawn(&bigfleet(), &args, &fleet.log(0));
    until("a single replica that is ready", async || {
        assert!(process.is_running(), "{}", process.tail());
        get(&place.http, "/readyz").await.filter(|(code, _)| *code == 200)
    })
    .await;
    assert!(process.log().contains("in plaintext to the network"), "{}", process.tail());
    assert_eq!(fleet.metric(0, "bigfleet_tls_enabled").await, Some(0.0));
    process.signal("INT").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.tail());
}
