//! What a pod names changes, and its request with it.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, keys};
use bigfleet_in_cluster::memory::{Fault, Verb};
use bigfleet_unschedulable_pod_controller::running::NAME;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::site::{NAMESPACE, Running, pod, request_of, server, within};

const SOON: Duration = Duration::from_secs(5);

fn read<K: Resource + DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_bound_later_counts() {
    let server = server();
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    server.put(&pod("db-0", &json!({"spec": {"volumes": volumes}})));
    let controller = Running::start(server.client(), "one", false);
    let first = |key: &str| {
        request_of(&server, "db-0").is_some_and(|it| it.spec.requirements[0].key == key)
    };
    within(SOON, "any machine", || first("node.kubernetes.io/instance-type")).await;
    server.put(&read::<PersistentVolumeClaim>(json!({
        "metadata": {"name": "data", "namespace": NAMESPACE},
        "spec": {"volumeName": "pv-1"}, "status": {"phase": "Bound"},
    })));
    // The volume comes last, and names its claim.
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.put(&read::<PersistentVolume>(json!({
        "metadata": {"name": "pv-1"},
        "spec": {
            "claimRef": {"namespace": NAMESPACE, "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]},
            ]}]}},
        },
    })));
    within(SOON, "machines of the zone", || first("topology.kubernetes.io/zone")).await;
    server.remove::<PersistentVolume>(None, "pv-1");
    within(SOON, "any machine again", || first("node.kubernetes.io/instance-type")).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_an_unmanaged_node_are_not_counted() {
    let server = server();
    let node = |labels: Value| read::<Node>(json!({"metadata": {"name": "n", "labels": labels}}));
    server.put(&node(json!({})));
    server.put(&pod("etcd", &json!({"spec": {"nodeName": "n"}})));
    let controller = Running::start(server.client(), "one", false);
    let count = || server.number_of::<CapacityRequest>();
    within(SOON, "it counts", || count() == 1).await;
    server.put(&node(json!({"control-plane": ""})));
    within(SOON, "it no longer counts", || count() == 0).await;
    server.put(&node(json!({})));
    within(SOON, "it counts again", || count() == 1).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn owners_are_told_once() {
    let server = server();
    let annotations = json!({"bigfleet.lucy.sh/interruption-penalty": "much"});
    let terms =
        json!([{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}});
    server.put(&pod(
        "odd",
        &json!({
            "metadata": {"annotations": annotations},
            "spec": {"affinity": {"nodeAffinity": required}},
        }),
    ));
    let controller = Running::start(server.client(), "one", false);
    within(SOON, "two events", || server.number_of::<Event>() == 2).await;
    let mut reasons: Vec<String> =
        server.all::<Event>().into_iter().filter_map(|event| event.reason).collect();
    reasons.sort();
    assert_eq!(reasons, ["ApproximatedRequirement", "InvalidPenalty"]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let counts: Vec<_> = server.all::<Event>().into_iter().map(|event| event.count).collect();
    assert_eq!(counts, [Some(1), Some(1)]);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_and_comes_back_is_filled_again() {
    let server = server();
    server.put(&pod("web-0", &json!({})));
    let controller = Running::start(server.client(), "one", false);
    within(SOON, "it counts", || server.number_of::<CapacityRequest>() == 1).await;
    server.withdraw::<CapacityRequest>();
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    within(Duration::from_secs(70), "it counts again", || {
        server.number_of::<CapacityRequest>() == 1
    })
    .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_only_people_can_mend_does_not_hold_up_the_first_pass() {
    for (code, says, passes) in [
        (400, "admission webhook \"labels.example.com\" denied the request: no team", true),
        (403, "exceeded quota: objects", true),
        (422, "invalid", true),
        (403, "cannot create resource", false),
        (500, "failed calling webhook", false),
    ] {
        let server = server();
        server.put(&pod("refused", &json!({})));
        let refused = Fault::answer(code).saying(says).on(Verb::Create, "capacityrequests");
        server.inject(refused);
        let controller = Running::start(server.client(), "one", false);
        tokio::time::sleep(SOON).await;
        assert_eq!(controller.metrics.synced.get(), i64::from(passes), "{code} {says}");
        server.heal();
        // It is tried again all the same.
        let count = || server.number_of::<CapacityRequest>();
        within(Duration::from_secs(90), "made at last", || count() == 1).await;
        within(SOON, "seen to", || controller.metrics.synced.get() == 1).await;
        controller.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_can_write_nothing_takes_its_word_back() {
    let server = server();
    server.put(&pod("old", &json!({})));
    let controller = Running::start(server.client(), "one", true);
    let synced = || {
        let lease: Option<Lease> = server.get(Some("bigfleet-system"), NAME);
        let annotations = lease.and_then(|lease| lease.metadata.annotations).unwrap_or_default();
        annotations.get(keys::SYNCED).is_some_and(|holder| holder == "one")
    };
    within(SOON, "synced", synced).await;
    server.inject(Fault::answer(500).on(Verb::Create, "capacityrequests"));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(synced(), "nothing has failed");
    server.put(&pod("new", &json!({})));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(synced(), "it may pass");
    within(Duration::from_secs(30), "taken back", || !synced()).await;
    assert_eq!(controller.metrics.synced.get(), 0);
    server.heal();
    within(Duration::from_secs(90), "said again", synced).await;
    assert_eq!(server.number_of::<CapacityRequest>(), 2);
    controller.stop().await;
}
