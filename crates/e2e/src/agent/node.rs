//! A machine becomes a node, and is one no more.

use std::collections::BTreeMap;

use bigfleet_crds::keys;
use bigfleet_in_cluster::refusal;
use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    Habits,
    views::{MACHINE, Machine},
};

/// Where kubelets keep their leases.
const LEASES: &str = "kube-node-lease";

/// Makes the node of a machine; one that was left half made is completed.
pub(super) async fn join(
    client: &Client,
    machine: &Machine,
    habits: Habits,
) -> Result<(), kube::Error> {
    let nodes = Api::<Node>::all(client.clone());
    let name = name_of(machine, habits);
    match nodes.create(&PostParams::default(), &node(machine, &name, habits)).await {
        Err(error) if refusal::code(&error) != Some(409) => return Err(error),
        _ => {}
    }
    let mut resources = machine.resources.clone();
    // No machine declares it, and without it no pod fits.
    resources.entry("pods".to_owned()).or_insert_with(|| "110".to_owned());
    let status = json!({"status": {
        "capacity": resources,
        "allocatable": resources,
        "conditions": conditions(),
        "nodeInfo": node_info(),
    }});
    nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.map(drop)
}

/// Takes the node away, and its pods with it: nothing runs on a machine that has left.
pub(super) async fn leave(client: &Client, name: &str) -> Result<(), kube::Error> {
    let now = DeleteParams::default().grace_period(0);
    gone(Api::<Node>::all(client.clone()).delete(name, &DeleteParams::default()).await)?;
    gone(Api::<Lease>::namespaced(client.clone(), LEASES).delete(name, &now).await)?;
    let here = ListParams::default().fields(&format!("spec.nodeName={name}"));
    for pod in Api::<Pod>::all(client.clone()).list(&here).await?.items {
        let namespace = pod.namespace().unwrap_or_default();
        let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
        gone(pods.delete(&pod.name_any(), &now).await)?;
    }
    Ok(())
}

fn gone<T>(answer: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Err(error) if refusal::code(&error) != Some(404) => Err(error),
        _ => Ok(()),
    }
}

/// Tells that the kubelet lives: by the lease, and by a condition that may have turned Unknown.
pub(super) async fn beat(client: &Client, name: &str, uid: &str) -> Result<(), kube::Error> {
    let leases = Api::<Lease>::namespaced(client.clone(), LEASES);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now});
    let patch = Patch::Merge(json!({"spec": spec}));
    match leases.patch(name, &PatchParams::default(), &patch).await {
        Err(error) if refusal::code(&error) == Some(404) => {
            let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
            let metadata = json!({"name": name, "ownerReferences": [owner]});
            let lease = object(json!({"metadata": metadata, "spec": spec}));
            leases.create(&PostParams::default(), &lease).await?;
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let status = Patch::Merge(json!({"status": {"conditions": conditions()}}));
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch_status(name, &PatchParams::default(), &status).await.map(drop)
}

fn name_of(machine: &Machine, habits: Habits) -> String {
    if habits.named_as_machine {
        return machine.id.clone();
    }
    let digest = Sha256::digest(machine.id.as_bytes());
    let hex: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("ip-{hex}")
}

fn node(machine: &Machine, name: &str, habits: Habits) -> Node {
    let mut labels: BTreeMap<&str, &str> =
        machine.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    labels.insert("kubernetes.io/hostname", name);
    if habits.labelled {
        labels.insert(keys::MACHINE_ID, &machine.id);
    }
    let provider_id =
        machine.provider_id.clone().unwrap_or_else(|| format!("e2e://{}", machine.id));
    object(json!({
        "metadata": {"name": name, "labels": labels, "annotations": {MACHINE: machine.id}},
        "spec": {"providerID": provider_id, "taints": machine.taints},
    }))
}

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object as the API knows it")
}

fn conditions() -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!([{
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the agent says so",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }])
}

fn node_info() -> Value {
    let fields = [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ];
    fields.into_iter().map(|field| (field.to_owned(), Value::from("e2e"))).collect()
}
