//! Without a cluster.

use bigfleet_wire::v1alpha1::MachineState;

use crate::process::Provider;

#[test]
fn without_a_cluster_it_says_what_to_do() {
    let output = Provider::command().args(["--addr=127.0.0.1:0", "--metrics-addr=0"]).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let complaint = String::from_utf8_lossy(&output.stderr);
    for hint in ["--clusters", "--default-cluster", "--use-fake-backend"] {
        assert!(complaint.contains(hint), "{complaint}");
    }
}

#[tokio::test]
async fn a_simulation_needs_no_cluster_and_outlives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let (state, flags) = (folder.path().join("state"), ["--use-fake-backend".to_owned()]);
    let mut provider = Provider::start(&state, &flags).await;
    let (bound, id) = ("local-000000", "local-000001");
    provider.join(bound, "any").await;
    provider.join(id, "any").await;
    provider.drain(id, 30).await;
    provider.reaches(id, MachineState::Idle).await;
    provider.kill();
    let mut provider = Provider::start(&state, &flags).await;
    provider.delete(id).await;
    assert_eq!(provider.get(bound).await.state(), MachineState::Configured);
}
