//! The binary against a real API server.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use bigfleet_testkit::kube::ControlPlane;

/// A pod without a node, its request and the machine that comes for it.
const WORLD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: default}
spec:
  containers: [{name: main, image: none, resources: {requests: {cpu: 500m}}}]
---
apiVersion: bigfleet.lucy.sh/v1alpha1
kind: UpcomingNode
metadata:
  name: un-m-1
  annotations: {bigfleet.lucy.sh/machine-id: m-1}
spec:
  resources: {cpu: "8"}
  labels: {node.kubernetes.io/instance-type: c5.2xlarge}
"#;

fn plugin(plane: &ControlPlane, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kubectl-bigfleet"))
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn kubectl(plane: &ControlPlane, words: &[&str], input: Option<&str>) -> String {
    let output = plane.kubectl_with(words, input.unwrap_or_default());
    assert!(output.status.success(), "kubectl {words:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_in_a_real_cluster() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };

    let without = plugin(&plane, &["nodes"]);
    assert_eq!(without.status.code(), Some(1));
    assert!(
        said(&without).contains("the kinds of BigFleet are not installed"),
        "{}",
        said(&without)
    );

    let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/crd");
    kubectl(&plane, &["apply", "--server-side", "-f", definitions.to_str().unwrap()], None);
    kubectl(
        &plane,
        &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"],
        None,
    );
    kubectl(&plane, &["apply", "-f", "-"], Some(WORLD));

    let none = plugin(&plane, &["why", "nobody"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(said(&none).contains("pod nobody is not in namespace default"), "{}", said(&none));

    for pod in ["web-1", "default/web-1", "pod/web-1"] {
        let unasked = said(&plugin(&plane, &["why", pod]));
        assert!(unasked.contains("asks for no capacity"), "{unasked}");
    }
    let elsewhere = said(&plugin(&plane, &["why", "kube-system/web-1"]));
    assert!(elsewhere.contains("pod web-1 is not in namespace kube-system"), "{elsewhere}");
    let listed = said(&plugin(&plane, &["why"]));
    assert!(listed.contains("web-1") && listed.contains("asks for no capacity"), "{listed}");
    let unknown = said(&plugin(&plane, &["--context", "nowhere", "why"]));
    assert!(unknown.contains("has no context nowhere; it has "), "{unknown}");

    let uid = kubectl(&plane, &["get", "pod", "web-1", "-o=jsonpath={.metadata.uid}"], None);
    let owned = format!(
        r#"{{"apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest", "metadata": {{
             "name": "of-a-queue", "namespace": "default", "ownerReferences": [
               {{"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "{uid}"}}]}},
             "spec": {{"priority": 5, "resources": {{"cpu": "500m"}}}}}}"#
    );
    kubectl(&plane, &["apply", "-f", "-"], Some(&owned));
    let why = said(&plugin(&plane, &["why", "web-1"]));
    assert!(why.contains("of-a-queue, Pending for"), "made by another pipeline: {why}");
    kubectl(&plane, &["delete", "capacityrequest", "of-a-queue"], None);
    let request = format!(
        r#"{{"apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest", "metadata": {{
             "name": "cr-pod-web-1", "namespace": "default",
             "labels": {{"bigfleet.lucy.sh/owned-by-pod": "{uid}"}}}},
             "spec": {{"priority": 5, "resources": {{"cpu": "500m"}}, "requirements": [
               {{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}}]}}}}"#
    );
    kubectl(&plane, &["apply", "-f", "-"], Some(&request));
    let why = said(&plugin(&plane, &["why", "web-1"]));
    for part in ["cr-pod-web-1, Pending for", "cpu=500m", "m-1 (c5.2xlarge)"] {
        assert!(why.contains(part), "{part:?} is not in:\n{why}");
    }
    let needs = said(&plugin(&plane, &["needs"]));
    assert!(needs.contains("node.kubernetes.io/instance-type"), "{needs}");
    let nodes = said(&plugin(&plane, &["nodes"]));
    assert!(nodes.contains("m-1") && nodes.contains("c5.2xlarge"), "{nodes}");

    let waited = plugin(&plane, &["wait", "web-1", "--timeout=1s"]);
    assert_eq!(waited.status.code(), Some(1));
    assert!(said(&waited).contains("does not run after 1s"), "{}", said(&waited));
    let running = r#"{"status": {"phase": "Running"}}"#;
    kubectl(
        &plane,
        &["patch", "pod", "web-1", "--subresource=status", "--type=merge", "-p", running],
        None,
    );
    let waited = plugin(&plane, &["wait", "web-1"]);
    assert!(waited.status.success() && said(&waited).contains("runs"), "{}", said(&waited));
}
