//! Many machines at once.

use std::{fs::File, process::Command};

use bigfleet_wire::v1alpha1::MachineState;

use crate::rig::{Rig, configure, drain, until};

const MACHINES: usize = 200;

#[tokio::test]
async fn all_machines_at_once_need_more_files_than_a_process_begins_with() {
    let ids: Vec<String> = (0..MACHINES).map(|number| format!("m-{number}")).collect();
    let mut rig = Rig::new().files(128);
    rig.inventory(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    // Every install waits until the gate has a writer: all of them run together.
    let gate = rig.path("log.gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    rig.hook("install", r#"exec 3<"$LOG.gate"; [ -r "$BF_BLOB" ] || exit 1"#);
    rig.start().await;
    let mut client = rig.another_client();
    for id in &ids {
        client.configure(configure(id, "join")).await.unwrap();
    }
    let running = |rig: &Rig| rig.log().iter().filter(|hook| *hook == "install").count();
    until(|| running(&rig) == MACHINES).await;
    assert_eq!(rig.blobs(), MACHINES);
    let _open = File::options().write(true).open(&gate).unwrap();
    for id in &ids {
        rig.reaches(id, MachineState::Configured).await;
        client.drain(drain(id, 0)).await.unwrap();
    }
    for id in &ids {
        rig.reaches(id, MachineState::Idle).await;
    }
    assert_eq!(running(&rig), MACHINES, "none was tried again");
    assert_eq!(rig.blobs(), 0);
}
