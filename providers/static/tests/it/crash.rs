use std::{fs, path::Path};

use bigfleet_wire::v1alpha1::MachineState;

use crate::rig::{Rig, until};

#[tokio::test]
async fn a_kill_during_install_leaves_no_blob_and_no_hook_after_the_restart() {
    let mut rig = Rig::new();
    rig.inventory(&["m-1"]);
    rig.hook("install", r#"echo $$ >"$LOG.new"; mv "$LOG.new" "$LOG.pid"; exec sleep 600"#);
    rig.start().await;
    rig.configure("m-1", "join-secret-8d1f").await;
    let pid = rig.path("log.pid");
    until(|| pid.exists()).await;
    rig.kill();
    let hook = format!("/proc/{}", fs::read_to_string(&pid).unwrap().trim());
    assert_eq!(rig.blobs(), 1, "the crash left it");
    assert!(Path::new(&hook).exists());
    rig.start().await;
    assert_eq!(rig.blobs(), 0);
    until(|| !Path::new(&hook).exists()).await;
    let machine = rig.reaches("m-1", MachineState::Failed).await;
    assert_eq!(machine.last_error, "configure interrupted by restart");
    assert!(!rig.stderr().contains("join-secret-8d1f"));
}

#[tokio::test]
async fn a_drain_goes_on_after_a_kill() {
    let mut rig = Rig::new();
    rig.inventory(&["m-1"]);
    rig.hook("wipe", r#"[ -e "$LOG.go" ] || exec sleep 600"#);
    rig.start().await;
    rig.configure("m-1", "").await;
    rig.reaches("m-1", MachineState::Configured).await;
    rig.drain("m-1", 0).await;
    until(|| rig.log().contains(&"wipe".to_owned())).await;
    rig.kill();
    fs::write(rig.path("log.go"), "").unwrap();
    rig.start().await;
    let machine = rig.reaches("m-1", MachineState::Idle).await;
    assert!(machine.cluster.is_empty());
    assert_eq!(rig.log()[3..], ["drain", "wipe", "drain", "wipe"]);
}
