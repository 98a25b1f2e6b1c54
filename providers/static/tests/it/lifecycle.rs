use bigfleet_wire::v1alpha1::{CapacityType, MachineState};

use crate::rig::Rig;

const MARKER: &str = "join-secret-8d1f";

#[tokio::test]
async fn hooks_carry_a_machine_into_a_cluster_and_out_again() {
    let mut rig = Rig::new();
    rig.inventory(&["m-1", "m-2"]);
    // Ready at the second look.
    rig.hook("status", r#"[ "$(grep -c status "$LOG")" -ge 2 ] || exit 75"#);
    rig.start().await;
    let machine = rig.get("m-1").await.unwrap();
    assert_eq!(machine.state(), MachineState::Idle);
    assert_eq!(machine.capacity_type(), CapacityType::BareMetal);
    let host = machine.host.unwrap();
    assert_eq!((host.provider.as_str(), host.r#ref.as_str()), ("metal-test", "SN-m-1"));
    rig.configure("m-1", MARKER).await;
    let machine = rig.reaches("m-1", MachineState::Configured).await;
    assert_eq!(machine.cluster, "c-1");
    assert_eq!(rig.log(), ["power-on", "install", "status", "status"]);
    rig.drain("m-1", 30).await;
    rig.reaches("m-1", MachineState::Idle).await;
    assert_eq!(rig.log()[4..], ["drain", "wipe"]);
    assert_eq!(rig.delete("m-1").await.code(), tonic::Code::Unimplemented);
    assert_eq!(rig.blobs(), 0);
    assert!(!rig.stderr().contains(MARKER));
}

#[tokio::test]
async fn a_hook_that_tells_the_blob_tells_nobody_and_repair_wipes() {
    let mut rig = Rig::new().flag("--failed-hold=2s");
    rig.inventory(&["m-1"]);
    rig.hook("install", r#"echo "refused: $(cat "$BF_BLOB")" >&2; exit 1"#);
    rig.start().await;
    rig.configure("m-1", MARKER).await;
    let machine = rig.reaches("m-1", MachineState::Failed).await;
    let error = "configure failed: install hook exited with 1: refused: [redacted]";
    assert_eq!(machine.last_error, error);
    rig.reaches("m-1", MachineState::Idle).await;
    assert_eq!(rig.log(), ["power-on", "install", "wipe", "status"]);
    let stderr = rig.stderr();
    assert!(stderr.contains("transition failed") && !stderr.contains(MARKER), "{stderr}");
}

#[tokio::test]
async fn a_hook_that_asks_for_it_is_tried_again() {
    let mut rig = Rig::new();
    rig.inventory(&["m-1"]);
    rig.hook("install", r#"[ "$(grep -c install "$LOG")" -ge 2 ] || exit 75"#);
    rig.start().await;
    rig.configure("m-1", MARKER).await;
    rig.reaches("m-1", MachineState::Configured).await;
    assert_eq!(rig.log(), ["power-on", "install", "power-on", "install", "status"]);
}

#[tokio::test]
async fn past_its_grace_a_drain_is_forced() {
    let mut rig = Rig::new();
    rig.inventory(&["m-1"]);
    rig.hook("drain", "exit 75");
    rig.start().await;
    rig.configure("m-1", MARKER).await;
    rig.reaches("m-1", MachineState::Configured).await;
    rig.drain("m-1", 0).await;
    rig.reaches("m-1", MachineState::Idle).await;
    assert_eq!(rig.log()[3..], ["drain", "power-off", "wipe"]);
}

#[tokio::test]
async fn a_transition_timeout_kills_its_hook() {
    let mut rig = Rig::new().flag("--configure-timeout=2s");
    rig.inventory(&["m-1"]);
    rig.hook("install", r#"echo $$ >"$LOG.pid"; exec sleep 600"#);
    rig.start().await;
    rig.configure("m-1", MARKER).await;
    let machine = rig.reaches("m-1", MachineState::Failed).await;
    assert!(machine.last_error.starts_with("configure timed out after 2s"), "{machine:?}");
    let pid = std::fs::read_to_string(rig.path("log.pid")).unwrap();
    crate::rig::until(|| !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()).await;
    crate::rig::until(|| rig.blobs() == 0).await;
}
