//! One look at each part on a real kube-apiserver.

use std::time::Duration;

use bigfleet_in_cluster::{
    Budget, Lane, Paced, Store, client,
    events::{self, Recorder},
    lease::{Elector, Leadership, Settings},
    refusal,
    store::Selection,
};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_testkit::kube::ControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};

use crate::wait::until;

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_parts_on_a_real_server() {
    let Some(cluster) = tokio::task::spawn_blocking(ControlPlane::start_or_skip).await.unwrap()
    else {
        return;
    };
    let client = client::connect(Some(cluster.kubeconfig()), "bigfleet-test").await.unwrap();
    let paced = Paced::new(client.clone(), Budget::new(0, 0));
    let shutdown = Shutdown::new();

    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    for index in 0..3 {
        maps.create(&PostParams::default(), &map(&format!("map-{index}"))).await.unwrap();
    }
    let store = Store::<String>::new("configmaps");
    let following = tokio::spawn({
        let (store, maps, shutdown) = (store.clone(), maps.clone(), shutdown.clone());
        async move {
            let name =
                |map: &ConfigMap| Some(map.name_any()).filter(|name| name.starts_with("map-"));
            store.run(maps, Selection::all(), name, shutdown).await;
        }
    });
    store.wait_synced(Duration::from_secs(30)).await.unwrap();
    assert_eq!(store.len(), 3);
    maps.create(&PostParams::default(), &map("map-3")).await.unwrap();
    maps.delete("map-0", &DeleteParams::default()).await.unwrap();
    until("the store follows", || {
        store.find(Some("default"), "map-3").is_some()
            && store.find(Some("default"), "map-0").is_none()
    })
    .await;

    let elector = |identity: &str| Elector::new(Settings::new("lease", "default", identity));
    let (first, second) = (elector("first"), elector("second"));
    let (first_stop, second_stop) = (Shutdown::new(), Shutdown::new());
    let run = |elector: &Elector, stop: &Shutdown| {
        let (elector, paced, stop) = (elector.clone(), paced.clone(), stop.clone());
        tokio::spawn(async move { elector.run(paced, stop).await })
    };
    let first_run = run(&first, &first_stop);
    until("the first leads", || first.is_leading()).await;
    first.annotate("bigfleet.lucy.sh/synced", "first");
    let second_run = run(&second, &second_stop);
    until("the annotation is there", || {
        *second.leadership().borrow() == Leadership::Standby && first.is_leading()
    })
    .await;
    first_stop.request();
    first_run.await.unwrap();
    until("the second leads", || second.is_leading()).await;
    let record = bigfleet_in_cluster::lease::read(&paced, "default", "lease").await.unwrap();
    let record = record.unwrap();
    assert_eq!((record.holder.as_str(), record.transitions), ("second", 1));
    assert_eq!(record.annotations["bigfleet.lucy.sh/synced"], "first");

    let recorder = Recorder::start(paced.clone(), "bigfleet-test", "test-1", shutdown.clone());
    for _ in 0..2 {
        let lease = events::deployment("default", "bigfleet-operator");
        recorder.warning(lease, "RollupHeld", "the list is not complete");
    }
    let events = Api::<Event>::namespaced(client, "default");
    let counted = async {
        let mine = ListParams::default().fields("reason=RollupHeld");
        loop {
            let found = events.list(&mine).await.unwrap().items;
            assert!(found.len() <= 1, "{found:?}");
            if found.first().is_some_and(|event| event.count == Some(2)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), counted).await.expect("no event counted to two");

    let error = paced
        .call(Lane::NodeState, |client| async move {
            Api::<ConfigMap>::namespaced(client, "default").get("nowhere").await
        })
        .await
        .unwrap_err();
    assert_eq!(refusal::code(&error), Some(404));
    shutdown.request();
    second_stop.request();
    second_run.await.unwrap();
    following.await.unwrap();
}
