//! The server in memory answers as a real one does.

use bigfleet_in_cluster::{
    memory::{Eviction, Server, Verb},
    refusal,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

fn pod(name: &str, node: Option<&str>) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [], "nodeName": node},
    }))
    .unwrap()
}

fn pods(server: &Server) -> Api<Pod> {
    Api::namespaced(server.client(), "apps")
}

#[tokio::test]
async fn writes_keep_their_doors_and_versions() {
    let server = Server::new();
    let pods = pods(&server);
    let created = pods.create(&PostParams::default(), &pod("web", None)).await.unwrap();
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
    let twice = pods.create(&PostParams::default(), &pod("web", None)).await.unwrap_err();
    assert_eq!(refusal::code(&twice), Some(409));

    let patch = |value: Value| Patch::Merge(value);
    let params = PatchParams::default();
    let running = patch(json!({"status": {"phase": "Running"}, "spec": {"nodeName": "no"}}));
    let patched = pods.patch_status("web", &params, &running).await.unwrap();
    assert_eq!(patched.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(patched.spec.as_ref().unwrap().node_name, None);
    let again = pods.patch_status("web", &params, &running).await.unwrap();
    assert_eq!(again.metadata.resource_version, patched.metadata.resource_version);
    let spec = patch(json!({"spec": {"nodeName": "a"}, "status": {"phase": "Failed"}}));
    let bound = pods.patch("web", &params, &spec).await.unwrap();
    assert_eq!(bound.status.unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(bound.metadata.generation, Some(2));

    let stale = patch(json!({"metadata": {"resourceVersion": "1"}, "spec": {"nodeName": "b"}}));
    assert_eq!(refusal::code(&pods.patch("web", &params, &stale).await.unwrap_err()), Some(409));
    let wrong = Preconditions { uid: Some("other".into()), resource_version: None };
    let wrong = DeleteParams::default().preconditions(wrong);
    assert_eq!(refusal::code(&pods.delete("web", &wrong).await.unwrap_err()), Some(409));
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("web").await.unwrap().is_none());
    assert_eq!(refusal::code(&pods.get("web").await.unwrap_err()), Some(404));
    assert_eq!(server.count(Verb::Create, "pods"), 2);
}

#[tokio::test]
async fn finalizers_and_kubelets_hold_what_is_deleted() {
    let server = Server::new();
    server.linger(true);
    let pods = pods(&server);
    let mut held = pod("held", None);
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    pods.create(&PostParams::default(), &held).await.unwrap();
    pods.delete("held", &DeleteParams::default()).await.unwrap();
    assert!(pods.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("held", &PatchParams::default(), &free).await.unwrap();
    assert!(pods.get_opt("held").await.unwrap().is_none());

    pods.create(&PostParams::default(), &pod("runs", Some("node"))).await.unwrap();
    pods.delete("runs", &DeleteParams::default()).await.unwrap();
    assert!(pods.get("runs").await.unwrap().metadata.deletion_timestamp.is_some());
    pods.delete("runs", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("runs").await.unwrap().is_none());
}

#[tokio::test]
async fn selections_and_collections() {
    let server = Server::new();
    let pods = pods(&server);
    for (name, node) in [("a", Some("one")), ("b", None), ("c", Some("two"))] {
        pods.create(&PostParams::default(), &pod(name, node)).await.unwrap();
    }
    let list = |params: ListParams| {
        let pods = pods.clone();
        async move {
            let list = pods.list(&params).await.unwrap();
            list.items.into_iter().filter_map(|pod| pod.metadata.name).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(ListParams::default().fields("spec.nodeName=")).await, ["b"]);
    assert_eq!(list(ListParams::default().fields("spec.nodeName=two")).await, ["c"]);
    assert_eq!(list(ListParams::default().labels("app in (a,b)")).await, ["a", "b"]);
    let elsewhere = Api::<Pod>::namespaced(server.client(), "other");
    assert!(elsewhere.list(&ListParams::default()).await.unwrap().items.is_empty());
    let some = ListParams::default().labels("app!=b");
    pods.delete_collection(&DeleteParams::default(), &some).await.unwrap();
    assert_eq!(list(ListParams::default()).await, ["b"]);
    let first = Api::<Node>::all(server.client()).list(&ListParams::default()).await.unwrap();
    assert!(first.items.is_empty());
}

#[tokio::test]
async fn evictions_ask_the_budget() {
    let server = Server::new();
    let pods = pods(&server);
    for name in ["free", "kept"] {
        pods.create(&PostParams::default(), &pod(name, None)).await.unwrap();
    }
    server.on_eviction(|pod| match pod["metadata"]["name"].as_str() {
        Some("kept") => Eviction::Budget,
        _ => Eviction::Allow,
    });
    pods.evict("free", &EvictParams::default()).await.unwrap();
    assert!(pods.get_opt("free").await.unwrap().is_none());
    let refused = pods.evict("kept", &EvictParams::default()).await.unwrap_err();
    assert!(refusal::is_disruption_budget(&refused), "{refused}");
    let other = EvictParams {
        delete_options: Some(
            DeleteParams::default()
                .preconditions(Preconditions { uid: Some("other".into()), resource_version: None }),
        ),
        ..EvictParams::default()
    };
    server.on_eviction(|_| Eviction::Allow);
    assert_eq!(refusal::code(&pods.evict("kept", &other).await.unwrap_err()), Some(409));
}
