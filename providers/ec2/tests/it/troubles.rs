//! What clouds do.

use std::time::Duration;

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::json;

use crate::rig::{Rig, SLOT, SPOT, sound};

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_whose_answer_is_lost_brings_one_instance() {
    let mut rig = Rig::serving(&json!({"lose_launch_answers": 2})).await;
    rig.bring(SLOT).await;
    assert_eq!(rig.truth().await["launched"], 1);
}

/// Sweeps run every 300 ms here, so an instance that is invisible for 2 s is missed by
/// several of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_invisible_instance_is_neither_lost_nor_launched_again() {
    let mut rig = Rig::serving(&json!({"visible_after_ms": 2000})).await;
    rig.create(SLOT).await.unwrap();
    let mut seen = Vec::new();
    rig.becomes(SLOT, |machine| machine.state() == MachineState::Idle).await;
    for _ in 0..40 {
        seen.push(rig.get(SLOT).await.state());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(seen.iter().all(|state| *state == MachineState::Idle), "{seen:?}");
    rig.bring(SPOT).await;
    rig.delete(SPOT).await.unwrap();
    rig.reaches(SPOT, MachineState::Speculative).await;
    for _ in 0..20 {
        assert_eq!(rig.get(SPOT).await.state(), MachineState::Speculative);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rig.truth().await["launched"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_delays_and_breaks_nothing() {
    let mut rig = Rig::serving(&sound()).await;
    rig.faults(json!({"throttle_next": 12})).await;
    rig.bind(SLOT, "c-1").await;
    assert_eq!(rig.truth().await["launched"], 1);
    // Not a few calls but all of them, above a rate.
    rig.faults(json!({"calls_per_second": 8})).await;
    rig.bind(SPOT, "c-1").await;
    assert_eq!(rig.truth().await["launched"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn small_pages_hide_nothing() {
    let mut rig = Rig::serving(&json!({"page_size": 1})).await;
    let ids: Vec<_> = rig.list().await.into_iter().map(|machine| machine.id).collect();
    for id in &ids {
        rig.create(id).await.unwrap();
    }
    for id in &ids {
        rig.reaches(id, MachineState::Idle).await;
    }
    rig.kill().await;
    std::fs::remove_dir_all(rig.directory.path().join("state")).unwrap();
    rig.start().await;
    let found = rig.list().await;
    assert_eq!(found.len(), ids.len());
    assert!(found.iter().all(|machine| machine.state() == MachineState::Idle));
}

#[tokio::test(flavor = "multi_thread")]
async fn shortage_and_limit_are_told_and_repaired() {
    let mut rig = Rig::new(&json!({"stock": {"m6i.large/standin-1a": 0}})).await;
    rig.flags.push("--failed-hold=1s".into());
    rig.start().await;
    rig.create(SLOT).await.unwrap();
    let failed = rig.reaches(SLOT, MachineState::Failed).await;
    assert!(failed.last_error.contains("out of stock"), "{}", failed.last_error);
    rig.reaches(SLOT, MachineState::Speculative).await;
    rig.faults(json!({"stock": {}, "limit": 0})).await;
    rig.create(SLOT).await.unwrap();
    let failed = rig.reaches(SLOT, MachineState::Failed).await;
    assert!(failed.last_error.contains("quota"), "{}", failed.last_error);
    rig.reaches(SLOT, MachineState::Speculative).await;
    rig.faults(json!({"limit": null})).await;
    rig.bring(SLOT).await;
}

/// The deadline passes while the instance starts: it must not be paid for for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_comes_too_late_leaves_no_host() {
    let mut rig = Rig::new(&json!({"running_after_ms": 3_600_000})).await;
    rig.flags.extend(["--create-timeout=1s".into(), "--failed-hold=1s".into()]);
    rig.start().await;
    rig.create(SLOT).await.unwrap();
    rig.reaches(SLOT, MachineState::Failed).await;
    rig.reaches(SLOT, MachineState::Speculative).await;
    let truth = rig.truth().await;
    assert_eq!((&truth["launched"], &truth["hosts"]), (&json!(1), &json!([])));
}

/// The late instance is not even visible when the repair ends it: the API does not know
/// it. It is found when it shows itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_host_that_nobody_sees_is_found_in_the_end() {
    let mut rig = Rig::new(&json!({"visible_after_ms": 4000})).await;
    rig.flags.extend(["--create-timeout=1s".into(), "--failed-hold=500ms".into()]);
    rig.start().await;
    rig.create(SLOT).await.unwrap();
    rig.reaches(SLOT, MachineState::Failed).await;
    rig.reaches(SLOT, MachineState::Speculative).await;
    assert_eq!(rig.truth().await["hosts"][0]["visible"], json!(false), "not the case to test");
    rig.truth_becomes(|truth| truth["hosts"] == json!([])).await;
    rig.reaches(SLOT, MachineState::Speculative).await;
    assert_eq!(rig.truth().await["launched"], 1);
}

/// No sweep has found it so far: the next create does not launch a second one beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_clears_what_an_earlier_one_left_over() {
    let mut rig = Rig::new(&json!({"visible_after_ms": 3000})).await;
    rig.flags.extend(["--create-timeout=1s".into(), "--failed-hold=500ms".into()]);
    rig.sweep = "1h";
    rig.start().await;
    rig.create(SLOT).await.unwrap();
    rig.reaches(SLOT, MachineState::Failed).await;
    rig.reaches(SLOT, MachineState::Speculative).await;
    rig.faults(json!({"visible_after_ms": 0})).await;
    rig.truth_becomes(|truth| truth["hosts"][0]["visible"] == json!(true)).await;
    let ack = rig.create(SLOT).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    assert_eq!(rig.only_host().await["token"], ack.operation_id.as_str());
    assert_eq!(rig.truth().await["launched"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn interruptions_are_told_and_then_come() {
    let mut rig = Rig::serving(&sound()).await;
    rig.bind(SPOT, "c-1").await;
    rig.admin("interrupt", json!({"machine": SPOT, "kind": "rebalance"})).await;
    let told = rig.becomes(SPOT, |machine| machine.interruption_probability == 0.5).await;
    assert_eq!(told.state(), MachineState::Configured);
    let body = json!({"machine": SPOT, "kind": "termination", "notice_ms": 2000});
    rig.admin("interrupt", body).await;
    let told = rig.becomes(SPOT, |machine| machine.interruption_probability == 0.99).await;
    assert_eq!(told.state(), MachineState::Configured);
    let lost = rig.reaches(SPOT, MachineState::Failed).await;
    assert_eq!(lost.last_error, "host lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_host_that_ends_is_a_slot_again() {
    let mut rig = Rig::serving(&sound()).await;
    rig.bring(SPOT).await;
    rig.admin("end", json!({"machine": SPOT})).await;
    rig.reaches(SPOT, MachineState::Speculative).await;
}
