//! A machine's whole life, and what the cloud holds meanwhile.

use bigfleet_wire::v1alpha1::{CapacityType, MachineState};

use crate::rig::{Rig, SLOT, SPOT, sound};

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_life() {
    let mut rig = Rig::serving(&sound()).await;
    let slots = rig.list().await;
    assert_eq!(slots.len(), 8);
    assert!(slots.iter().all(|machine| machine.state() == MachineState::Speculative));
    let spot = slots.iter().find(|machine| machine.id == SPOT).unwrap();
    assert_eq!(spot.capacity_type(), CapacityType::Spot);
    assert_eq!((spot.price_per_hour, spot.interruption_probability), (0.041, 0.025));
    assert_eq!(spot.resources.as_ref().unwrap().resources["memory"], "8192Mi");

    let ack = rig.create(SLOT).await.unwrap();
    let idle = rig.reaches(SLOT, MachineState::Idle).await;
    let host = rig.only_host().await;
    let reference = idle.host.unwrap().r#ref;
    assert_eq!(reference, format!("aws:///standin-1a/{}", host["id"].as_str().unwrap()));
    assert_eq!(host["token"], ack.operation_id.as_str());
    assert_eq!(host["tags"]["bigfleet:managed"], "true");
    assert_eq!(host["tags"]["bigfleet:machine-id"], SLOT);
    assert_eq!(host["tags"]["bigfleet:capacity"], "on-demand");
    assert_eq!(host["tags"]["bigfleet:provider"], "p");

    // Several parts, every byte value, and nothing a shell would like.
    let blob: Vec<u8> = (0..100_000u32).map(|number| (number * 7 % 256) as u8).collect();
    rig.configure(SLOT, "c-1", &blob).await.unwrap();
    rig.reaches(SLOT, MachineState::Configured).await;
    let host = rig.only_host().await;
    assert_eq!(host["cluster"], "c-1");
    assert_eq!(host["tags"]["bigfleet:cluster"], "c-1");
    assert_eq!(host["blob_bytes"], 100_000);
    let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &blob);
    let sum: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(host["blob_sha256"], sum.as_str());

    rig.drain(SLOT, 5).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    let host = rig.only_host().await;
    assert!(host["cluster"].is_null() && host["tags"].get("bigfleet:cluster").is_none());

    rig.delete(SLOT).await.unwrap();
    let slot = rig.reaches(SLOT, MachineState::Speculative).await;
    assert_eq!(slot.host, None);
    assert_eq!(rig.truth().await["hosts"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn not_configured_before_the_host_says_ready() {
    let mut rig = Rig::serving(&serde_json::json!({"join_ms": 3_600_000})).await;
    rig.bring(SLOT).await;
    rig.configure(SLOT, "c-1", b"blob").await.unwrap();
    rig.truth_becomes(|truth| truth["hosts"][0]["cluster"] == "c-1").await;
    for _ in 0..20 {
        assert_eq!(rig.get(SLOT).await.state(), MachineState::Configuring);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_fails_ends_by_the_switch() {
    let mut rig = Rig::serving(&serde_json::json!({"drain_fails": true})).await;
    rig.bind(SLOT, "c-1").await;
    rig.drain(SLOT, 1).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    let host = rig.only_host().await;
    assert_eq!(host["reboots"], 1);
    assert!(host["cluster"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_hears_nothing_is_drained_by_the_switch() {
    let mut rig = Rig::serving(&sound()).await;
    rig.bind(SLOT, "c-1").await;
    rig.faults(serde_json::json!({"deaf": true})).await;
    rig.drain(SLOT, 0).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    let host = rig.only_host().await;
    assert_eq!(host["reboots"], 1);
    assert!(host["tags"].get("bigfleet:cluster").is_none(), "{host}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_instance_keeps_its_slot_and_a_lost_slot_its_instance() {
    let mut rig = Rig::serving(&sound()).await;
    let reference = rig.bring(SLOT).await.host.unwrap().r#ref;
    rig.bring(SPOT).await;
    rig.admin("stop", serde_json::json!({"machine": SLOT})).await;
    rig.kill().await;
    // The store is lost, and the spot slots are configured no more.
    std::fs::remove_dir_all(rig.directory.path().join("state")).unwrap();
    rig.config.offerings.retain(|offering| offering.capacity.name() == "on-demand");
    rig.start().await;
    let stopped = rig.get(SLOT).await;
    assert_eq!(stopped.state(), MachineState::Idle);
    assert_eq!(stopped.host.unwrap().r#ref, reference);
    let extra = rig.get(SPOT).await;
    assert_eq!(extra.state(), MachineState::Idle);
    assert_eq!(extra.capacity_type(), CapacityType::Spot);
    assert_eq!(extra.price_per_hour, 0.041);
    rig.delete(SPOT).await.unwrap();
    // Given back, and then forgotten: there is no such slot.
    let begun = std::time::Instant::now();
    while rig.find(SPOT).await.is_some() {
        assert!(begun.elapsed().as_secs() < 90, "an extra record stays");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    rig.only_host().await;
}
