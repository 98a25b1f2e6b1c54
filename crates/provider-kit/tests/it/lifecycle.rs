//! A machine's whole life.

use bigfleet_provider_kit::MemStore;
use bigfleet_wire::v1alpha1::{ListFilter, MachineState};
use tonic::Code;

use crate::{
    rack::Rack,
    rig::{Rig, config},
};

#[tokio::test]
async fn create_configure_drain_delete() {
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(3, directory.path()).unwrap();
    let mut rig = Rig::start(rack, MemStore::new(), config()).await;
    let id = "slot-000001";
    let ack = rig.create(id).await.unwrap();
    let shown = ack.machine.unwrap();
    assert_eq!((shown.state(), shown.host), (MachineState::Creating, None));
    let idle = rig.reaches(id, MachineState::Idle).await;
    assert_eq!(idle.host.unwrap().provider, "rig");
    // At the target a repeated call is a replay.
    assert_eq!(rig.create(id).await.unwrap().operation_id, ack.operation_id);

    let bound = rig.configure(id, "c-1").await.unwrap();
    assert_ne!(bound.operation_id, ack.operation_id);
    let shown = bound.machine.unwrap();
    assert_eq!((shown.state(), shown.cluster.as_str()), (MachineState::Configuring, "c-1"));
    assert_eq!(shown.shard_metadata["key"], "value\0");
    let configured = rig.reaches(id, MachineState::Configured).await;
    assert_eq!(configured.shard_metadata, shown.shard_metadata);
    assert_eq!(rig.configure(id, "c-2").await.unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(rig.delete(id).await.unwrap_err().code(), Code::Internal);

    let drained = rig.drain(id, 5).await.unwrap().machine.unwrap();
    assert_eq!((drained.state(), drained.cluster.as_str()), (MachineState::Draining, "c-1"));
    let idle = rig.reaches(id, MachineState::Idle).await;
    assert!(idle.cluster.is_empty() && idle.shard_metadata.is_empty());

    rig.delete(id).await.unwrap();
    let slot = rig.reaches(id, MachineState::Speculative).await;
    assert_eq!(slot.host, None);
    assert_eq!(rig.list(ListFilter::default()).await.machines.len(), 3);
    rig.stop().await;
}
