//! A shard without a coordinator lacks nothing (R2).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bigfleet_model::MachineState;
use bigfleet_provider::fake::{LoggedCall, Method};
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    coordinator::Answer,
};
use bigfleet_shard_report::{Client, Error, Options, Resolver};
use tokio::time::Instant;

use crate::rig::{PATIENCE, Reporting, Rig, coordinator, options, reported};

const GI: i64 = 1 << 30;

/// Demand comes, is met, and goes; what was done to which machine, in order.
async fn a_shards_life(rig: &Rig) -> Vec<(Method, String)> {
    let operator = rig.operator("c").await;
    let mut cluster = Cluster::new("c", 1);
    let pods = cluster.deploy(&Shape::new(1000, GI), 6);
    operator.roll_up(cluster.roll_up().needs).await.expect("accepted");
    until(rig, |rig| rig.fake.count(MachineState::Configured) > 0).await;
    assert!(rig.readiness.is_ready());
    tokio::time::sleep(PATIENCE).await;
    cluster.scale(pods, 0);
    operator.roll_up(vec![]).await.expect("answered");
    until(rig, |rig| rig.fake.count(MachineState::Speculative) == 20).await;
    let mutation = |call: LoggedCall| {
        matches!(call.method, Method::Mutate(_)).then(|| (call.method, call.machine.to_string()))
    };
    rig.fake.calls().into_iter().filter_map(mutation).collect()
}

async fn until(rig: &Rig, mut so: impl FnMut(&Rig) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(7_200);
    while !so(rig) {
        assert!(Instant::now() < deadline, "never; calls {:#?}", rig.fake.calls());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn trace(client: impl FnOnce(&Rig) -> Option<Reporting>) -> Vec<(Method, String)> {
    let rig = Rig::start().await;
    let client = client(&rig);
    let trace = a_shards_life(&rig).await;
    if let Some(client) = client {
        assert_eq!(rig.outcomes("ok"), 0);
        assert!(rig.outcomes("unavailable") > 10);
        client.stop().await;
    }
    rig.stop().await;
    trace
}

#[tokio::test(start_paused = true)]
async fn coordinator_inv_i8_no_coordinator_changes_no_action() {
    let alone = trace(|_| None).await;
    assert!(!alone.is_empty());
    // A port where nobody listens.
    assert_eq!(trace(|rig| Some(rig.report_to(&["127.0.0.1:1"]))).await, alone);
    // A name that nobody knows.
    let lost = Resolver::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) }));
    let lost = Options { resolver: lost, ..options(&["nobody.test:7790"]) };
    assert_eq!(trace(|rig| Some(rig.report_as(lost))).await, alone);
    // One that never answers.
    let silent = coordinator().await;
    silent.always(Answer::Never);
    assert_eq!(trace(|rig| Some(rig.report_to(&[silent.addr()]))).await, alone);
}

/// What a client knows outlives it: it goes on as the same process.
#[tokio::test(start_paused = true)]
async fn a_client_that_dies_is_started_again() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let (counted, addr) = (lookups.clone(), coordinator.addr().parse().unwrap());
    let resolver = Resolver::new(move |_| {
        let lookup = counted.fetch_add(1, Ordering::Relaxed);
        assert!(lookup % 3 != 1, "the client dies");
        Box::pin(async move { Ok(vec![addr]) })
    });
    let client = rig.report_as(Options { resolver, ..options(&["coordinators.test:7790"]) });
    let reports = reported(&coordinator, 5).await;
    assert!(lookups.load(Ordering::Relaxed) > 5);
    let cycles: Vec<i64> = reports.iter().map(|report| report.cycle).collect();
    assert_eq!(cycles[..5], [1, 3, 4, 6, 7]);
    assert!(reports.iter().all(|report| report.instance == reports[0].instance));
    assert!(rig.readiness.is_ready());
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn addresses_are_checked_before_anything_starts() {
    let rig = Rig::start().await;
    let refused = |addresses: &[&str]| Client::new(rig.side.clone(), options(addresses)).err();
    assert!(matches!(refused(&[]), Some(Error::NoAddress)));
    let refusal = refused(&["good:1", "bad"]).expect("refused").to_string();
    assert_eq!(refusal, "--coordinator-addr: address \"bad\": write it as host:port");
    assert!(refused(&["good:1"]).is_none());
    rig.stop().await;
}
