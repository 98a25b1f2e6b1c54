//! Domains and clusters change hands.

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::{
    fake::{Method, Script},
    protocol::Kind,
};
use bigfleet_scripted::operator::Answer;
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::ShardReport;
use tempfile::TempDir;

use crate::{
    rig::{PATIENCE, coordinator},
    shared::rig::{Sharer, assignment, configured, machines, pass, provider, until},
};

fn releasing(report: &ShardReport) -> (usize, Vec<String>) {
    let releasing = report.releasing.clone().unwrap_or_default();
    (releasing.domains.len(), releasing.clusters)
}

/// A call is under way when the domain is lost: reports name it until the call is over;
/// one without an answer counts as under way for 60 s, or for twice its own time if that
/// is longer, unless its effect shows.
#[tokio::test(start_paused = true)]
async fn a_key_is_released_only_when_nothing_is_under_way_on_it() {
    for (delay, drop_ack, execute_timeout, within) in
        [(25, true, 30, 15..60), (300, false, 30, 45..100), (300, false, 90, 175..230)]
    {
        let fake = provider();
        let execute_timeout = Duration::from_secs(execute_timeout);
        let options = Options { execute_timeout, ..Options::default() };
        let one = Sharer::tuned(options, coordinator().await, &fake, "one", 1, None).await;
        one.assign(assignment(5, &["a", "b"], &["c"])).await;
        pass(30).await;
        let operator = one.operator("c").await;
        fake.script(Script {
            delay: Duration::from_secs(delay),
            drop_ack,
            ..Script::next(Method::Mutate(Kind::Configure))
        });
        operator.roll_up(machines("c", 1)).await.expect("an answer");
        until("a call", || one.metric("bigfleet_shard_execute_inflight ") > 0.0).await;
        let began = tokio::time::Instant::now();
        // Of equals the first is taken, and that is in the zone that goes.
        one.assign(assignment(6, &["b"], &["c"])).await;
        let first = one.coordinator.reports().into_iter().find(|one| one.assignment_version == 6);
        assert_eq!(releasing(&first.expect("reported")).0, 1);
        assert_eq!(one.metric("bigfleet_shard_holdings{holding=\"releasing\"} "), 1.0);
        let released = |reports: &[ShardReport]| {
            let of_now = |last: &ShardReport| last.assignment_version == 6;
            reports.last().is_some_and(|last| of_now(last) && releasing(last).0 == 0)
        };
        pass(5).await;
        assert!(one.metric("bigfleet_shard_holdings_age_seconds{holding=\"releasing\"} ") >= 3.0);
        one.coordinator.wait_for("the release", released, PATIENCE).await.expect("released");
        assert!(within.contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        one.stop().await;
    }
}

/// MoveCluster: the first lets go, the second takes the session and serves nothing
/// until it is given the cluster; no machine is lost, and no node told to go.
#[tokio::test(start_paused = true)]
async fn a_cluster_is_handed_over_with_its_machines() {
    let fake = provider();
    let (one, two) = (Sharer::start(&fake, "one").await, Sharer::start(&fake, "two").await);
    one.assign(assignment(5, &["a"], &["c"])).await;
    two.assign(assignment(6, &["b"], &[])).await;
    pass(30).await;
    let first = one.operator("c").await;
    first.roll_up(machines("c", 3)).await.expect("an answer");
    until("served", || configured(&fake, "c").len() == 3).await;
    let bound = configured(&fake, "c");

    let second = two.operator("c").await;
    pass(30).await;
    let answer = second.roll_up(machines("c", 3)).await.expect("an answer");
    assert!(matches!(answer, Answer::Rejected(_)), "{answer:?}");
    assert!(!second.read(|state| state.picture.resynced), "nothing is known to be gone");

    one.assign(assignment(7, &["a"], &[])).await;
    let status = first.wait_ended(PATIENCE).await.expect("ended");
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let gone = first.read(|state| state.picture.count(MachineState::Configured));
    assert_eq!(gone, 3, "no update tells that a machine goes");
    let released = |reports: &[ShardReport]| {
        reports.last().is_some_and(|last| last.assignment_version == 7 && last.releasing.is_none())
    };
    one.coordinator.wait_for("the release", released, PATIENCE).await.expect("released");
    fake.clear_calls();

    two.assign(assignment(8, &["b"], &["c"])).await;
    until("all is told", || second.read(|state| state.picture.resynced)).await;
    assert_eq!(second.read(|state| state.picture.count(MachineState::Configured)), 3);
    let answer = second.roll_up(machines("c", 3)).await.expect("an answer");
    assert_eq!(answer, Answer::Accepted);
    pass(300).await;
    assert_eq!(configured(&fake, "c"), bound, "the same machines, and no more");
    assert!(one.touched().is_empty() && two.touched().is_empty());

    // On a drain they go home.
    second.roll_up(vec![]).await.expect("an answer");
    until("drained", || configured(&fake, "c").is_empty()).await;
    pass(1_200).await;
    let states =
        |state| bound.iter().filter(|id| fake.machine(id).expect("there").state == state).count();
    assert_eq!(states(MachineState::Speculative), 3, "the holder of their domain releases them");
    let foreign = two.touched().into_iter().filter(|id| id.contains("-a"));
    assert!(foreign.into_iter().all(|id| bound.contains(&id)), "and nobody else does");
    one.stop().await;
    two.stop().await;
}

/// What is being released outlives the process; the next one lets go only after the
/// provider has heard its epoch.
#[tokio::test(start_paused = true)]
async fn a_killed_process_leaves_its_releases_to_the_next() {
    let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
    let file = dir.path().join("assignment");
    let one = Sharer::resume(&fake, "one", 1, Some(file.clone())).await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    fake.script(Script {
        delay: Duration::from_secs(300),
        ..Script::next(Method::Mutate(Kind::Configure))
    });
    operator.roll_up(machines("c", 1)).await.expect("an answer");
    until("a call", || one.metric("bigfleet_shard_execute_inflight ") > 0.0).await;
    pass(5).await;
    one.assign(assignment(6, &[], &["c"])).await;
    let first = one.coordinator.reports().into_iter().find(|one| one.assignment_version == 6);
    assert_eq!(releasing(&first.expect("reported")).0, 1);
    let coordinator = one.kill();

    let again = Sharer::led_by(coordinator, &fake, "one", 2, Some(file)).await;
    let reports = again.coordinator.reports().len();
    until("it reports", || again.coordinator.reports().len() > reports).await;
    let first = again.coordinator.reports()[reports].clone();
    assert_eq!((first.assignment_version, releasing(&first).0), (6, 1));
    let released = |reports: &[ShardReport]| {
        reports.last().is_some_and(|last| last.shard_epoch == 2 && releasing(last).0 == 0)
    };
    again.coordinator.wait_for("the release", released, PATIENCE).await.expect("released");
    // The dead one's call arrives, and is refused.
    pass(400).await;
    assert!(configured(&fake, "c").is_empty());
    again.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_told_when_asked() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    assert!(one.last_report().await.holdings.is_none());
    one.coordinator.want_holdings(true);
    let told = |reports: &[ShardReport]| reports.iter().any(|one| one.holdings.is_some());
    one.coordinator.wait_for("holdings", told, PATIENCE).await.expect("told");
    let report = one.coordinator.reports().into_iter().find_map(|one| one.holdings);
    let holdings = report.expect("told");
    assert_eq!((holdings.domains.len(), holdings.clusters), (1, vec!["c".to_owned()]));
    one.stop().await;
}
