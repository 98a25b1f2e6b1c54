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

/// Starts a replica whose files may not grow past 32 KiB: what a full disk is to a write.
fn start_full(fleet: &mut Fleet, replica: usize) {
    let limit = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut args: Vec<String> = ["-c", limit].map(str::to_owned).into();
    args.push(bigfleet().display().to_string());
    args.extend(fleet.args(replica, &[]));
    let log = fleet.path("full.log");
    fleet.replicas[replica] = Some(Process::spawn(Path::new("sh"), &args, &log));
}

/// Writes until the replica has ended for want of space, and returns what was
/// acknowledged.
async fn fill(fleet: &mut Fleet, replica: usize) -> Vec<String> {
    let client = fleet.client();
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let name = format!("{number}-{}", "x".repeat(240));
        if client.write(&name).await.is_ok() {
            acknowledged.push(name);
        }
        if !fleet.process(replica).is_running() {
            break;
        }
        assert!(number < 2_000, "it writes on: {}", fleet.process(replica).tail());
    }
    let ended = fleet.process(replica).ended().await;
    let said = fleet.process(replica).tail();
    assert_eq!(ended.code(), Some(1), "{said}");
    assert!(said.contains("this replica cannot go on") && said.contains("wal"), "{said}");
    acknowledged
}

/// With room again it starts as if nothing had been, and nothing is lost.
async fn heals(fleet: &mut Fleet, replica: usize, acknowledged: &[String]) {
    fleet.start(replica);
    fleet.until_open().await;
    let client = fleet.client();
    let written = until("an answer", async || client.written().await.ok()).await;
    assert!(acknowledged.iter().all(|name| written.contains(name)));
}

#[tokio::test]
async fn a_follower_whose_write_fails_exits_1_and_the_others_go_on() {
    let mut fleet = Fleet::open().await;
    let full = (fleet.leader().await + 1) % REPLICAS;
    fleet.kill(full).await;
    start_full(&mut fleet, full);
    fleet.until_open().await;
    let acknowledged = fill(&mut fleet, full).await;
    fleet.client().write("the-others-go-on").await.unwrap();
    heals(&mut fleet, full, &acknowledged).await;
}

#[tokio::test]
async fn a_leader_whose_write_fails_exits_1_and_another_leads() {
    let mut fleet = Fleet::open().await;
    let full = 0;
    fleet.kill(full).await;
    start_full(&mut fleet, full);
    fleet.until_open().await;
    // Whoever leads leaves until it is the turn of the one without space.
    let client = fleet.client();
    until("the leadership of the full one", async || {
        let leader = fleet.leader_now(&client).await?;
        if leader == full {
            return Some(());
        }
        fleet.process(leader).signal("TERM").await;
        fleet.process(leader).ended().await;
        fleet.start(leader);
        fleet.until_open().await;
        None
    })
    .await;
    let acknowledged = fill(&mut fleet, full).await;
    fleet.replicas[full] = None;
    assert_ne!(fleet.leader().await, full);
    heals(&mut fleet, full, &acknowledged).await;
}

#[tokio::test]
async fn a_bit_that_flipped_before_the_tail_is_refused_by_its_file() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    for number in 0..20 {
        client.write(&format!("w-{number}")).await.unwrap();
    }
    let follower = (fleet.leader().await + 1) % REPLICAS;
    fleet.kill(follower).await;
    let wal = fleet.data_dir(follower).join("wal");
    let segment = std::fs::read_dir(&wal).unwrap().map(|one| one.unwrap().path()).min().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    fleet.start(follower);
    assert_eq!(fleet.process(follower).ended().await.code(), Some(1));
    let said = fleet.process(follower).tail();
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(name), "{name}: {said}");
    client.write("the-others-go-on").await.unwrap();
    // The way back: empty it.
    std::fs::remove_dir_all(fleet.data_dir(follower)).unwrap();
    fleet.start(follower);
    fleet.until_open().await;
}

#[tokio::test]
async fn fault_export_dir_unwritable_is_a_warning_and_a_counter() {
    let mut fleet = Fleet::new();
    let exports = fleet.path("exports");
    std::fs::write(&exports, "a file").unwrap();
    fleet.also(&[
        "--join-addr=",
        &format!("--snapshot-export-dir={}", exports.display()),
        "--snapshot-export-interval=200ms",
    ]);
    fleet.start(0);
    let client = fleet.client();
    until("a write", async || client.write("kept").await.ok()).await;
    let failures = "bigfleet_coordinator_export_failures_total";
    until("exports that fail", async || {
        fleet.metric(0, failures).await.filter(|count| *count >= 2.0)
    })
    .await;
    assert!(fleet.process(0).log().contains("WARN"), "{}", fleet.process(0).tail());
    client.write("goes-on").await.unwrap();
    until("it is ready all the same", async || {
        fleet.readyz(0).await.filter(|(status, _)| *status == 200)
    })
    .await;
    // As soon as there is a directory, there is a backup.
    std::fs::remove_file(&exports).unwrap();
    std::fs::create_dir(&exports).unwrap();
    until("an export", async || exports.join("latest").exists().then_some(())).await;
}
