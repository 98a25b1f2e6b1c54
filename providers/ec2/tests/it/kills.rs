//! `kill -9` in the middle of a transition: it is resumed, with the same id, and there is
//! one host.

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::json;

use crate::rig::{Rig, SLOT};

#[tokio::test(flavor = "multi_thread")]
async fn in_creating() {
    let mut rig = Rig::serving(&json!({"running_after_ms": 3000, "visible_after_ms": 1500})).await;
    let ack = rig.create(SLOT).await.unwrap();
    rig.truth_becomes(|truth| truth["launched"] == 1).await;
    rig.restart().await;
    assert_eq!(rig.get(SLOT).await.state(), MachineState::Creating, "the kill came too late");
    rig.reaches(SLOT, MachineState::Idle).await;
    assert_eq!(rig.create(SLOT).await.unwrap().operation_id, ack.operation_id);
    assert_eq!(rig.only_host().await["token"], ack.operation_id.as_str());
    assert_eq!(rig.truth().await["launched"], 1);
}

/// The launch is another call after the restart, yet the token still means the instance
/// that it brought before.
#[tokio::test(flavor = "multi_thread")]
async fn in_creating_with_another_configuration_after_it() {
    let mut rig = Rig::serving(&json!({"running_after_ms": 3000, "visible_after_ms": 500})).await;
    rig.create(SLOT).await.unwrap();
    rig.truth_becomes(|truth| truth["launched"] == 1).await;
    rig.config.account.image = "ami-other".into();
    rig.restart().await;
    rig.reaches(SLOT, MachineState::Idle).await;
    assert_eq!(rig.truth().await["launched"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_draining() {
    let mut rig = Rig::serving(&json!({"drain_ms": 3000})).await;
    rig.bind(SLOT, "c-1").await;
    let ack = rig.drain(SLOT, 60).await.unwrap();
    rig.reaches(SLOT, MachineState::Draining).await;
    rig.restart().await;
    let idle = rig.reaches(SLOT, MachineState::Idle).await;
    assert!(idle.cluster.is_empty());
    assert_eq!(rig.drain(SLOT, 60).await.unwrap().operation_id, ack.operation_id);
    let host = rig.only_host().await;
    assert!(host["cluster"].is_null() && host["tags"].get("bigfleet:cluster").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_deleting() {
    let mut rig = Rig::serving(&json!({})).await;
    rig.bring(SLOT).await;
    // The end is not seen for a while.
    rig.faults(json!({"visible_after_ms": 3000})).await;
    let ack = rig.delete(SLOT).await.unwrap();
    rig.truth_becomes(|truth| truth["hosts"].as_array().unwrap().is_empty()).await;
    rig.restart().await;
    assert_eq!(rig.get(SLOT).await.state(), MachineState::Deleting, "the kill came too late");
    rig.reaches(SLOT, MachineState::Speculative).await;
    assert_eq!(rig.delete(SLOT).await.unwrap().operation_id, ack.operation_id);
    assert_eq!(rig.truth().await["launched"], 1);
}
