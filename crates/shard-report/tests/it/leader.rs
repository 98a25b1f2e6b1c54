//! Finding the leader, and finding it again.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bigfleet_net::tls::Security;
use bigfleet_scripted::coordinator::{Answer, Coordinator};
use bigfleet_shard_report::{Options, Resolver};
use tokio::{net::TcpListener, time::Instant};
use tonic::Code;

use crate::rig::{FLEET, PATIENCE, Rig, coordinator, next, options, reported};

fn follower_of(leader: &str) -> Answer {
    Answer::NotLeader { leader: Some(("node-1".to_owned(), leader.to_owned())) }
}

#[tokio::test(start_paused = true)]
async fn a_followers_hint_is_followed_at_once_and_remembered() {
    let rig = Rig::start().await;
    let (follower, leader) = (coordinator().await, coordinator().await);
    follower.always(follower_of(leader.addr()));
    let began = Instant::now();
    let client = rig.report_to(&[follower.addr()]);
    reported(&leader, 1).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    let reports = reported(&leader, 5).await;
    assert_eq!(follower.reports().len(), 1, "nobody stays with a follower");
    let cycles: Vec<i64> = reports.iter().map(|report| report.cycle).collect();
    assert_eq!(cycles[..5], [1, 2, 3, 4, 5]);
    assert_eq!(rig.outcomes("not_leader"), 0, "the report found its leader");
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn followers_that_name_each_other_are_asked_once_a_round() {
    let rig = Rig::start().await;
    let (one, two) = (coordinator().await, coordinator().await);
    one.always(follower_of(two.addr()));
    two.always(follower_of(one.addr()));
    let client = rig.report_to(&[one.addr(), two.addr()]);
    let reports = reported(&one, 3).await;
    assert_eq!([1, 2, 3].map(|cycle| reports[cycle as usize - 1].cycle), [1, 2, 3]);
    reported(&two, 3).await;
    let (one, two) = (one.reports().len(), two.reports().len());
    assert!(one.abs_diff(two) <= 1, "{one} and {two}");
    assert_eq!((rig.outcomes("ok"), rig.outcomes("error")), (0, 0));
    assert!(rig.outcomes("not_leader") >= 2);
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_beyond_a_loop_of_followers_is_found_in_the_same_round() {
    let rig = Rig::start().await;
    let (one, two, three) = (coordinator().await, coordinator().await, coordinator().await);
    one.always(follower_of(two.addr()));
    two.always(follower_of(one.addr()));
    let client = rig.report_to(&[one.addr(), two.addr(), three.addr()]);
    let report = &reported(&three, 1).await[0];
    assert_eq!(report.cycle, 1);
    client.stop().await;
    rig.stop().await;
}

/// Hints that lead ever further end, too.
#[tokio::test(start_paused = true)]
async fn a_chain_of_hints_ends() {
    let rig = Rig::start().await;
    let mut chain = Vec::new();
    for _ in 0..8 {
        chain.push(coordinator().await);
    }
    for pair in chain.windows(2) {
        pair[0].always(follower_of(pair[1].addr()));
    }
    let client = rig.report_to(&[chain[0].addr()]);
    reported(&chain[0], 2).await;
    let asked: Vec<usize> = chain.iter().map(|replica| replica.reports().len().min(1)).collect();
    assert_eq!(asked, [1, 1, 1, 1, 0, 0, 0, 0]);
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_no_address_is_passed_over() {
    let rig = Rig::start().await;
    let (follower, leader) = (coordinator().await, coordinator().await);
    follower.always(follower_of("nowhere"));
    let client = rig.report_to(&[follower.addr(), leader.addr()]);
    reported(&leader, 1).await;
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_leader_goes_another_is_found_and_the_first_comes_back_as_follower() {
    let rig = Rig::start().await;
    let (first, second) = (coordinator().await, coordinator().await);
    let home: SocketAddr = first.addr().parse().unwrap();
    second.always(Answer::NotLeader { leader: None });
    let client = rig.report_to(&[first.addr(), second.addr()]);
    reported(&first, 2).await;
    assert!(second.reports().is_empty());
    first.stop().await.expect("stopped");
    second.set_term(2);
    second.always(Answer::Report);
    reported(&second, 2).await;
    let again = TcpListener::bind(home).await.expect("the port is free again");
    let first = Coordinator::start_on(again, &Security::Plaintext).expect("serves");
    first.set_fleet(FLEET);
    first.always(follower_of(second.addr()));
    let known = second.reports().len();
    let reports = reported(&second, known + 5).await;
    assert!(first.reports().is_empty(), "the leader is asked first");
    let numbers: Vec<i64> = reports[known..].iter().map(|report| report.cycle).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    // Leadership goes back.
    first.set_term(3);
    first.always(Answer::Report);
    second.always(follower_of(first.addr()));
    reported(&first, 3).await;
    assert_eq!(rig.side.coordinator_term(), 3);
    client.stop().await;
    rig.stop().await;
}

/// One that led once has no better claim than the others.
#[tokio::test(start_paused = true)]
async fn who_led_is_forgotten_when_it_leads_no_more() {
    let rig = Rig::start().await;
    let (first, second) = (coordinator().await, coordinator().await);
    let none = || Answer::NotLeader { leader: None };
    first.always(none());
    let client = rig.report_to(&[first.addr(), second.addr()]);
    reported(&second, 2).await;
    assert_eq!(first.reports().len(), 1);
    second.always(none());
    reported(&first, 2).await;
    first.always(Answer::Report);
    let known = second.reports().len();
    reported(&first, 5).await;
    assert_eq!(second.reports().len(), known);
    client.stop().await;
    rig.stop().await;
}

/// One that takes calls and never answers must not use up the time of the others.
#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_left_within_one_deadline() {
    let rig = Rig::start().await;
    let (one, two, three) = (coordinator().await, coordinator().await, coordinator().await);
    let client = rig.report_to(&[one.addr(), two.addr(), three.addr()]);
    reported(&one, 2).await;
    one.always(Answer::Never);
    two.always(Answer::Never);
    let silent = next(&one).await;
    let began = Instant::now();
    let report = &reported(&three, 1).await[0];
    assert_eq!(report.cycle, silent.cycle, "the same round");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let known = (one.reports().len(), two.reports().len());
    reported(&three, 4).await;
    assert_eq!((one.reports().len(), two.reports().len()), known, "and then the new one at once");
    assert_eq!(rig.outcomes("unavailable"), 0);
    client.stop().await;
    rig.stop().await;
}

/// A replica left over from before a restore refuses; the others are asked.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_one_replica_is_not_that_of_all() {
    let rig = Rig::start().await;
    let (old, new) = (coordinator().await, coordinator().await);
    old.always(Answer::Refuse(Code::Aborted, "superseded".to_owned()));
    let client = rig.report_to(&[old.addr(), new.addr()]);
    reported(&new, 3).await;
    assert_eq!(old.reports().len(), 1);
    client.stop().await;
    rig.stop().await;
}

/// Options with one name for all of these replicas, while `works`.
fn by_name(replicas: &[&Coordinator], works: &Arc<AtomicBool>) -> Options {
    let behind: Vec<SocketAddr> =
        replicas.iter().map(|replica| replica.addr().parse().unwrap()).collect();
    let works = works.clone();
    let resolver = Resolver::new(move |name| {
        assert_eq!(name, "coordinators.test:7790");
        let found = works.load(Ordering::Relaxed).then(|| behind.clone());
        let missing = || std::io::Error::other("no name service");
        Box::pin(async move { found.ok_or_else(missing) })
    });
    Options { resolver, ..options(&["coordinators.test:7790"]) }
}

#[tokio::test(start_paused = true)]
async fn every_replica_behind_a_name_is_asked() {
    let rig = Rig::start().await;
    let (one, two, three) = (coordinator().await, coordinator().await, coordinator().await);
    let none = || Answer::NotLeader { leader: None };
    one.always(none());
    two.always(none());
    let works = Arc::new(AtomicBool::new(true));
    let client = rig.report_as(by_name(&[&one, &two, &three], &works));
    reported(&three, 2).await;
    assert_eq!((one.reports().len(), two.reports().len()), (1, 1));
    // Without a name service the addresses of before are still there.
    works.store(false, Ordering::Relaxed);
    three.always(none());
    two.always(Answer::Report);
    reported(&two, 4).await;
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_resolve_yet_is_looked_up_again() {
    let rig = Rig::start().await;
    let replica = coordinator().await;
    let works = Arc::new(AtomicBool::new(false));
    let client = rig.report_as(by_name(&[&replica], &works));
    tokio::time::sleep(PATIENCE / 10).await;
    assert!(rig.outcomes("unavailable") >= 4);
    works.store(true, Ordering::Relaxed);
    assert!(next(&replica).await.cycle > 4);
    client.stop().await;
    rig.stop().await;
}
