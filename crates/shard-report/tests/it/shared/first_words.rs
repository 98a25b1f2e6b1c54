//! What a shard that shares its provider says before it acts.

use std::time::Duration;

use bigfleet_provider::{
    fake::{Fake, FakeOptions, Method},
    protocol::Kind,
};
use bigfleet_scripted::coordinator::Answer;
use bigfleet_wire::v1alpha1::ReportAck;
use tempfile::TempDir;
use tokio::time::timeout;
use tonic::Code;

use crate::{
    rig::{PATIENCE, coordinator},
    shared::rig::{Sharer, assignment, configured, machines, pass, provider, until},
};

/// §11: from the first call on every older process is refused on every machine.
#[tokio::test(start_paused = true)]
async fn its_epoch_is_announced_and_the_one_before_is_refused() {
    let fake = provider();
    let one = Sharer::resume(&fake, "one", 7, None).await;
    until("both calls", || fake.calls().iter().filter(|call| call.token.is_some()).count() == 2)
        .await;
    let calls = fake.calls().into_iter().filter_map(|call| {
        let token = call.token?;
        assert_eq!(call.method, Method::Mutate(Kind::Delete));
        Some((call.machine, token.epoch, call.outcome))
    });
    let calls: Vec<_> = calls.collect();
    assert_eq!(calls[0], ("epoch.one".to_owned(), 7, Code::NotFound));
    assert_eq!(calls[1], ("epoch-probe.one".to_owned(), 6, Code::FailedPrecondition));
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_takes_old_epochs_is_not_shared() {
    let fake = Fake::new(FakeOptions::default());
    let mut one = Sharer::start(&fake, "one").await;
    let why = timeout(PATIENCE, one.running.task_ended()).await.expect("it ends");
    assert!(why.contains("--strict-epoch"), "{why}");
    one.kill();
}

/// A provider that is down is waited for; nothing else is done meanwhile.
#[tokio::test(start_paused = true)]
async fn somebody_newer_latches_it() {
    let fake = provider();
    let newer = Sharer::resume(&fake, "one", 9, None).await;
    pass(5).await;
    let older = Sharer::resume(&fake, "one", 8, None).await;
    until("it is fenced", || older.metric("bigfleet_shard_fenced ") == 1.0).await;
    assert!(newer.metric("bigfleet_shard_fenced ") == 0.0);
    newer.stop().await;
    older.stop().await;
}

/// A shard reports before it acts; where nobody answers, it goes on with its file.
#[tokio::test(start_paused = true)]
async fn without_an_answer_it_goes_on_with_its_file() {
    let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
    let file = dir.path().join("assignment");
    let one = Sharer::resume(&fake, "one", 1, Some(file.clone())).await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    let before = one.holdings();
    drop(one.kill());
    assert!(file.exists());
    fake.clear_calls();

    let silent = coordinator().await;
    silent.always(Answer::Never);
    let began = tokio::time::Instant::now();
    let again = Sharer::led_by(silent, &fake, "one", 2, Some(file)).await;
    assert_eq!(again.holdings(), before);
    let operator = again.operator("c").await;
    pass(20).await;
    operator.roll_up(machines("c", 2)).await.expect("an answer");
    assert!(again.touched().is_empty(), "it has not reported yet");
    until("served", || configured(&fake, "c").len() == 2).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let reports = again.coordinator.reports();
    assert_eq!((reports[0].assignment_version, reports[0].shard_epoch), (5, 2));
    assert!(again.readiness.is_ready());
    again.stop().await;
}

/// A coordinator of a newer generation than the file's says no more than its name. What
/// is still the shard's it says to the next report: a volume may be old.
#[tokio::test(start_paused = true)]
async fn an_answer_to_a_report_that_did_not_count_opens_nothing() {
    let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
    let file = dir.path().join("assignment");
    let one = Sharer::resume(&fake, "one", 1, Some(file.clone())).await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    drop(one.kill());
    fake.clear_calls();

    let (fleet_id, term) = ("6f2c.00000001".to_owned(), (1 << 20) + 1);
    let restored = coordinator().await;
    restored.set_fleet(&fleet_id);
    restored.set_term(term);
    restored.assign(assignment(9, &["b"], &["c"]));
    let named = ReportAck { coordinator_term: term, fleet_id, ..ReportAck::default() };
    restored.always(Answer::Ack(Box::new(named)));
    let again = Sharer::led_by(restored, &fake, "one", 2, Some(file)).await;
    let operator = again.operator("c").await;
    pass(20).await;
    operator.roll_up(machines("c", 2)).await.expect("an answer");
    pass(20).await;
    assert!(again.touched().is_empty(), "nobody has said what is its own");
    assert!(again.coordinator.reports().len() > 20, "it asks again within a second or so");
    again.coordinator.always(Answer::Report);
    until("served", || configured(&fake, "c").len() == 2).await;
    let touched = again.touched();
    assert!(touched.iter().all(|machine| machine.contains("-b")), "{touched:?}");
    again.stop().await;
}

/// An answer that cannot be taken in is none: the file may say what was lost long ago.
#[tokio::test(start_paused = true)]
async fn an_answer_whose_assignment_is_refused_opens_nothing() {
    let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
    let file = dir.path().join("assignment");
    let one = Sharer::resume(&fake, "one", 1, Some(file.clone())).await;
    one.assign(assignment(9, &["a"], &["c"])).await;
    drop(one.kill());

    let behind = coordinator().await;
    behind.assign(assignment(5, &["b"], &["c"]));
    let again = Sharer::led_by(behind, &fake, "one", 2, Some(file)).await;
    let side = again.running.report_side();
    let shared = side.shared().expect("it shares");
    until("it goes on with its file", || !shared.waits_for_report()).await;
    assert_eq!(again.coordinator.reports().len(), 3);
    assert_eq!(again.holdings().version(), 9);
    again.stop().await;
}

/// What the coordinator says to the older of two processes stops that one.
#[tokio::test(start_paused = true)]
async fn a_stale_epoch_latches() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    pass(30).await;
    let stale = "stale shard epoch: epoch 1 of one, whose newest process has 2".to_owned();
    one.coordinator.always(Answer::Refuse(Code::Aborted, stale));
    until("it is fenced", || one.metric("bigfleet_shard_fenced ") == 1.0).await;
    assert!(!one.readiness.is_ready());
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 2)).await.expect("an answer");
    pass(120).await;
    assert!(one.touched().is_empty());
    one.stop().await;
}
