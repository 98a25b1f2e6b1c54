//! A few rows on a real API server: its schemas, its preconditions, its evictions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_crds::{AvailableCapacity, UpcomingNode, UpcomingNodePhase as Phase, keys};
use bigfleet_in_cluster::{Budget, Paced, client};
use bigfleet_operator::dispatch::Clock;
use bigfleet_testkit::kube::ControlPlane;
use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, MachineState as S, NodeSelectorRequirement, NodeStateUpdate,
    ReclaimInstruction, Resources, Taint,
};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::rig::{Process, frame};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn nodes_and_hints_on_a_real_api_server() {
    let Some(cluster) = ControlPlane::start_or_skip() else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/crd");
    let applied = cluster.kubectl().args(["apply", "--server-side", "-f", folder]).status();
    assert!(applied.unwrap().success());
    let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    assert!(cluster.kubectl().args(established).status().unwrap().success());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client::connect(Some(cluster.kubeconfig()), "test").await.unwrap();
        check(client).await;
    });
}

async fn check(client: Client) {
    let paced = Paced::new(client.clone(), Budget::new(0, 0));
    let mut process = Process::start(paced, Clock::system()).await;
    let acks = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = acks.clone();
    process.nodes.session_began(Arc::new(move |ack| {
        sink.lock().unwrap().push(ack);
        true
    }));
    process.capacity.session_began();
    machines(&client, &process).await;
    hints(&client, &process).await;
    drain(&client, &process).await;
    let acks: Vec<_> = acks.lock().unwrap().drain(..).collect();
    assert_eq!(acks.len(), 2, "{acks:?}");
    assert_eq!((acks[0].nodes_started, acks[0].finished), (1, false));
    assert_eq!((acks[1].nodes_drained, acks[1].finished), (1, true));
    returns(&client, &process).await;
    process.stop().await;
}

/// Waits for a condition.
async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn phase(client: &Client, machine: &str) -> Option<Phase> {
    let api: Api<UpcomingNode> = Api::all(client.clone());
    let object = api.get_opt(&bigfleet_crds::upcoming_node_name(machine)).await.unwrap();
    Some(object?.status?.phase)
}

/// The schema takes everything that is written of a machine.
async fn machines(client: &Client, process: &Process) {
    let resources = [("cpu", "4"), ("memory", "16Gi"), ("bad", "much")];
    let resources = resources.map(|(name, quantity)| (name.into(), quantity.into()));
    let full = NodeStateUpdate {
        labels: [("zone".into(), "a".into()), ("rack".into(), "1".into())].into(),
        resources: Some(Resources { resources: resources.into() }),
        taints: vec![Taint { key: "gpu".into(), effect: "NoSchedule".into(), ..Taint::default() }],
        provider_id: "real://m".into(),
        ..frame("m", S::Configuring)
    };
    process.nodes.frame(&full, 1);
    until("Registered", || async { phase(client, "m").await == Some(Phase::Registered) }).await;
    let failed = NodeStateUpdate {
        state: S::Failed.into(),
        last_error: "boom".into(),
        labels: [("zone".into(), "b".into())].into(),
        resources: None,
        ..full
    };
    process.nodes.frame(&failed, 2);
    until("Failed", || async { phase(client, "m").await == Some(Phase::Failed) }).await;
    let api: Api<UpcomingNode> = Api::all(client.clone());
    let object = api.get("un-m").await.unwrap();
    assert_eq!(object.spec.labels.into_iter().collect::<Vec<_>>(), [("zone".into(), "b".into())]);
    assert!(object.spec.resources.is_empty());
    assert_eq!(object.metadata.annotations.unwrap()[keys::MACHINE_ID], "m");
    let status = object.status.unwrap();
    assert_eq!(status.last_error.as_deref(), Some("boom"));
    assert!(status.provisioning_start_time.is_some());
    process.nodes.frame(&frame("Gone/Machine", S::Creating), 3);
    let gone = "Gone/Machine";
    until("made", || async { phase(client, gone).await == Some(Phase::Provisioning) }).await;
    process.nodes.frame(&NodeStateUpdate { gone: true, ..frame(gone, S::Idle) }, 4);
    until("deleted", || async { phase(client, gone).await.is_none() }).await;
}

async fn hints(client: &Client, process: &Process) {
    let hint = |count: i32, resources: Option<Resources>| AvailableCapacityUpdate {
        supersedes_key: "available:x".into(),
        available_count: count,
        confidence: 3,
        cost_per_hour: 0.768,
        requirements: vec![NodeSelectorRequirement {
            key: "zone".into(),
            operator: 1,
            values: vec!["a".into()],
        }],
        resources,
    };
    let api: Api<AvailableCapacity> = Api::all(client.clone());
    let name = bigfleet_crds::available_capacity_name("available:x");
    let count =
        || async { api.get_opt(&name).await.unwrap().map(|object| object.spec.available_count) };
    let cpu = Resources { resources: [("cpu".into(), "1".into())].into() };
    process.capacity.frame(&hint(3, Some(cpu)));
    until("made", || async { count().await == Some(3) }).await;
    process.capacity.frame(&hint(5, None));
    until("changed", || async { count().await == Some(5) }).await;
    let spec = api.get(&name).await.unwrap().spec;
    assert!(spec.resources.is_empty());
    assert_eq!(spec.cost.as_str(), "768m");
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// Row 20, with a budget that the test keeps as the disruption controller would.
async fn drain(client: &Client, process: &Process) {
    let post = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&post, &object(json!({"metadata": {"name": "apps"}}))).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "apps");
    accounts.create(&post, &object(json!({"metadata": {"name": "default"}}))).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    let labels = json!({keys::MACHINE_ID: "m"});
    let node = json!({"metadata": {"name": "worker-1", "labels": labels}});
    nodes.create(&post, &object(node)).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "apps");
    for name in ["web-1", "web-2", "free-1"] {
        let app = name.split('-').next().unwrap();
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"nodeName": "worker-1", "containers": [{"name": "c", "image": "i"}]},
        });
        pods.create(&post, &object(pod)).await.unwrap();
        let running = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}]}});
        let params = PatchParams::default();
        pods.patch_status(name, &params, &Patch::Merge(&running)).await.unwrap();
    }
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "apps");
    let budget = json!({"metadata": {"name": "web"}, "spec": {
        "maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&post, &object(budget)).await.unwrap();
    allow(&budgets).await;
    process.nodes.frame(&frame("m", S::Configured), 5);
    until("linked", || async {
        let api: Api<UpcomingNode> = Api::all(client.clone());
        let status = api.get("un-m").await.unwrap().status.unwrap();
        status.node_ref.and_then(|node| node.name).as_deref() == Some("worker-1")
    })
    .await;
    let instruction = ReclaimInstruction {
        instruction_id: "i".into(),
        nodes: vec!["m".into()],
        grace_period_seconds: 120,
        preemptor_priority: 0,
    };
    process.nodes.reclaim(&instruction, 6);
    let leaving = || async {
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        let all = all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_some());
        all.filter_map(|pod| pod.metadata.name).collect::<Vec<_>>()
    };
    until("two leave", || async { leaving().await.len() == 2 }).await;
    until("one is blocked", || async { process.counts.evictions("blocked") > 0 }).await;
    assert_eq!(leaving().await.len(), 2, "the budget lets one web pod go");
    assert_eq!(phase(client, "m").await, Some(Phase::Draining));
    // The kubelet ends them, the disruption controller counts again.
    end(&pods, &leaving().await).await;
    allow(&budgets).await;
    until("the last leaves", || async { leaving().await.len() == 1 }).await;
    end(&pods, &leaving().await).await;
    until("Drained", || async { phase(client, "m").await == Some(Phase::Drained) }).await;
    let unmarked = || async {
        let node = nodes.get("worker-1").await.unwrap();
        assert_eq!(node.spec.unwrap().unschedulable, Some(true));
        let annotations = node.metadata.annotations.unwrap();
        assert_eq!(annotations[keys::RECLAIM_INSTRUCTION], "i");
        !annotations.contains_key(keys::RECLAIM_DEADLINE)
    };
    until("unmarked", unmarked).await;
}

async fn allow(budgets: &Api<PodDisruptionBudget>) {
    let generation = budgets.get("web").await.unwrap().metadata.generation;
    let status = json!({"status": {
        "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
        "observedGeneration": generation, "disruptedPods": null,
    }});
    budgets.patch_status("web", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn end(pods: &Api<Pod>, names: &[String]) {
    for name in names {
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
}

/// Rows 25 and the end of a Node.
async fn returns(client: &Client, process: &Process) {
    let nodes: Api<Node> = Api::all(client.clone());
    let returned =
        NodeStateUpdate { ended_instruction_id: "i".into(), ..frame("m", S::Configured) };
    process.nodes.frame(&returned, 7);
    until("uncordoned", || async {
        let node = nodes.get("worker-1").await.unwrap();
        let marks = node.metadata.annotations.unwrap_or_default();
        node.spec.unwrap_or_default().unschedulable != Some(true)
            && !marks.contains_key(keys::RECLAIM_INSTRUCTION)
    })
    .await;
    assert_eq!(phase(client, "m").await, Some(Phase::Ready));
    let dead = json!({"status": {"conditions": [{
        "type": "Ready", "status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}});
    nodes.patch_status("worker-1", &PatchParams::default(), &Patch::Merge(&dead)).await.unwrap();
    process.nodes.frame(&NodeStateUpdate { gone: true, ..frame("m", S::Idle) }, 8);
    until("deleted", || async { nodes.get_opt("worker-1").await.unwrap().is_none() }).await;
    assert_eq!(phase(client, "m").await, None);
}
