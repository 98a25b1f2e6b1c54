//! Who goes first, on tokio's paused clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bigfleet_in_cluster::{
    Budget, Lane, Paced, lease,
    memory::{Fault, Server, Verb},
    refusal,
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use tokio::{task::JoinSet, time::Instant};

/// Lets every lane's callers wait and returns their order.
async fn order(budget: &Budget, callers: &[Lane]) -> Vec<Lane> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for &lane in callers {
        let (budget, order) = (budget.clone(), order.clone());
        tasks.spawn(async move {
            budget.turn(lane).await;
            order.lock().unwrap().push(lane);
        });
        // Each one stands in its lane before the next comes.
        tokio::task::yield_now().await;
    }
    while tasks.join_next().await.is_some() {}
    Arc::into_inner(order).unwrap().into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_burst_goes_at_once_and_then_the_rate_holds() {
    let budget = Budget::new(50, 100);
    let start = Instant::now();
    for _ in 0..100 {
        budget.turn(Lane::NodeState).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    for _ in 0..50 {
        budget.turn(Lane::NodeState).await;
    }
    let spent = start.elapsed();
    assert!(spent >= Duration::from_secs(1) && spent < Duration::from_millis(1100), "{spent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_time_saves_up_no_more_than_the_burst() {
    let budget = Budget::new(10, 5);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = Instant::now();
    for _ in 0..5 {
        budget.turn(Lane::Cordon).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    budget.turn(Lane::Cordon).await;
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn earlier_lanes_go_first() {
    let budget = Budget::new(1, 1);
    budget.turn(Lane::Cordon).await;
    let waiting = [
        Lane::PodStatus,
        Lane::Acknowledge,
        Lane::NodeState,
        Lane::Eviction,
        Lane::Cordon,
        Lane::Lease,
        Lane::Eviction,
    ];
    let mut expected = waiting.to_vec();
    expected.sort();
    assert_eq!(order(&budget, &waiting).await, expected);
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_leave_a_fifth_of_the_burst_to_evictions() {
    let budget = Budget::new(50, 100);
    let acks = JoinSet::from_iter((0..1000).map(|_| {
        let budget = budget.clone();
        async move { budget.turn(Lane::Acknowledge).await }
    }));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let start = Instant::now();
    for _ in 0..20 {
        budget.turn(Lane::Eviction).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // While the next evictions wait, no acknowledgement goes before them.
    let before = acks.len();
    for _ in 0..50 {
        budget.turn(Lane::Eviction).await;
    }
    assert!(start.elapsed() < Duration::from_millis(1100), "{:?}", start.elapsed());
    assert_eq!(acks.len(), before);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_takes_no_token() {
    let budget = Budget::new(1, 1);
    budget.turn(Lane::Cordon).await;
    for _ in 0..100 {
        let impatient = tokio::time::timeout(Duration::from_millis(1), budget.turn(Lane::Cordon));
        assert!(impatient.await.is_err());
    }
    let start = Instant::now();
    budget.turn(Lane::Eviction).await;
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_all_lanes_but_the_lease_also_without_a_limit() {
    for qps in [0, 50] {
        let budget = Budget::new(qps, 100);
        budget.pause(Duration::from_secs(7));
        let start = Instant::now();
        let waiting = budget.turn(Lane::Cordon);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut waiting).await.is_err());
        let lease = tokio::time::timeout(Duration::from_secs(1), budget.turn(Lane::Lease));
        assert!(lease.await.is_ok(), "the lease waits, qps {qps}");
        waiting.await;
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(7) && waited < Duration::from_secs(8), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_left_alone_as_long_as_it_asks() {
    let server = Server::new();
    server.inject(Fault::answer(429).retry_after(9).on(Verb::List, "nodes").times(1));
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    let list = || {
        paced.call(Lane::Eviction, |client| async move {
            Api::<Node>::all(client).list(&ListParams::default()).await
        })
    };
    let start = Instant::now();
    let error = list().await.unwrap_err();
    assert_eq!(refusal::retry_after(&error), Some(Duration::from_secs(9)));
    // The lease is looked after all the same.
    assert!(lease::read(&paced, "default", "none").await.unwrap().is_none());
    assert_eq!(start.elapsed(), Duration::ZERO);
    list().await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends() {
    let server = Server::new();
    server.inject(Fault::latency(Duration::from_secs(3600)));
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    let start = Instant::now();
    let error = lease::read(&paced, "default", "none").await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert!(refusal::is_passing(&error), "{error}");
}
