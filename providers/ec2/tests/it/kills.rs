//! `kill -9` in the middle of a transition: it is resumed, with the same id, and there is
//! one host.

use std::net::TcpListener;

use bigfleet_wire::v1alpha1::MachineState;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::rig::{Rig, SLOT, SPOT};

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

/// Here it is the cloud that goes away, and comes back with all it had.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_stand_in() {
    let directory = tempfile::tempdir().unwrap();
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let state = directory.path().join("standin");
    let standin = || -> Child {
        Command::new(env!("CARGO_BIN_EXE_bigfleet-ec2-standin"))
            .arg(format!("--addr={addr}"))
            .arg(format!("--state={}", state.display()))
            .arg(r#"--faults={"running_after_ms": 2000}"#)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    let mut first = standin();
    let mut rig = Rig::beside(format!("http://{addr}"), directory);
    rig.start().await;
    rig.bind(SPOT, "c-1").await;
    let ack = rig.create(SLOT).await.unwrap();
    rig.truth_becomes(|truth| truth["launched"] == 2).await;
    first.kill().await.unwrap();
    let _second = standin();
    rig.reaches(SLOT, MachineState::Idle).await;
    let truth = rig.truth().await;
    assert_eq!(truth["launched"], 2);
    let mut tokens = truth["hosts"].as_array().unwrap().iter().map(|host| &host["token"]);
    assert!(tokens.any(|token| *token == ack.operation_id.as_str()), "{truth}");
    let bound = rig.get(SPOT).await;
    assert_eq!(bound.state(), MachineState::Configured, "no host is lost by an outage");
}

/// The simulated cloud dies with the provider, and is found again with it.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_fake_backend() {
    let mut rig = Rig::new(&json!({})).await;
    rig.fake = true;
    rig.start().await;
    let bound = rig.bind(SLOT, "c-1").await;
    rig.bring(SPOT).await;
    rig.restart().await;
    assert_eq!(rig.get(SLOT).await, bound);
    rig.drain(SLOT, 1).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    rig.delete(SPOT).await.unwrap();
    rig.reaches(SPOT, MachineState::Speculative).await;
}
