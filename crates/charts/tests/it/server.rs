//! The charts in a real API server: it takes every object, and pods pass the strictest profile.

use std::process::Command;

use bigfleet_charts::{charts::CHARTS, root};
use bigfleet_testkit::kube::ControlPlane;
use serde_json::{Value, json};

use crate::helm::{helm, objects, values};

const NAMESPACES: [&str; 2] = ["bigfleet-system", "elsewhere"];

#[test]
fn charts_in_a_real_api_server() {
    if helm().is_none() {
        return;
    }
    let Some(cluster) = ControlPlane::start_or_skip() else { return };
    for namespace in NAMESPACES {
        kubectl(&cluster, &["create", "-f", "-"], &restricted(namespace));
    }
    kubectl(&cluster, &["create", "-f", "-"], &monitoring());
    let monitored =
        ["crd/podmonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com"];
    for name in monitored {
        let established = ["wait", "--for=condition=Established", "--timeout=60s", name];
        kubectl(&cluster, &established, &Value::Null);
    }
    an_open_pod_is_refused(&cluster);
    every_object_is_taken(&cluster);
    every_pod_is_admitted(&cluster);
    definitions_outlive_the_release(&cluster);
}

/// A namespace that admits only what is restricted, and warns about workloads that would not be.
fn restricted(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/warn": "restricted",
        }},
    })
}

/// The two kinds of the Prometheus operator, without its schemas.
fn monitoring() -> Value {
    let kinds = [("PodMonitor", "podmonitors"), ("PrometheusRule", "prometheusrules")];
    let items: Vec<Value> = kinds
        .iter()
        .map(|(kind, plural)| {
            let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
                "spec": {
                    "group": "monitoring.coreos.com", "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": open},
                    }],
                },
            })
        })
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn kubectl(cluster: &ControlPlane, args: &[&str], input: &Value) -> String {
    let output = cluster.kubectl_with(args, &input.to_string());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "kubectl {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Else what follows would prove nothing.
fn an_open_pod_is_refused(cluster: &ControlPlane) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "open", "namespace": NAMESPACES[0]},
        "spec": {"containers": [{"name": "open", "image": "open"}]},
    });
    let output = cluster.kubectl_with(&["create", "--dry-run=server", "-f", "-"], &pod.to_string());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("violates PodSecurity"), "{said}");
}

fn every_object_is_taken(cluster: &ControlPlane) {
    for chart in CHARTS {
        for set in [chart.to_owned(), format!("{chart}-full")] {
            let list = json!({
                "apiVersion": "v1", "kind": "List", "items": objects(chart, &values(&set)),
            });
            let apply =
                ["apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "-f", "-"];
            kubectl(cluster, &apply, &list);
        }
    }
}

/// Enforcement looks at pods, not at what makes them.
fn every_pod_is_admitted(cluster: &ControlPlane) {
    let mut pods = Vec::new();
    for chart in CHARTS {
        for set in [chart.to_owned(), format!("{chart}-full")] {
            for workload in objects(chart, &values(&set)) {
                let template = &workload["spec"]["template"];
                if !template.is_object() {
                    continue;
                }
                let mut spec = template["spec"].clone();
                // What a StatefulSet's controller would add for each claim.
                for claim in
                    workload["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten()
                {
                    let name = claim["metadata"]["name"].clone();
                    let volume =
                        json!({"name": name, "persistentVolumeClaim": {"claimName": "claim"}});
                    match spec["volumes"].as_array_mut() {
                        Some(volumes) => volumes.push(volume),
                        None => spec["volumes"] = json!([volume]),
                    }
                }
                assert_eq!(spec["enableServiceLinks"], json!(false));
                pods.push(json!({
                    "apiVersion": "v1", "kind": "Pod", "spec": spec,
                    "metadata": {
                        "name": format!("pod-{}", pods.len()),
                        "namespace": workload["metadata"]["namespace"],
                        "labels": template["metadata"]["labels"],
                    },
                }));
            }
        }
    }
    assert_eq!(pods.len(), 9);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
    kubectl(cluster, &["create", "--dry-run=server", "-f", "-"], &list);
}

/// An uninstall must not delete every CapacityRequest of the cluster.
fn definitions_outlive_the_release(cluster: &ControlPlane) {
    let chart = root().join("charts/bigfleet-operator");
    let helm = |args: &[&str]| {
        let output = Command::new(helm().unwrap())
            .args(args)
            .args(["--namespace", NAMESPACES[0]])
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "helm {args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let chart = chart.to_str().unwrap();
    let set = "clusterID=a,shardAddress=b:7780";
    let notes = helm(&["install", "operator", chart, "--set", set]);
    assert!(notes.contains("The operator of cluster a dials b:7780."), "{notes}");
    helm(&["upgrade", "operator", chart, "--set", set, "--set", "qps=100"]);
    helm(&["uninstall", "operator"]);
    let left = kubectl(cluster, &["get", "crd,deployments", "-A", "-o=name"], &Value::Null);
    for plural in ["capacityrequests", "upcomingnodes", "availablecapacities"] {
        assert!(left.contains(&format!("{plural}.bigfleet.lucy.sh")), "{left}");
    }
    assert!(!left.contains("deployment.apps"), "{left}");
}
