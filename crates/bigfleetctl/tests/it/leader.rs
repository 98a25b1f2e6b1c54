//! Whoever leads is found.

use bigfleet_scripted::coordinator::{Answer, Coordinator};
use bigfleet_wire::v1alpha1::ListShardsResponse;
use tonic::Code;

use crate::rig::{Ctl, coordinator, lead};

fn follow(follower: &Coordinator, leader: Option<&Coordinator>) {
    let leader = leader.map(|leader| ("node-1".to_owned(), leader.addr().to_owned()));
    follower.always(Answer::NotLeader { leader });
}

#[tokio::test]
async fn a_followers_hint_leads_to_a_replica_that_was_not_named() {
    let (follower, leader) = (coordinator().await, coordinator().await);
    lead(&leader, &[]);
    follow(&follower, Some(&leader));
    Ctl::to(&[follower.addr()]).run(&["list-shards"]).await.ok();
    assert_eq!(leader.asked().len(), 1);
}

#[tokio::test]
async fn every_address_is_tried() {
    let (follower, leader) = (coordinator().await, coordinator().await);
    lead(&leader, &[]);
    follow(&follower, None);
    Ctl::to(&["127.0.0.1:1", follower.addr(), leader.addr()]).run(&["list-shards"]).await.ok();
}

#[tokio::test]
async fn without_a_leader_the_exit_code_is_three_and_every_replica_is_named() {
    let (one, two) = (coordinator().await, coordinator().await);
    follow(&one, Some(&two));
    follow(&two, Some(&one));
    let ctl = Ctl::to(&[one.addr(), two.addr(), "127.0.0.1:1"]);
    let error = ctl.run(&["list-shards"]).await.failed(3);
    assert!(error.starts_with("bigfleetctl: no coordinator leader reachable: "), "{error}");
    for addr in [one.addr(), two.addr()] {
        assert!(error.contains(&format!("{addr} does not lead")), "{error}");
    }
    assert!(error.contains("127.0.0.1:1: ") && error.contains("refused"), "{error}");
    let ctl = Ctl::to(&["no-such-host.invalid:7790"]);
    let error = ctl.run(&["list-shards", "--timeout", "5s"]).await.failed(3);
    assert!(error.contains("no-such-host.invalid:7790"), "{error}");
}

#[tokio::test]
async fn a_silent_replica_leaves_time_for_the_others() {
    let (silent, leader) = (coordinator().await, coordinator().await);
    silent.always(Answer::Never);
    lead(&leader, &[]);
    let ctl = Ctl::to(&[silent.addr(), leader.addr()]);
    ctl.run(&["list-shards", "--timeout", "2s"]).await.ok();
    let alone = Ctl::to(&[silent.addr()]);
    alone.run(&["list-shards", "--timeout", "500ms"]).await.failed(3);
}

#[tokio::test]
async fn a_leader_that_refuses_for_now_is_no_missing_leader() {
    let leader = coordinator().await;
    leader.refuse::<ListShardsResponse>(Code::FailedPrecondition, "recovering");
    let error = Ctl::to(&[leader.addr()]).run(&["list-shards"]).await.failed(1);
    assert_eq!(error, "bigfleetctl: list-shards: recovering (FAILED_PRECONDITION)\n");
    leader.refuse::<ListShardsResponse>(Code::Unavailable, "no quorum");
    let error = Ctl::to(&[leader.addr()]).run(&["list-shards"]).await.failed(3);
    assert!(error.contains("no quorum"), "{error}");
}
