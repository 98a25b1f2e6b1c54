//! Two processes that are both ordinal 0, and replicas with disks of others.

use std::{collections::BTreeSet, fs, time::Duration};

use tokio::time::Instant;
use tonic::Code;

use crate::{
    client::Client,
    fleet::{Fleet, REPLICAS, copy, security},
    rig::{
        binaries::bigfleet,
        ports::port,
        process::{Process, until, until_or},
    },
};

/// If nothing has opened by then, each has one of the others, and waits for the second.
const WAITING: Duration = Duration::from_secs(12);
/// One that lost its partner starts over after a minute.
const STARTING_OVER: Duration = Duration::from_secs(150);

/// Starts four processes, two of them ordinal 0 on empty volumes of their own, which
/// know of each other or do not.
async fn two_of_ordinal_0(acquainted: bool) {
    let fleet = Fleet::new();
    let [grpc, raft, http] = std::array::from_fn(|_| port());
    let mine = fleet.addresses();
    let (_, others) = mine.split_once(',').unwrap();
    let (all, theirs) = (format!("{grpc},{mine}"), format!("{grpc},{others}"));
    let joins = |known: &str| format!("--join-addr={known}");
    let rival = [
        format!("--listen={grpc}"),
        format!("--raft-bind={raft}"),
        format!("--metrics-addr={http}"),
        format!("--data-dir={}", fleet.path("rival").display()),
        joins(if acquainted { &all } else { &theirs }),
    ];
    let rival: Vec<&str> = rival.iter().map(String::as_str).collect();
    let first = joins(if acquainted { &all } else { &mine });
    let everybody = joins(&all);
    let start = |more: &[&str], replica: usize, log: &str| {
        Process::spawn(&bigfleet(), &fleet.args(replica, more), &fleet.path(log))
    };
    let mut processes = [
        start(&[&first], 0, "first.log"),
        start(&rival, 0, "rival.log"),
        start(&[&everybody], 1, "c-1.log"),
        start(&[&everybody], 2, "c-2.log"),
    ];
    let places =
        std::iter::once(grpc.clone()).chain(fleet.places.iter().map(|one| one.grpc.clone()));
    let client = Client::new(places, &security(&fleet.admin));
    let (mut opened, begun) = (BTreeSet::new(), Instant::now());
    until("a fleet, or a wait", async || {
        let mut whole = 0;
        for replica in 0..=REPLICAS {
            let Ok(status) = client.status(replica).await else { continue };
            if status.phase == 2 {
                whole +=
                    usize::from(status.voters.len() == REPLICAS && !status.leader_id.is_empty());
                opened.insert(status.fleet_id);
            }
        }
        assert!(opened.len() <= 1, "two fleets were open: {opened:?}");
        (whole == REPLICAS || begun.elapsed() > WAITING).then_some(())
    })
    .await;
    println!("acquainted: {acquainted}; opened {opened:?} after {:?}", begun.elapsed());
    if opened.is_empty() {
        let refused = client.write("too-early").await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "forming"));
        // A human ends one of them: the other gets what it waits for.
        processes[1].kill().await;
        let what = || "the fleet of the one that is left".to_owned();
        let mut look = async || client.write("taken").await.ok();
        until_or(&what, STARTING_OVER, &mut look).await;
        println!("the one that is left opens after {:?}", begun.elapsed());
        return;
    }
    // One of them is in the fleet; nobody else is kept from it.
    until("a write", async || client.write("taken").await.ok()).await;
    for process in &mut processes[2..] {
        assert!(process.is_running(), "{}", process.tail());
    }
    // Those of ordinal 0 live, or say why they do not.
    for process in &mut processes[..2] {
        if !process.is_running() {
            let said = process.tail();
            assert!(said.contains("empty its data directory to join anew"), "{said}");
        }
    }
}

#[tokio::test]
async fn fault_two_processes_of_ordinal_0_that_know_each_other() {
    two_of_ordinal_0(true).await;
}

#[tokio::test]
async fn fault_two_processes_of_ordinal_0_that_do_not() {
    two_of_ordinal_0(false).await;
}

/// A disk says who it is of, and nobody else can be that one.
#[tokio::test]
async fn a_replica_with_anothers_disk_is_not_taken_for_either() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    client.write("kept").await.unwrap();
    let fleet_id = fleet.until_open().await;
    let leader = fleet.leader().await;
    let (one, other) = ((leader + 1) % REPLICAS, (leader + 2) % REPLICAS);
    fleet.kill(one).await;
    fleet.kill(other).await;
    let (own, others) = (fleet.path("own"), fleet.data_dir(other));
    fs::rename(fleet.data_dir(one), &own).unwrap();
    fs::rename(&others, fleet.data_dir(one)).unwrap();
    fleet.start(one);
    // It is no quorum: what it holds is the word of somebody else.
    until("a replica that answers", async || client.status(one).await.ok()).await;
    assert!(client.write("by-two-names").await.is_err());
    // The other comes back with nothing and the first is well again with its own.
    fleet.start(other);
    until("a replica that answers", async || client.status(other).await.ok()).await;
    assert!(client.write("by-three-names").await.is_err(), "one of the three disks is left");
    fleet.kill(one).await;
    fleet.kill(other).await;
    fs::remove_dir_all(fleet.data_dir(other)).unwrap();
    fs::rename(fleet.data_dir(one), fleet.data_dir(other)).unwrap();
    fs::rename(&own, fleet.data_dir(one)).unwrap();
    fleet.start(one);
    fleet.start(other);
    assert_eq!(fleet.until_open().await, fleet_id);
    assert!(client.written().await.unwrap().contains(&"kept".to_owned()));

    // With a leader to ask, it learns so and ends.
    let leader = fleet.leader().await;
    let (one, other) = ((leader + 1) % REPLICAS, (leader + 2) % REPLICAS);
    fleet.kill(one).await;
    fs::remove_dir_all(fleet.data_dir(one)).unwrap();
    copy(&fleet.data_dir(other), &fleet.data_dir(one));
    fleet.start(one);
    let ended = fleet.process(one).ended().await;
    let said = fleet.process(one).tail();
    assert_eq!(ended.code(), Some(1), "{said}");
    assert!(said.contains("empty its data directory"), "{said}");
    client.write("the-others-go-on").await.unwrap();
}
