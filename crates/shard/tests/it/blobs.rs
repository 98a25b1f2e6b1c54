//! Bootstrap blobs (§7): pulled from operators, never kept.

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::{fake::Seed, protocol::Kind};
use bigfleet_scripted::operator::Bootstrap;
use bigfleet_shard::Options;

use crate::rig::{Rig, pods, slow};

async fn rig() -> Rig {
    let seed = Seed { idle: 5, speculative: 20, ..Seed::default() };
    Rig::start(Options::default(), slow(), &seed).await
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_returns_machines_to_idle_and_burns_none() {
    let rig = rig().await;
    let operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Refuse("template: no such key".to_owned()));
    operator.roll_up(pods("c", 2, 1000)).await.expect("accepted");
    rig.pass(600).await;
    assert_eq!(rig.calls(Kind::Configure).len(), 0);
    assert_eq!(rig.count(MachineState::Failed), 0);
    let asked = operator.read(|state| state.received.bootstrap_requests);
    assert!((2..=10).contains(&asked), "30 s doubling to 10 min: {asked} requests in 10 min");
    // Mended: it is served within the hold.
    operator.on_bootstrap(|_| Bootstrap::Unique);
    rig.until("served", |rig| rig.count(MachineState::Configured) > 0).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_operator_gets_its_machine_rolled_back() {
    let rig = rig().await;
    let operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Silent);
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.pass(29).await;
    assert_eq!(operator.read(|state| state.picture.count(MachineState::Configuring)), 1);
    assert_eq!(operator.read(|state| state.received.bootstrap_requests), 1);
    operator
        .wait_for(
            "another try",
            |state| state.received.bootstrap_requests == 2,
            Duration::from_secs(15),
        )
        .await
        .expect("rolled back after bootstrap-timeout, and tried again");
    assert!(rig.calls(Kind::Configure).is_empty(), "the provider was not touched");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_blob_is_never_applied() {
    // One call at a time, and it takes longer than the blob lives.
    let options = Options { provider_max_inflight: 1, ..Options::default() };
    let seed = Seed { idle: 40, ..Seed::default() };
    let rig = Rig::start(options, slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Deliver { blob: b"join".to_vec(), ttl_seconds: 3 });
    rig.knobs().call_time = Duration::from_secs(10);
    operator.roll_up(pods("c", 3, 32_000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 3).await;
    let asked = operator.read(|state| state.received.bootstrap_requests);
    assert!(asked > 3, "expired blobs are pulled anew: {asked} requests for 3 machines");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_session_nothing_is_bought_and_nothing_is_taken() {
    let rig = rig().await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(60).await;
    operator.roll_up(pods("c", 30, 3000)).await.expect("accepted");
    operator.abort().await;
    rig.pass(5).await;
    rig.fake.clear_calls();
    rig.pass(1800).await;
    let (creates, configures) = (rig.calls(Kind::Create), rig.calls(Kind::Configure));
    assert!(creates.is_empty() && configures.is_empty(), "{}", rig.told());
    assert_eq!(rig.calls(Kind::Drain).len(), 0, "its machines stay");
    operator.reconnect().await.expect("a session");
    rig.until("served", |rig| rig.count(MachineState::Configured) > 1).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_fails_its_blobs_at_once() {
    let rig = rig().await;
    let mut operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Silent);
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    operator
        .wait_for(
            "a request",
            |state| state.received.bootstrap_requests == 1,
            Duration::from_secs(30),
        )
        .await
        .expect("asked");
    operator.abort().await;
    operator.on_bootstrap(|_| Bootstrap::Unique);
    operator.reconnect().await.expect("a session");
    let before = tokio::time::Instant::now();
    rig.until("configuring", |rig| !rig.calls(Kind::Configure).is_empty()).await;
    assert!(before.elapsed() < Duration::from_secs(25), "not after 30 s: {:?}", before.elapsed());
    rig.stop().await;
}
