//! Leaders that die and leaders that leave.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::{
    client::Client,
    fleet::{Fleet, REPLICAS},
    load::{Load, SHARDS},
    rig::process::until,
};

fn from_environment(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// Everything acknowledged is still there.
async fn nothing_lost(client: &Client, acknowledged: &BTreeSet<String>) {
    let written = until("an answer of the leader", async || client.written().await.ok()).await;
    let written: BTreeSet<String> = written.into_iter().collect();
    let lost: Vec<&String> = acknowledged.difference(&written).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

#[tokio::test]
async fn a_leader_killed_under_load_loses_nothing_acknowledged() {
    let kills = from_environment("BIGFLEET_LEADER_KILLS", 3);
    let per_second = from_environment("BIGFLEET_REPORTS_PER_SECOND", 100);
    let mut fleet = Fleet::open_scaled(1).await;
    let client = fleet.client();
    let load = Load::start(&fleet, per_second);
    let mut took: Vec<Duration> = Vec::new();
    for _ in 0..kills {
        let reports = load.reports();
        until("a load that is felt", async || (load.reports() > reports + 20).then_some(())).await;
        let leader = fleet.leader().await;
        let begun = Instant::now();
        fleet.kill(leader).await;
        // It serves when it answers as only a leader does.
        until("the next leader", async || client.shards().await.ok()).await;
        took.push(begun.elapsed());
        fleet.start(leader);
        fleet.until_open().await;
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
    let reports = load.reports();
    let acknowledged = load.stop().await;
    println!(
        "{kills} kills, {reports} reports, {} writes: next leader after {:?} (median), {:?} (p99)",
        acknowledged.len(),
        at(0.5),
        at(0.99)
    );
    assert!(!acknowledged.is_empty());
    nothing_lost(&client, &acknowledged).await;
}

#[tokio::test]
async fn every_shard_reports_to_the_next_leader() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    let load = Load::start(&fleet, 100);
    let heard = async || {
        let shards = client.shards().await.ok()?;
        let heard = shards.iter().filter(|shard| shard.last_heartbeat_unix_ns > 0).count();
        (heard == SHARDS).then_some(())
    };
    until("every shard at the first leader", heard).await;
    let leader = fleet.leader().await;
    fleet.kill(leader).await;
    until("every shard at the next leader", heard).await;
    assert_ne!(fleet.leader().await, leader);
    let acknowledged = load.stop().await;
    nothing_lost(&client, &acknowledged).await;
}

#[tokio::test]
async fn sigterm_hands_leadership_over_and_exits_0() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    client.write("before").await.unwrap();
    let leader = fleet.leader().await;
    let term = client.status(leader).await.unwrap().term;
    fleet.process(leader).signal("TERM").await;
    let ended = fleet.process(leader).ended().await;
    assert_eq!(ended.code(), Some(0), "{}", fleet.process(leader).tail());
    fleet.replicas[leader] = None;
    // It left when somebody else had been elected; nobody had to miss it first.
    let others = (0..REPLICAS).filter(|one| *one != leader);
    let mut terms = Vec::new();
    for other in others {
        terms.push(client.status(other).await.unwrap().term);
    }
    assert_eq!(terms.into_iter().max(), Some(term + 1));
    assert_ne!(fleet.leader().await, leader);
    assert_eq!(client.written().await.unwrap(), ["before"]);
    fleet.start(leader);
    fleet.until_open().await;
}

#[tokio::test]
async fn a_follower_that_is_away_changes_nothing() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    let leader = fleet.leader().await;
    let term = client.status(leader).await.unwrap().term;
    fleet.kill((leader + 1) % REPLICAS).await;
    for number in 0..20 {
        client.write(&format!("w-{number}")).await.unwrap();
    }
    assert_eq!(client.status(leader).await.unwrap().term, term);
    fleet.start((leader + 1) % REPLICAS);
    fleet.until_open().await;
    assert_eq!(client.status(leader).await.unwrap().term, term, "its return disturbs nobody");
}
