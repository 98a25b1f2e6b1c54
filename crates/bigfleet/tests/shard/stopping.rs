//! Signals (§19).

use std::time::Duration;

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_scripted::operator::Bootstrap;
use bigfleet_wire::v1alpha1::{
    WatchDecisionsRequest, WatchSummaryRequest, shard_observe_client::ShardObserveClient,
};
use tonic::Code;

use crate::{
    judge::inv_22,
    process::{PATIENCE, Process, until},
    site::{SMALL, Site},
};

/// A shard with a session at rest and, for another, an action that runs for as long
/// as a bootstrap may take.
async fn busy(site: &Site) -> (Process, Process, [bigfleet_scripted::member::Member; 2]) {
    let provider = site.boot_provider(SMALL).await;
    let shard = site.boot_shard(&[]).await;
    let resting = site.member("resting", 1);
    let silent = site.member_at(&site.shard, "silent", 1, |operator| {
        operator.on_bootstrap(|_| Bootstrap::Silent);
    });
    resting.wait_for("met demand", |now| now.demand_met, PATIENCE).await.unwrap();
    let asked = async || {
        let asked = silent.operator().await.read(|state| state.received.bootstrap_requests);
        (asked > 0).then_some(())
    };
    until("a bootstrap that nobody answers", asked).await;
    (provider, shard, [resting, silent])
}

#[tokio::test]
async fn sigterm_ends_sessions_as_unavailable_and_exits_0_in_time() {
    let site = Site::new();
    let (_provider, mut shard, [resting, _silent]) = busy(&site).await;
    // Held, so that it does not come back.
    let operator = resting.operator().await;
    shard.signal("TERM").await;
    let ended = operator.wait_ended(PATIENCE).await.unwrap();
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    // It has 10 s for the action and 15 in all; a bootstrap may take 30.
    let status = tokio::time::timeout(Duration::from_secs(10), shard.ended()).await;
    let status = status.unwrap_or_else(|_| panic!("hangs: {}", shard.tail()));
    assert_eq!(status.code(), Some(0), "{}", shard.tail());
    inv_22(&site.audit_log());
}

#[tokio::test]
async fn a_second_signal_exits_at_once() {
    let site = Site::new();
    let (_provider, mut shard, _members) = busy(&site).await;
    shard.signal("INT").await;
    until("the first to be heard", async || shard.log().contains("stopping").then_some(())).await;
    shard.signal("TERM").await;
    // An orderly stop would have been 0.
    assert_eq!(shard.ended().await.code(), Some(1), "{}", shard.tail());
}

/// A provider that hangs, an operator and readers that do not read hold nobody up.
#[tokio::test]
async fn sigterm_exits_0_in_time_whoever_hangs() {
    let site = Site::new();
    let provider = site.boot_provider(SMALL).await;
    let mut shard = site.boot_shard(&[]).await;
    let member = site.member("c", 2);
    member.wait_for("met demand", |now| now.demand_met, PATIENCE).await.unwrap();
    provider.signal("STOP").await;
    member.cluster().scale(0, 4);
    let asked = async || {
        let asked = member.operator().await.read(|state| state.received.bootstrap_requests);
        (asked > 1).then_some(())
    };
    until("a Configure on its way", asked).await;
    member.operator().await.stall();
    let channel = connect(&site.shard, &Security::Plaintext, Rule::any_shard()).await.unwrap();
    let mut reader = ShardObserveClient::new(channel);
    let _summaries = reader.watch_summary(WatchSummaryRequest::default()).await.unwrap();
    let _decisions = reader.watch_decisions(WatchDecisionsRequest::default()).await.unwrap();
    shard.signal("TERM").await;
    let status = tokio::time::timeout(Duration::from_secs(20), shard.ended()).await;
    let status = status.unwrap_or_else(|_| panic!("hangs: {}", shard.tail()));
    assert_eq!(status.code(), Some(0), "{}", shard.tail());
    inv_22(&site.audit_log());
}
