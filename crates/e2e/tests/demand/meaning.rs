//! Rows about what a pod's words come to in a roll-up, and a template's in a blob.

use bigfleet_crds::{Quantity, keys};
use bigfleet_e2e::{cluster::Cluster, wait::PATIENCE, wait::eventually, workload::Workload};
use bigfleet_scripted::shard::Shard;
use bigfleet_wire::v1alpha1::{
    BootstrapRequest, MachineState, NodeSelectorRequirement, Resources,
    node_selector_requirement::Operator, operator_message::Payload as Up,
    shard_message::Payload as Down,
};
use k8s_openapi::api::{
    apps::v1::Deployment, core::v1::Pod, node::v1::RuntimeClass, scheduling::v1::PriorityClass,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::stage::{CLUSTER, Stage, launch, milli_cpu, of_row};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_05_08_09_16_words_mean_what_the_specification_says() {
    let Some(mut stage) = Stage::start_or_skip(&[]).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let defaults = folder.path().join("defaults.yaml");
    std::fs::write(&defaults, "dear: {interruptionPenalty: 8192}\n").unwrap();
    let flag = format!("--priority-class-defaults={}", defaults.display());
    let _pod_controller = stage.pod_controller(&[&flag]).await;
    row_08_penalties_come_from_annotation_class_or_nowhere(&stage).await;
    row_09_hard_spreads_stand_apart(&stage).await;
    row_05_a_pod_asks_for_what_the_scheduler_wants(&stage).await;
    row_16_blobs_are_rendered_from_the_charts_template(&mut stage).await;
}

async fn row_08_penalties_come_from_annotation_class_or_nowhere(stage: &Stage) {
    let cluster = &stage.cluster;
    cluster.namespace("row-08").await;
    let class = object::<PriorityClass>(json!({"metadata": {"name": "dear"}, "value": 7}));
    let classes = Api::<PriorityClass>::all(cluster.client());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let annotated = of_row("row-08", "annotated").annotate(keys::INTERRUPTION_PENALTY, "500m");
    let classy = of_row("row-08", "classy").field("priorityClassName", "dear".into());
    for workload in [annotated, classy, of_row("row-08", "plain")] {
        cluster.create(&workload.deployment()).await;
    }
    let needs = stage.until_needs("row-08", "three needs", |needs| needs.len() == 3).await;
    let mut buckets: Vec<(i32, i32, i32)> = needs
        .iter()
        .map(|need| {
            let (one, other) = (need.interruption_penalty_bucket, need.reclamation_penalty_bucket);
            (one, other, need.priority)
        })
        .collect();
    buckets.sort_unstable();
    assert_eq!(buckets, [(1, 1, 0), (2, 1, 0), (16, 1, 7)]);
}

async fn row_09_hard_spreads_stand_apart(stage: &Stage) {
    let cluster = &stage.cluster;
    cluster.namespace("row-09").await;
    let spread = |name: &str, when: &str| {
        let constraint = json!([{
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": name}},
        }]);
        of_row("row-09", name).field("topologySpreadConstraints", constraint)
    };
    let (soft, hard) = (spread("soft", "ScheduleAnyway"), spread("hard", "DoNotSchedule"));
    for workload in [soft.replicas(2), hard.replicas(4), of_row("row-09", "plain")] {
        cluster.create(&workload.deployment()).await;
    }
    let needs =
        stage.until_needs("row-09", "seven processors", |needs| milli_cpu(needs) == 7_000).await;
    let (hard, plain): (Vec<_>, Vec<_>) =
        needs.into_iter().partition(|need| !need.spread.is_empty());
    assert_eq!((hard.len(), plain.len()), (1, 1), "{hard:?} {plain:?}");
    assert_eq!((milli_cpu(&hard), milli_cpu(&plain)), (4_000, 3_000));
}

async fn row_05_a_pod_asks_for_what_the_scheduler_wants(stage: &Stage) {
    let cluster = &stage.cluster;
    cluster.namespace("row-05").await;
    let class = object::<RuntimeClass>(json!({
        "metadata": {"name": "heavy"},
        "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "250m"}},
    }));
    let classes = Api::<RuntimeClass>::all(cluster.client());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let container = |name: &str, cpu: &str| {
        let resources = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
        json!({"name": name, "image": "none", "resources": resources})
    };
    let first = container("first", "4");
    let mut sidecar = container("side", "1");
    sidecar["restartPolicy"] = "Always".into();
    let heavy = |name: &str, init: Value| {
        of_row("row-05", name)
            .field("runtimeClassName", "heavy".into())
            .field("containers", json!([container("main", "1")]))
            .field("initContainers", init)
    };
    let level = of_row("row-05", "level")
        .field("runtimeClassName", "heavy".into())
        .field("containers", json!([container("main", "1")]))
        .field("resources", json!({"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}));
    let cases = [
        (heavy("before", json!([sidecar, first])), "before", 5_250),
        (heavy("after", json!([first, sidecar])), "after", 4_250),
        (level, "level", 3_250),
    ];
    for (workload, name, milli) in cases {
        fits_exactly(stage, &workload, name, milli).await;
    }

    // A pod that runs grows: what it asks for grows with it.
    machine(stage, "grows", 700).await;
    cluster.create(&of_row("row-05", "grows").request("cpu", "500m").deployment()).await;
    cluster.until_running("row-05", "grows", 1).await;
    let pod = cluster.pods("row-05", "grows").await.remove(0);
    let pods = Api::<Pod>::namespaced(cluster.client(), "row-05");
    let more = json!({"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "700m"}}},
    ]}});
    let more = Patch::Strategic(more);
    pods.patch_subresource("resize", &pod.name_any(), &PatchParams::default(), &more)
        .await
        .unwrap();
    eventually("its request grows", || async {
        stage.requests("row-05").await.iter().any(|request| cpu_is(&request.spec.resources, 700))
    })
    .await;
    cluster.delete::<Deployment>("row-05", "grows").await;
}

/// Shows that the pod of a workload asks for that many processors, that a node with 1m less does
/// not take it, and that one with just so many does.
async fn fits_exactly(stage: &Stage, workload: &Workload, name: &str, milli: i64) {
    let cluster = &stage.cluster;
    let small = format!("{name}-small");
    machine(stage, &small, milli - 1).await;
    eventually("the small node is there", || async { is_schedulable(cluster, &small).await }).await;
    cluster.create(&workload.deployment()).await;
    eventually(&format!("{name} asks for {milli}m"), || async {
        stage.requests("row-05").await.iter().any(|request| cpu_is(&request.spec.resources, milli))
    })
    .await;
    eventually(&format!("{name} does not fit into 1m less"), || async {
        let pods = cluster.pods("row-05", name).await;
        pods.first().is_some_and(|pod| refusal(pod).contains("Insufficient cpu"))
    })
    .await;
    machine(stage, &format!("{name}-exact"), milli).await;
    cluster.until_running("row-05", name, 1).await;
    cluster.delete::<Deployment>("row-05", name).await;
    for size in ["small", "exact"] {
        let id = format!("{name}-{size}");
        stage.shard.machine(CLUSTER, &id, MachineState::Deleting).await.unwrap();
    }
    eventually("their nodes are gone", || async { cluster.nodes().await.is_empty() }).await;
}

async fn machine(stage: &Stage, id: &str, milli: i64) {
    let mut frame = Shard::node(CLUSTER, id, MachineState::Configured);
    frame.labels.insert("example.com/row".to_owned(), "row-05".to_owned());
    let resources = [("cpu", format!("{milli}m")), ("memory", "16Gi".to_owned())];
    let resources = resources.map(|(name, text)| (name.to_owned(), text)).into();
    frame.resources = Some(Resources { resources });
    stage.shard.send(Down::NodeStateUpdate(frame)).await.unwrap();
}

async fn is_schedulable(cluster: &Cluster, machine: &str) -> bool {
    let nodes = cluster.nodes().await;
    let node = nodes
        .iter()
        .find(|node| node.labels().get(keys::MACHINE_ID).is_some_and(|id| id == machine));
    let taints = node.and_then(|node| node.spec.as_ref()?.taints.as_ref());
    node.is_some() && taints.is_none_or(Vec::is_empty)
}

/// Why the scheduler leaves it waiting; empty where it does not say.
fn refusal(pod: &Pod) -> String {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let waits =
        conditions.into_iter().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    waits.and_then(|one| one.message.clone()).unwrap_or_default()
}

fn cpu_is(resources: &std::collections::BTreeMap<String, Quantity>, milli: i64) -> bool {
    let text = resources.get("cpu").map(ToString::to_string).unwrap_or_default();
    let whole = milli % 1000 == 0;
    text == format!("{milli}m") || (whole && text == (milli / 1000).to_string())
}

async fn row_16_blobs_are_rendered_from_the_charts_template(stage: &mut Stage) {
    const TEMPLATE: &str = "#cloud-config\n# {{ .ClusterID }} \u{e9} \"quoted\"\n\
        {{- range .Requirements }}\n- {{ .Key }} {{ .Operator }}{{ range .Values }} {{ . }}{{ end }}\n\
        {{- end }}\nid: {{ .MachineID }}\n";
    const BLOB: &str =
        "#cloud-config\n# c-1 \u{e9} \"quoted\"\n- example.com/gpu In a b\nid: m-16\n";

    // As a user's values come through the chart into the file.
    let values = stage.fleet.path("values.json");
    std::fs::write(&values, json!({"bootstrapTemplate": TEMPLATE}).to_string()).unwrap();
    let chart = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut helm = stage.cluster.plane().helm();
    helm.args(["template", "--kube-version=1.36.0", "bigfleet-operator"])
        .arg(chart.join("../../charts/bigfleet-operator"))
        .args(["--set=clusterID=c,shardAddress=s:7780", "--namespace=bigfleet-system"])
        .arg(format!("--values={}", values.display()));
    let rendered = helm.output().unwrap();
    assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let rendered = String::from_utf8(rendered.stdout).unwrap();
    let line = rendered.lines().find_map(|line| line.trim().strip_prefix("bootstrap.tmpl: "));
    let file: String = serde_json::from_str(line.expect("the ConfigMap's key")).unwrap();
    assert_eq!(file, TEMPLATE);

    let path = stage.fleet.path("bootstrap.tmpl");
    std::fs::write(&path, file).unwrap();
    let flag = format!("--bootstrap-template-file={}", path.display());
    stage.restart_operator(&[&flag]).await;
    let requirement = NodeSelectorRequirement {
        key: "example.com/gpu".to_owned(),
        operator: Operator::In.into(),
        values: vec!["a".to_owned(), "b".to_owned()],
    };
    let request = BootstrapRequest {
        request_id: "r-16".to_owned(),
        cluster_id: CLUSTER.to_owned(),
        machine_id: "m-16".to_owned(),
        requirements: vec![requirement],
    };
    stage.shard.send(Down::BootstrapRequest(request)).await.unwrap();
    let answer = |frame: &Up| match frame {
        Up::BootstrapResponse(answer) if answer.request_id == "r-16" => Some(answer.clone()),
        _ => None,
    };
    let answer = stage.shard.find("a blob", answer, PATIENCE).await.unwrap();
    assert_eq!((answer.error.as_str(), answer.ttl_seconds), ("", 600));
    assert_eq!(String::from_utf8_lossy(&answer.user_data), BLOB);

    // What does not parse keeps it from starting.
    std::fs::write(&path, "{{ if .ClusterID }}\n").unwrap();
    crate::site::stop(&mut stage.operator).await;
    let config = stage.cluster.operator_kubeconfig(None);
    let mut refused = launch(&stage.fleet, &config, stage.shard.addr(), &[&flag]).await;
    assert_eq!(refused.process().ended().await.code(), Some(1));
    let log = refused.process().log();
    assert!(
        log.lines()
            .any(|line| line.starts_with("operator: ") && line.contains("template: bootstrap:")),
        "{log}"
    );
}

#[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object as the API knows it")
}
