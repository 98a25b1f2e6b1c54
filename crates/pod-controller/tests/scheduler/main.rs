//! Our request against the real scheduler: each generated pod fits a node of exactly the computed
//! size, and not one a unit smaller (invariant 13).
//!
//! `BIGFLEET_SEED` replays the pods.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod generate;
mod rig;

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::Quantity;
use bigfleet_scripted::random::Random;
use bigfleet_testkit::kube::ControlPlane;
use bigfleet_unschedulable_pod_controller::request::effective;
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    node::v1::RuntimeClass,
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use rig::Scheduler;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Pods, each of them twice: on a node that fits, and on one that does not.
const PODS: usize = 220;

/// A busy machine takes its time.
const DECIDED_WITHIN: Duration = Duration::from_secs(300);

#[test]
fn pods_inv_13_the_scheduler_agrees_to_the_unit() {
    let Some(cluster) = ControlPlane::start_or_skip() else { return };
    let Some(_scheduler) = Scheduler::start_or_skip(cluster.kubeconfig()) else { return };
    let seed = std::env::var("BIGFLEET_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(13);
    println!("replay with BIGFLEET_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = bigfleet_in_cluster::client::connect(Some(cluster.kubeconfig()), "test");
        compare(client.await.unwrap(), &mut Random::new(seed)).await;
    });
}

/// What is asked of the scheduler.
struct Question {
    spec: Value,
    request: BTreeMap<String, String>,
    /// The resource that the second node has a unit less of.
    short_of: String,
}

async fn compare(client: Client, random: &mut Random) {
    for class in generate::runtime_classes() {
        let classes = Api::<RuntimeClass>::all(client.clone());
        let class = serde_json::from_value(class).unwrap();
        classes.create(&PostParams::default(), &class).await.unwrap();
    }
    let mut questions = Vec::new();
    while questions.len() < PODS {
        questions.extend(ask(&client, random, questions.len()).await);
    }
    let pods = Api::<Pod>::namespaced(client, "default");
    let deadline = Instant::now() + DECIDED_WITHIN;
    let mut decided = BTreeMap::new();
    while decided.len() < 2 * PODS {
        assert!(Instant::now() < deadline, "only {} pods were decided", decided.len());
        tokio::time::sleep(Duration::from_millis(500)).await;
        for pod in pods.list(&ListParams::default()).await.unwrap() {
            if let Some(decision) = decision(&pod) {
                decided.insert(pod.metadata.name.unwrap(), decision);
            }
        }
    }
    for (at, question) in questions.iter().enumerate() {
        let told = || format!("{:?}\n{}", question.request, question.spec);
        assert_eq!(decided[&format!("fits-{at}")], Ok(format!("fits-{at}")), "{}", told());
        let refusal = decided[&format!("short-{at}")].clone();
        let refusal = refusal.expect_err(&format!("bound, short of {}", question.short_of));
        let expected = format!("Insufficient {}", question.short_of);
        assert!(refusal.contains(&expected), "{refusal}; expected {expected} of {}", told());
    }
}

/// Where the scheduler has put the pod, or why nowhere; none while it has not decided.
fn decision(pod: &Pod) -> Option<Result<String, String>> {
    if let Some(node) = &pod.spec.as_ref()?.node_name {
        return Some(Ok(node.clone()));
    }
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let refused = conditions.iter().find(|it| it.reason.as_deref() == Some("Unschedulable"))?;
    Some(Err(refused.message.clone().unwrap_or_default()))
}

/// One pod twice, and the nodes for it. None if the API server does not take the pod.
async fn ask(client: &Client, random: &mut Random, at: usize) -> Option<Question> {
    let spec = generate::spec(random);
    let status = generate::status(&spec, random);
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let mut stored = Vec::new();
    for name in ["fits", "short"].map(|kind| format!("{kind}-{at}")) {
        let mut spec = spec.clone();
        spec["nodeSelector"] = json!({"for": name});
        spec["schedulingGates"] = json!([{"name": "bigfleet.lucy.sh/test"}]);
        spec["tolerations"] = json!([{"operator": "Exists"}]);
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        let mut made = match pods.create(&PostParams::default(), &pod).await {
            Ok(made) => made,
            Err(error) => panic!("{error}\n{spec}"),
        };
        if let Some(status) = &status {
            let patch = Patch::Merge(json!({"status": status}));
            made = pods.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
        }
        stored.push(made);
    }
    // Of the pod as stored: the API server fills in requests and overhead.
    let request: BTreeMap<String, String> = effective(&stored[0])
        .texts()
        .into_iter()
        .map(|(name, it)| (name, it.to_string()))
        .collect();
    let names: Vec<&String> = request.keys().collect();
    let short_of = names[random.below(names.len() as u64) as usize].clone();
    let mut less = request.clone();
    less.insert(short_of.clone(), unit_less(&short_of, &request[&short_of]));
    let nodes = Api::<Node>::all(client.clone());
    for (kind, size) in [("fits", &request), ("short", &less)] {
        let name = format!("{kind}-{at}");
        let node = serde_json::from_value(node(&name, size)).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let free = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
        pods.patch(&name, &PatchParams::default(), &free).await.unwrap();
    }
    Some(Question { spec: serde_json::to_value(&stored[0]).unwrap(), request, short_of })
}

/// As the scheduler counts: processors by the thousandth, everything else whole.
fn unit_less(name: &str, amount: &str) -> String {
    let amount: Quantity = amount.parse().unwrap();
    let unit = if name == "cpu" { 1_000_000 } else { 1_000_000_000 };
    assert_eq!(amount.nanos() % unit, 0, "{name} {amount} is between two units");
    Quantity::from_nanos(amount.nanos() - unit, amount.family()).to_string()
}

fn node(name: &str, size: &BTreeMap<String, String>) -> Value {
    let mut size = size.clone();
    size.entry("pods".to_owned()).or_insert_with(|| "10".to_owned());
    json!({
        "metadata": {"name": name, "labels": {"for": name}},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}
