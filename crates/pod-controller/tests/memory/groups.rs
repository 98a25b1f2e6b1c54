//! PodGroups, on a server that says what it serves.

use std::time::Duration;

use bigfleet_in_cluster::memory::Server;
use http::{Request, Response};
use http_body_util::{Either, Full};
use k8s_openapi::api::scheduling::v1alpha2::PodGroup;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service, ServiceExt};

use crate::site::{NAMESPACE, Running, pod, request_of, server, within};

/// Answers what the server in memory does not: which APIs there are.
fn client(server: &Server) -> kube::Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut server = server.clone();
        async move {
            let answer = match request.uri().path() {
                "/apis" => json!({"kind": "APIGroupList", "groups": [{
                    "name": "scheduling.k8s.io",
                    "versions": [
                        {"groupVersion": "scheduling.k8s.io/v1", "version": "v1"},
                        {"groupVersion": "scheduling.k8s.io/v1alpha2", "version": "v1alpha2"},
                    ],
                    "preferredVersion":
                        {"groupVersion": "scheduling.k8s.io/v1", "version": "v1"},
                }]}),
                "/apis/scheduling.k8s.io/v1" => resources("v1", "priorityclasses"),
                "/apis/scheduling.k8s.io/v1alpha2" => resources("v1alpha2", "podgroups"),
                _ => {
                    return Ok(server.ready().await?.call(request).await?.map(Either::Left));
                }
            };
            Ok::<_, BoxError>(Response::new(Either::Right(Full::from(answer.to_string()))))
        }
    });
    kube::Client::new(service, "default")
}

fn resources(version: &str, name: &str) -> Value {
    json!({
        "kind": "APIResourceList",
        "groupVersion": format!("scheduling.k8s.io/{version}"),
        "resources": [{
            "name": name, "singularName": "", "namespaced": true, "kind": "x", "verbs": ["list"],
        }],
    })
}

#[tokio::test(start_paused = true)]
async fn a_group_with_a_topology_wins_over_affinity() {
    let server = server();
    server.serve::<PodGroup>();
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}},
    ]}});
    let spec = json!({"affinity": affinity, "schedulingGroup": {"podGroupName": "train"}});
    server.put(&pod("worker-0", &json!({"spec": spec})));
    let controller = Running::start(client(&server), "one", false);
    let topology = || request_of(&server, "worker-0")?.spec.co_location.map(|it| it.topology_key);
    let soon = Duration::from_secs(5);
    within(soon, "the affinity's rack", || topology().as_deref() == Some("rack")).await;
    let group = json!({
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "block"}]},
        },
    });
    server.put::<PodGroup>(&serde_json::from_value(group).unwrap());
    within(soon, "the group's block", || topology().as_deref() == Some("block")).await;
    let selector = request_of(&server, "worker-0").unwrap().spec.co_location.unwrap();
    let labels = selector.label_selector.unwrap().match_labels.unwrap();
    assert_eq!(labels["scheduling.k8s.io/pod-group"], "train");
    controller.stop().await;
}
