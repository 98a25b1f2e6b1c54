//! Rows whose end is a machine: a real shard, and a cloud with zones and racks.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use bigfleet_crds::{CapacityRequest, Operator, keys};
use bigfleet_e2e::{
    agent::DURATION,
    wait::{PATIENCE, eventually, sized, throughout, within},
    workload::Workload,
};
use bigfleet_wire::v1alpha1::{UnmetDetail, UnmetReason};
use futures_util::StreamExt as _;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{DaemonSet, Deployment},
        batch::v1::Job,
        core::v1::{Node, Pod},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::watcher::{self, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

use crate::site::{NOVELTY, POOL, Site};

const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "topology.bigfleet/rack";
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_03_04_06_10_16_29_35_39_machines_come_for_what_pods_ask() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("bootstrap.tmpl");
    std::fs::write(&template, "join {{ .Cluster }}\n").unwrap();
    let flag = format!("--bootstrap-template-file={}", template.display());
    let Some(mut site) = Site::start_or_skip(&[&flag]).await else { return };
    row_16_a_template_that_fails_is_a_shortfall(&mut site).await;
    tokio::join!(
        row_03_groups_of_two_namespaces_have_a_rack_each(&site),
        row_04_a_zone_asked_for_is_the_zone_given(&site),
        row_06_a_finished_job_is_no_demand(&site),
        row_10_a_comparison_is_approximated(&site),
    );
    row_39_pods_are_told_what_nobody_has(&mut site).await;
    row_29_a_rollout_without_pod_controller_reclaims_nothing(&mut site).await;
    row_35_daemons_alone_keep_no_node(&site).await;
}

async fn row_16_a_template_that_fails_is_a_shortfall(site: &mut Site) {
    let cluster = &site.cluster;
    cluster.namespace("row-16").await;
    let web = in_pool("row-16", "web", "plain");
    cluster.create(&web.deployment()).await;
    eventually("a need without its blobs", || async {
        let needs = site.needs_of(POOL, "plain").await;
        needs.iter().any(|view| {
            view.unmet_detail() == UnmetDetail::BootstrapRefused
                && view.detail_text.contains("template: bootstrap:1:")
        })
    })
    .await;
    assert!(cluster.nodes().await.is_empty());
    site.restart_operator(&[]).await;
    site.cluster.until_running("row-16", "web", 1).await;
    site.cluster.delete::<Deployment>("row-16", "web").await;
}

async fn row_03_groups_of_two_namespaces_have_a_rack_each(site: &Site) {
    let cluster = &site.cluster;
    // Three processors of four, so that three pods need three machines: a whole rack.
    let term = json!({"labelSelector": {"matchLabels": {"app": "ring"}}, "topologyKey": RACK});
    let affinity =
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    for namespace in ["row-03-a", "row-03-b"] {
        cluster.namespace(namespace).await;
        let ring = in_pool(namespace, "ring", "ring")
            .replicas(3)
            .request("cpu", "3")
            .field("affinity", affinity.clone());
        cluster.create(&ring.deployment()).await;
        cluster.until_running(namespace, "ring", 3).await;
    }
    let needs = site.needs_of(POOL, "ring").await;
    let groups: BTreeSet<&str> =
        needs.iter().flat_map(|view| &view.need).map(|need| need.group.as_str()).collect();
    assert_eq!((needs.len(), groups.len()), (2, 2), "a need for each namespace: {groups:?}");
    let profiles: BTreeSet<&str> =
        needs.iter().map(|view| view.profile_fingerprint.as_str()).collect();
    assert_eq!(profiles.len(), 1, "what they ask for is the same");
    for namespace in ["row-03-a", "row-03-b"] {
        let nodes = site.nodes_under(namespace, "ring").await;
        let racks: BTreeSet<&str> =
            nodes.iter().filter_map(|node| node.labels().get(RACK).map(String::as_str)).collect();
        assert_eq!((nodes.len(), racks.len()), (3, 1), "{namespace} is on {racks:?}");
    }
    for namespace in ["row-03-a", "row-03-b"] {
        cluster.delete::<Deployment>(namespace, "ring").await;
    }
}

async fn row_04_a_zone_asked_for_is_the_zone_given(site: &Site) {
    let cluster = &site.cluster;
    cluster.namespace("row-04").await;
    let zoned = Workload::new("row-04", "zoned")
        .field("nodeSelector", json!({POOL: "plain", ZONE: "zone-b"}));
    cluster.create(&zoned.deployment()).await;
    cluster.until_running("row-04", "zoned", 1).await;
    let requests = site.requests("row-04").await;
    let asked = requests[0].spec.requirements.iter().find(|one| one.key == ZONE).unwrap();
    assert_eq!((&asked.operator, &asked.values[..]), (&Operator::In, &["zone-b".to_owned()][..]));
    let nodes = site.nodes_under("row-04", "zoned").await;
    assert_eq!(nodes[0].labels()[ZONE], "zone-b");
    cluster.delete::<Deployment>("row-04", "zoned").await;
}

async fn row_06_a_finished_job_is_no_demand(site: &Site) {
    let cluster = &site.cluster;
    cluster.namespace("row-06").await;
    let request_went = tokio::spawn(first_end::<CapacityRequest>(cluster.client(), "row-06"));
    let pod_went = tokio::spawn(first_end::<Pod>(cluster.client(), "row-06"));
    let once = in_pool("row-06", "once", "batch").annotate(DURATION, "2s");
    cluster.create(&once.job()).await;
    eventually("its machine comes", || async { site.pool("batch").await.len() == 1 }).await;
    eventually("the job is done", || async {
        let jobs = Api::<Job>::namespaced(cluster.client(), "row-06");
        let status = jobs.get("once").await.unwrap().status;
        status.and_then(|status| status.succeeded) == Some(1)
    })
    .await;
    within(Duration::from_secs(5), "its request is gone", || async {
        site.requests("row-06").await.is_empty()
    })
    .await;
    eventually("its machine is given back", || async { site.pool("batch").await.is_empty() }).await;
    cluster.delete::<Job>("row-06", "once").await;
    // The machine may be gone, and the pod with it, before anybody could look.
    let both = async { (request_went.await.unwrap(), pod_went.await.unwrap()) };
    let (request, pod) = timeout(PATIENCE, both).await.expect("request and pod go");
    assert!(request < pod, "its pod lingers: request until {request}, pod until {pod}");
}

/// The revision at which the first object of a kind went. All kinds count alike, so that two of
/// them tell an order that no look could miss.
async fn first_end<K>(client: Client, namespace: &'static str) -> u64
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let events = watcher(Api::<K>::namespaced(client, namespace), watcher::Config::default());
    let ends = events.filter_map(|event| async {
        let Ok(watcher::Event::Delete(object)) = event else { return None };
        object.resource_version()?.parse().ok()
    });
    pin!(ends).next().await.expect("a watch has no end")
}

async fn row_10_a_comparison_is_approximated(site: &Site) {
    const GENERATION: &str = "example.com/generation";
    let cluster = &site.cluster;
    cluster.namespace("row-10").await;
    let newer = json!({"key": GENERATION, "operator": "Gt", "values": ["3"]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [newer]}]}}});
    cluster
        .create(&in_pool("row-10", "newer", "plain").field("affinity", affinity).deployment())
        .await;
    cluster.until_running("row-10", "newer", 1).await;
    let requests = site.requests("row-10").await;
    let asked = requests[0].spec.requirements.iter().find(|one| one.key == GENERATION).unwrap();
    assert_eq!((&asked.operator, asked.values.len()), (&Operator::Exists, 0));
    assert_eq!(requests[0].annotations()[keys::APPROXIMATED], GENERATION);
    site.until_event("row-10", "ApproximatedRequirement").await;
    let pods = cluster.pods("row-10", "newer").await;
    throughout(Duration::from_secs(5), "the pod stays where it runs", || async {
        let nodes = site.nodes_under("row-10", "newer").await;
        cluster.pods("row-10", "newer").await[0].uid() == pods[0].uid()
            && nodes.len() == 1
            && !cordoned(&nodes[0])
    })
    .await;
    cluster.delete::<Deployment>("row-10", "newer").await;
}

async fn row_39_pods_are_told_what_nobody_has(site: &mut Site) {
    let cluster = &site.cluster;
    cluster.namespace("row-39").await;
    let odd = Workload::new("row-39", "odd").field("nodeSelector", json!({INSTANCE_TYPE: "g9"}));
    cluster.create(&odd.deployment()).await;
    eventually("the request says that nobody has it", || async {
        satisfied(&site.requests("row-39").await)
            == Some(("False".into(), "NoMatchingSupply".into()))
    })
    .await;
    site.until_event("row-39", "NoMatchingSupply").await;
    let needs = site.needs_of(INSTANCE_TYPE, "g9").await;
    assert_eq!(needs.len(), 1);
    assert_eq!(needs[0].unmet_reason(), UnmetReason::NoMatchingSupply);

    site.extend_cloud(NOVELTY).await;
    site.cluster.until_running("row-39", "odd", 1).await;
    eventually("the request says that it is covered", || async {
        satisfied(&site.requests("row-39").await).is_some_and(|(status, _)| status == "True")
    })
    .await;
    site.cluster.delete::<Deployment>("row-39", "odd").await;
}

async fn row_29_a_rollout_without_pod_controller_reclaims_nothing(site: &mut Site) {
    const HELD: &str = "bigfleet_operator_rollup_held{reason=\"demand_source\"}";
    let pods = sized(30, 500);
    let count = usize::try_from(pods).unwrap();
    site.cluster.namespace("row-29").await;
    let web = in_pool("row-29", "web", "plain")
        .replicas(pods)
        .request("cpu", "250m")
        .request("memory", "64Mi");
    site.cluster.create(&web.deployment()).await;
    site.cluster.until_running("row-29", "web", count).await;
    // Those of the rows before have gone.
    let machines = count.div_ceil(16);
    eventually("no more machines than they fill", || async {
        site.cluster.nodes().await.len() == machines
    })
    .await;
    let before = uids(&site.cluster.nodes().await);

    site.stop_pod_controller().await;
    eventually("roll-ups are held", || async { site.operator.metric(HELD).await == Some(1.0) })
        .await;
    let old: BTreeSet<_> =
        site.cluster.pods("row-29", "web").await.iter().map(ResourceExt::uid).collect();
    let api = Api::<Deployment>::namespaced(site.cluster.client(), "row-29");
    let restart =
        json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}});
    api.patch("web", &PatchParams::default(), &Patch::Merge(restart)).await.unwrap();
    eventually("all pods are new", || async {
        let nodes = site.cluster.nodes().await;
        assert!(!nodes.iter().any(cordoned), "a node was reclaimed under running pods");
        let pods = site.cluster.pods("row-29", "web").await;
        pods.len() == count
            && !pods.iter().any(|pod| old.contains(&pod.uid()))
            && site.cluster.running("row-29", "web").await == count
    })
    .await;
    assert!(site.requests("row-29").await.is_empty(), "nobody asks for the new pods");
    throughout(Duration::from_secs(3), "all nodes stay", || async {
        let nodes = site.cluster.nodes().await;
        uids(&nodes) == before && !nodes.iter().any(cordoned)
    })
    .await;

    site.start_pod_controller().await;
    eventually("roll-ups are sent again", || async {
        site.operator.metric(HELD).await == Some(0.0)
    })
    .await;
    eventually("one request for each pod", || async {
        site.requests("row-29").await.len() == count
    })
    .await;
    throughout(Duration::from_secs(3), "all nodes stay", || async {
        let nodes = site.cluster.nodes().await;
        uids(&nodes) == before && !nodes.iter().any(cordoned)
    })
    .await;
    site.cluster.delete::<Deployment>("row-29", "web").await;
}

async fn row_35_daemons_alone_keep_no_node(site: &Site) {
    let cluster = &site.cluster;
    cluster.namespace("row-35").await;
    let daemons = Workload::new("row-35", "daemon").request("cpu", "100m");
    cluster.create(&daemons.daemon_set()).await;
    cluster.create(&in_pool("row-35", "web", "plain").deployment()).await;
    cluster.until_running("row-35", "web", 1).await;
    eventually("daemons run", || async { cluster.running("row-35", "daemon").await > 0 }).await;
    cluster.delete::<Deployment>("row-35", "web").await;
    site.until_empty().await;
    cluster.delete::<DaemonSet>("row-35", "daemon").await;
}

fn in_pool(namespace: &str, name: &str, pool: &str) -> Workload {
    Workload::new(namespace, name).field("nodeSelector", json!({POOL: pool}))
}

fn cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

fn uids(nodes: &[Node]) -> BTreeSet<Option<String>> {
    nodes.iter().map(ResourceExt::uid).collect()
}

/// Status and reason of the condition `Satisfied` of the first request.
fn satisfied(requests: &[CapacityRequest]) -> Option<(String, String)> {
    let status = requests.first()?.status.as_ref()?;
    let condition = status.conditions.iter().find(|one| one.type_ == "Satisfied")?;
    Some((condition.status.clone(), condition.reason.clone()))
}
