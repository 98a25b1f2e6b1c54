//! Epochs and the volume that holds them (§3, §11, §22).

use std::fs;

use bigfleet_net::tls::Security;
use bigfleet_scripted::member::Standing;

use crate::{
    judge::records,
    process::{PATIENCE, get, until},
    site::{ONE, SMALL, Site},
};

fn met(now: &Standing) -> bool {
    now.connected && now.demand_met
}

#[tokio::test]
async fn a_second_process_on_one_volume_exits() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    let mut first = site.boot_shard(&[]).await;
    let mut second = site.spawn_shard(&["--listen=127.0.0.1:0", "--metrics-addr=0"]);
    assert_eq!(second.ended().await.code(), Some(1));
    let log = second.log();
    assert!(log.contains("another process holds the lock"), "{log}");
    assert!(log.contains("--data-dir"), "it says what to do: {log}");
    assert_eq!(site.epoch(), 1, "the second took no epoch");
    assert!(first.is_running());
    assert_eq!(site.readyz().await.unwrap().0, 200);
}

/// Fenced by its own past, at the first call, loudly; a floor above it helps.
#[tokio::test]
async fn a_lost_volume_is_fenced_and_recovers_with_a_floor() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    let mut shard = site.boot_shard(&[]).await;
    shard.kill().await;
    let mut shard = site.boot_shard(&[]).await;
    let member = site.member("c", 4);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    assert_eq!(site.epoch(), 2);
    shard.kill().await;
    fs::remove_dir_all(site.path("data")).unwrap();

    let mut shard = site.boot_shard(&[]).await;
    assert_eq!(site.epoch(), 1);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    member.cluster().scale(0, 2);
    until("a fenced shard", async || {
        site.metric("bigfleet_shard_fenced").await.filter(|fenced| *fenced == 1.0)
    })
    .await;
    let (status, text) = site.readyz().await.unwrap();
    assert_eq!(status, 503);
    assert!(text.starts_with("fenced: "), "{text}");
    assert!(shard.log().contains("ERROR"), "{}", shard.tail());
    // A human decides: it lives, and touches nothing.
    assert_eq!(get(&site.shard_http, "/healthz").await.unwrap().0, 200);
    let mutations = site.mutations().await;
    let decided = || {
        let records = records(&site.audit_log());
        records.into_iter().filter(|record| record.outcome == "decided").collect::<Vec<_>>()
    };
    let before = decided();
    let instructed = member.operator().await.read(|state| state.received.reclaim_instructions);
    member.cluster().scale(0, 8);
    let steps = member.standing().steps;
    member.wait_for("many cycles", |now| now.steps > steps + 20, PATIENCE).await.unwrap();
    assert!(shard.is_running());
    assert_eq!(site.mutations().await, mutations, "{}", shard.tail());
    assert_eq!(decided(), before);
    let after = member.operator().await.read(|state| state.received.reclaim_instructions);
    assert_eq!(after, instructed);
    assert_eq!(member.standing().machines, 2);
    shard.kill().await;

    let _shard = site.boot_shard(&["--epoch-floor=3"]).await;
    assert_eq!(site.epoch(), 3);
    let grown = |now: &Standing| met(now) && now.machines == 4;
    member.wait_for("more machines", grown, PATIENCE).await.unwrap();
}

/// Two processes with one epoch: the provider lets only one of them through.
#[tokio::test]
async fn of_two_with_one_epoch_the_one_behind_is_fenced() {
    let site = Site::new();
    let _provider = site.boot_provider(ONE).await;
    let mut ahead = site.boot_shard(&[]).await;
    let mut truth = site.provider_client(&Security::Plaintext);
    let first = site.member("first", 2);
    for _ in 0..2 {
        first.cluster().scale(0, 2);
        first.wait_for("its machine", |now| met(now) && now.machines == 1, PATIENCE).await.unwrap();
        first.cluster().scale(0, 0);
        until("the machine back", async || {
            truth.list().await?.iter().all(|machine| machine.cluster.is_empty()).then_some(())
        })
        .await;
    }
    let copy = site.path("copy");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("epoch"), (site.epoch() - 1).to_string()).unwrap();

    let other = Site::new();
    let at_provider = format!("--provider-addr={}", site.provider);
    let copied = format!("--data-dir={}", copy.display());
    let mut behind = other.boot_shard(&[&at_provider, &copied]).await;
    assert_eq!(fs::read_to_string(copy.join("epoch")).unwrap().trim(), site.epoch().to_string());
    let second = other.member("second", 2);
    until("a fenced shard", async || {
        other.metric("bigfleet_shard_fenced").await.filter(|fenced| *fenced == 1.0)
    })
    .await;
    assert_eq!(other.readyz().await.unwrap().0, 503);
    assert!(behind.is_running() && ahead.is_running());
    assert!(!second.standing().demand_met);
    // The one ahead works on.
    assert_eq!(site.readyz().await.unwrap().0, 200);
    first.cluster().scale(0, 2);
    first.wait_for("its machine", |now| met(now) && now.machines == 1, PATIENCE).await.unwrap();
}
