//! Disks that are full, and disks that are somebody else's.

use std::path::Path;

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::{
        binaries::bigfleet,
        ports::port,
        process::{Process, until},
    },
};

#[tokio::test]
async fn a_second_holder_of_the_data_directory_exits_1() {
    let mut fleet = Fleet::open().await;
    let (grpc, raft) = (port(), port());
    let elsewhere =
        [format!("--listen={grpc}"), format!("--raft-bind={raft}"), "--metrics-addr=0".to_owned()];
    let elsewhere: Vec<&str> = elsewhere.iter().map(String::as_str).collect();
    let log = fleet.path("second.log");
    let mut second = Process::spawn(&bigfleet(), &fleet.args(0, &elsewhere), &log);
    assert_eq!(second.ended().await.code(), Some(1));
    let said = second.tail();
    assert!(said.contains("another process uses this data directory"), "{said}");
    assert!(fleet.process(0).is_running());
    fleet.until_open().await;
}

/// A file may not grow past a few blocks: what a full disk is to a write.
#[tokio::test]
async fn a_failed_write_ends_the_replica_and_the_others_go_on() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    let leader = fleet.leader().await;
    // The log of the next leader may not grow much any more.
    let full = (leader + 1) % REPLICAS;
    fleet.kill(full).await;
    let limit = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut args: Vec<String> = ["-c", limit].map(str::to_owned).into();
    args.push(bigfleet().display().to_string());
    args.extend(fleet.args(full, &[]));
    let log = fleet.log(full);
    fleet.replicas[full] = Some(Process::spawn(Path::new("sh"), &args, &fleet.path("full.log")));
    fleet.until_open().await;
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let name = format!("{number}-{}", "x".repeat(240));
        if client.write(&name).await.is_ok() {
            acknowledged.push(name);
        }
        if !fleet.process(full).is_running() {
            break;
        }
        assert!(number < 2_000, "it writes on: {}", fleet.process(full).tail());
    }
    let ended = fleet.process(full).ended().await;
    let said = fleet.process(full).tail();
    assert_eq!(ended.code(), Some(1), "{said}");
    assert!(said.contains("this replica cannot go on") && said.contains("wal"), "{said}");
    client.write("the-others-go-on").await.unwrap();

    // With room again it starts as if nothing had been.
    fleet.replicas[full] = Some(Process::spawn(&bigfleet(), &fleet.args(full, &[]), &log));
    fleet.until_open().await;
    let written = until("an answer", async || client.written().await.ok()).await;
    assert!(acknowledged.iter().all(|name| written.contains(name)));
}
