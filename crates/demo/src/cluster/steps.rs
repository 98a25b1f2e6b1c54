//! What the simulated control plane writes.

use bigfleet_crds::{CapacityRequest, keys};
use bigfleet_in_cluster::refusal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    control_plane::{ControlPlane, Step},
    view::MachineView,
    workload::NAMESPACE,
};

/// Writes all of it; what fails is due again at the next look.
pub(super) async fn perform(client: &Client, steps: Vec<Step>, plane: &mut ControlPlane) {
    for step in steps {
        let done = write(client, &step).await;
        let Err(error) = done else { continue };
        if let Step::Create(_, name) = &step {
            plane.not_made(name);
        }
        if !matches!(refusal::code(&error), Some(404 | 409)) {
            tracing::debug!(%error, ?step, "not written");
        }
    }
}

async fn write(client: &Client, step: &Step) -> Result<(), kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let nodes = Api::<Node>::all(client.clone());
    let (usual, merge) = (DeleteParams::default(), PatchParams::default());
    match step {
        Step::Create(workload, name) => {
            let pod = workload.pod(name).map_err(kube::Error::SerdeError)?;
            pods.create(&PostParams::default(), &pod).await.map(drop)
        }
        Step::Delete(name) => pods.delete(name, &usual).await.map(drop),
        Step::Remove(name) => pods.delete(name, &usual.grace_period(0)).await.map(drop),
        Step::Bind(name, node) => {
            let patch = Patch::Merge(json!({"spec": {"nodeName": node}}));
            pods.patch(name, &merge, &patch).await.map(drop)
        }
        Step::Run(name) => {
            let patch = Patch::Merge(json!({"status": {
                "phase": "Running",
                "startTime": now(),
                "conditions": [condition("PodScheduled"), condition("Ready")],
            }}));
            pods.patch_status(name, &merge, &patch).await.map(drop)
        }
        Step::Join(machine) => {
            let node = node(machine).map_err(kube::Error::SerdeError)?;
            match nodes.create(&PostParams::default(), &node).await {
                Err(error) if refusal::code(&error) != Some(409) => return Err(error),
                _ => {}
            }
            let mut resources = machine.resources.clone();
            // A node without it takes no pod.
            resources.entry("pods".to_owned()).or_insert_with(|| "110".to_owned());
            let status = Patch::Merge(json!({"status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": [condition("Ready")],
            }}));
            nodes.patch_status(&machine.id, &merge, &status).await.map(drop)
        }
        Step::Leave(name) => nodes.delete(name, &usual).await.map(drop),
        Step::Collect(name) => {
            let requests = Api::<CapacityRequest>::namespaced(client.clone(), NAMESPACE);
            requests.delete(name, &usual).await.map(drop)
        }
    }
}

fn node(machine: &MachineView) -> Result<Node, serde_json::Error> {
    let mut labels = machine.labels.clone();
    labels.insert("kubernetes.io/hostname".to_owned(), machine.id.clone());
    labels.insert(keys::MACHINE_ID.to_owned(), machine.id.clone());
    serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.id, "labels": labels},
        "spec": {"providerID": format!("sim://{}", machine.id)},
    }))
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "lastTransitionTime": now()})
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
