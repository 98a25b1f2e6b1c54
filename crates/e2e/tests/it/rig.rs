//! The rig itself: machines become nodes, pods run on them and leave with them.

use std::time::Duration;

use bigfleet_crds::{Quantity, UpcomingNode, UpcomingNodeSpec, keys, upcoming_node_name};
use bigfleet_e2e::{
    agent::{DURATION, Habits, TERMINATION},
    cluster::Cluster,
    wait::{eventually, throughout, within},
    workload::Workload,
};
use bigfleet_in_cluster::{client, eviction, refusal};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

async fn machine(cluster: &Cluster, id: &str, cpu: &str) {
    let spec = UpcomingNodeSpec {
        resources: [("cpu", cpu), ("memory", "16Gi")]
            .map(|(name, text)| (name.to_owned(), Quantity::from(text)))
            .into(),
        labels: [("topology.kubernetes.io/zone".to_owned(), "zone-a".to_owned())].into(),
        taints: Vec::new(),
    };
    let mut object = UpcomingNode::new(&upcoming_node_name(id), spec);
    object.annotations_mut().insert(keys::MACHINE_ID.to_owned(), id.to_owned());
    let api = Api::<UpcomingNode>::all(cluster.client());
    api.create(&PostParams::default(), &object).await.unwrap();
    let ready =
        Patch::Merge(json!({"status": {"phase": "Ready", "providerID": format!("p://{id}")}}));
    api.patch_status(&object.name_any(), &PatchParams::default(), &ready).await.unwrap();
}

async fn node_of(cluster: &Cluster, id: &str) -> Option<Node> {
    let provider_id = format!("p://{id}");
    let of = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    cluster.nodes().await.into_iter().find(|node| of(node).as_ref() == Some(&provider_id))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_become_nodes_and_pods_live_on_them() {
    let habits = Habits::drawn();
    let Some(mut cluster) = Cluster::start_or_skip(habits).await else { return };

    // Rights are those of the charts and no more.
    let config = cluster.operator_kubeconfig(None);
    let operator = client::connect(Some(&config), "test").await.unwrap();
    let nodes = Api::<Node>::all(operator.clone());
    assert!(nodes.list(&ListParams::default()).await.unwrap().items.is_empty());
    let maps = Api::<ConfigMap>::all(operator).list(&ListParams::default()).await;
    assert_eq!(refusal::code(&maps.unwrap_err()), Some(403));

    // Two machines for four pods of two processors, which the scheduler spreads.
    cluster.agent().never_join("m-3");
    let web =
        Workload::new("default", "web").replicas(4).request("cpu", "2").annotate(TERMINATION, "1s");
    cluster.create(&web.deployment()).await;
    for id in ["m-1", "m-2", "m-3"] {
        machine(&cluster, id, "4").await;
    }
    cluster.until_running("default", "web", 4).await;
    assert_eq!(cluster.nodes().await.len(), 2);
    let node = node_of(&cluster, "m-1").await.unwrap();
    assert_eq!(node.name_any() == "m-1", habits.named_as_machine);
    assert_eq!(node.labels()[keys::MACHINE_ID], "m-1");

    // An evicted pod takes its second to leave and comes back where there is room.
    let pods = cluster.pods("default", "web").await;
    let pod: &Pod = &pods[0];
    let (name, uid) = (pod.name_any(), pod.uid().unwrap());
    eviction::evict(cluster.client(), "default", &name, &uid, None).await.unwrap();
    eventually("the evicted pod is gone", || async {
        !cluster.pods("default", "web").await.iter().any(|pod| pod.uid().as_ref() == Some(&uid))
    })
    .await;
    cluster.until_running("default", "web", 4).await;

    // A job ends; daemons come with nodes.
    cluster.create(&Workload::new("default", "agent").request("cpu", "0").daemon_set()).await;
    let job = Workload::new("default", "once").request("cpu", "0").annotate(DURATION, "1s").job();
    cluster.create(&job).await;
    eventually("the job is done", || async {
        let jobs = Api::<Job>::namespaced(cluster.client(), "default");
        let status = jobs.get("once").await.unwrap().status;
        status.and_then(|status| status.succeeded) == Some(1)
    })
    .await;
    cluster.until_running("default", "agent", 2).await;

    // The server restarts under all of it.
    let plane = cluster.plane();
    tokio::task::block_in_place(|| plane.start_apiserver()).unwrap();
    cluster.agent().forgive();
    within(Duration::from_secs(180), "the third machine joins", || async {
        cluster.nodes().await.len() == 3
    })
    .await;
    cluster.until_running("default", "agent", 3).await;

    // A machine that leaves takes its node along, and its pods come back on the others.
    let machines = Api::<UpcomingNode>::all(cluster.client());
    let leaving = upcoming_node_name("m-1");
    machines.delete(&leaving, &DeleteParams::default()).await.unwrap();
    eventually("its node is gone", || async { node_of(&cluster, "m-1").await.is_none() }).await;
    cluster.until_running("default", "web", 4).await;
    throughout(Duration::from_secs(1), "two nodes", || async { cluster.nodes().await.len() == 2 })
        .await;
    cluster.delete::<Deployment>("default", "web").await;
    eventually("no pod is left", || async { cluster.pods("default", "web").await.is_empty() })
        .await;
}
