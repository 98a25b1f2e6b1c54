//! When reports come, and what a late answer is worth.

use std::time::Duration;

use bigfleet_scripted::coordinator::Answer;
use bigfleet_wire::v1alpha1::ReportAck;
use tokio::time::{Instant, timeout};
use tonic::Code;

use crate::rig::{PATIENCE, Rig, ack_of, answer, assign, coordinator, next, options, reported};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn at_once_then_every_interval_a_tenth_more_or_less() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let began = Instant::now();
    let client = rig.report_to(&[coordinator.addr()]);
    next(&coordinator).await;
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    let mut gaps = Vec::new();
    for _ in 0..20 {
        let before = Instant::now();
        next(&coordinator).await;
        gaps.push(before.elapsed());
    }
    // The clock of a paused runtime has a grain of a millisecond.
    let grain = Duration::from_millis(10);
    let near = |gap: &Duration| *gap + grain >= 9 * SECOND && *gap <= 11 * SECOND + grain;
    assert!(gaps.iter().all(near), "{gaps:?}");
    assert!(gaps.iter().max().unwrap().abs_diff(*gaps.iter().min().unwrap()) > grain, "{gaps:?}");
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sooner_if_the_coordinator_says_so() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    for _ in 0..3 {
        let soon = ReportAck { next_report_after_ms: 1_000, ..answer(1, vec![]) };
        coordinator.next(Answer::Ack(Box::new(soon)));
    }
    let client = rig.report_to(&[coordinator.addr()]);
    next(&coordinator).await;
    let began = Instant::now();
    reported(&coordinator, 4).await;
    let took = began.elapsed();
    assert!(took >= 3 * SECOND && took < 4 * SECOND, "{took:?}");
    next(&coordinator).await;
    assert!(began.elapsed() - took > 8 * SECOND, "and then as before");
    client.stop().await;
    rig.stop().await;
}

/// The answer to a call that was given up is never used.
#[tokio::test(start_paused = true)]
async fn a_call_ends_after_ten_seconds_and_its_late_answer_is_dropped() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    let late = answer(1, vec![assign("late", 1, "late")]);
    let late = Answer::Late(Duration::from_secs(12), Box::new(Answer::Ack(Box::new(late))));
    coordinator.next(Answer::Ack(Box::new(answer(1, vec![assign("first", 1, "first")]))));
    coordinator.next(late);
    coordinator.next(Answer::Never);
    let client = rig.report_to(&[coordinator.addr()]);
    reported(&coordinator, 2).await;
    let began = Instant::now();
    let reports = reported(&coordinator, 4).await;
    let took = began.elapsed();
    assert!(took >= 20 * SECOND && took <= 23 * SECOND, "{took:?}");
    for report in &reports[1..4] {
        assert!(ack_of(report, "first").is_some(), "put back: {report:?}");
    }
    let last = next(&coordinator).await;
    assert_eq!(last.instruction_acks, [], "acknowledged at last");
    assert_eq!(rig.domains(), ["first"]);
    assert_eq!(rig.outcomes("unavailable"), 2);
    client.stop().await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_report_is_tried_again_at_the_next_tick_and_not_before() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    coordinator.always(Answer::Refuse(Code::Unavailable, "no quorum".to_owned()));
    let client = rig.report_to(&[coordinator.addr()]);
    next(&coordinator).await;
    tokio::time::sleep(100 * SECOND).await;
    let reports = coordinator.reports().len();
    assert!((9..=13).contains(&reports), "{reports}");
    client.stop().await;
    rig.stop().await;
}

/// A stop does not wait for a coordinator.
#[tokio::test(start_paused = true)]
async fn the_client_stops_in_the_middle_of_a_call() {
    let rig = Rig::start().await;
    let coordinator = coordinator().await;
    coordinator.always(Answer::Never);
    let client = rig.report_as(options(&[coordinator.addr()]));
    next(&coordinator).await;
    timeout(SECOND, client.stop()).await.expect("at once");
    let known = coordinator.reports().len();
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(coordinator.reports().len(), known);
    rig.stop().await;
}
