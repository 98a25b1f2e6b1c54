//! The cache against a server that does everything a server may do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_crds::{CapacityRequest, CapacityRequestSpec};
use bigfleet_in_cluster::{
    Change, Error, ObjectKey, Store,
    memory::{Fault, Server, Verb},
    store::{Items, Selection, State},
};
use bigfleet_net::shutdown::Shutdown;
use k8s_openapi::api::core::v1::{Node, NodeSpec};
use kube::{Api, api::ObjectMeta};
use tokio::task::JoinHandle;

use crate::wait::until;

fn node(name: &str, provider_id: &str) -> Node {
    Node {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: Some(NodeSpec { provider_id: Some(provider_id.into()), ..NodeSpec::default() }),
        ..Node::default()
    }
}

/// The provider id; nodes without one are not of interest.
fn project(node: &Node) -> Option<String> {
    node.spec.as_ref()?.provider_id.clone().filter(|id| !id.is_empty())
}

struct Rig {
    server: Server,
    store: Store<String>,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Rig {
    fn start(server: Server) -> Self {
        let (store, shutdown) = (Store::new("nodes"), Shutdown::new());
        let task = tokio::spawn({
            let (store, shutdown) = (store.clone(), shutdown.clone());
            let nodes = Api::<Node>::all(server.client());
            async move { store.run(nodes, Selection::all(), project, shutdown).await }
        });
        Self { server, store, shutdown, task }
    }

    async fn synced(server: Server) -> Self {
        let rig = Self::start(server);
        rig.store.wait_synced(Duration::from_secs(60)).await.unwrap();
        rig
    }

    async fn shows(&self, name: &str, provider_id: Option<&str>) {
        let what = format!("{name} is {provider_id:?}");
        until(&what, || self.store.find(None, name).as_deref().map(String::as_str) == provider_id)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn follows_a_server_through_more_than_a_page() {
    let server = Server::new();
    for index in 0..1203 {
        server.put(&node(&format!("node-{index:04}"), "a"));
    }
    let rig = Rig::synced(server).await;
    assert_eq!(rig.store.len(), 1203);
    assert_eq!(rig.server.count(Verb::List, "nodes"), 3);
    rig.server.put(&node("node-0007", "b"));
    rig.shows("node-0007", Some("b")).await;
    rig.server.put(&node("node-0008", ""));
    rig.shows("node-0008", None).await;
    rig.server.remove::<Node>(None, "node-0009");
    rig.shows("node-0009", None).await;
    assert_eq!(rig.store.len(), 1201);
    assert_eq!(rig.server.count(Verb::List, "nodes"), 3, "a watch needs no list");
    rig.shutdown.request();
    rig.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_resumes_and_an_expired_one_lists_again() {
    let server = Server::new();
    server.put(&node("a", "1"));
    let rig = Rig::synced(server).await;
    rig.server.cut_watches();
    rig.server.put(&node("a", "2"));
    rig.shows("a", Some("2")).await;
    assert_eq!(rig.server.count(Verb::List, "nodes"), 1);
    rig.server.gap();
    rig.server.remove::<Node>(None, "a");
    rig.server.put(&node("b", "1"));
    rig.shows("b", Some("1")).await;
    rig.shows("a", None).await;
    assert_eq!(rig.server.count(Verb::List, "nodes"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_half_way_is_never_seen() {
    let server = Server::new();
    for index in 0..1200 {
        server.put(&node(&format!("node-{index:04}"), "a"));
    }
    // The first list fails at its second page, and what came is not shown.
    server.inject(Fault::answer(500).on(Verb::List, "nodes").after(1).times(3));
    let rig = Rig::start(server);
    until("three failures", || rig.server.count(Verb::List, "nodes") >= 4).await;
    assert_eq!(rig.store.state(), State::Unsynced);
    assert_eq!(rig.store.len(), 0);
    rig.store.wait_synced(Duration::from_secs(60)).await.unwrap();
    assert_eq!(rig.store.len(), 1200);

    // A later one keeps the last set.
    let mut changes = rig.store.changes();
    assert!(matches!(changes.next().await, Some(Change::Swapped(all)) if all.len() == 1200));
    let before = rig.server.count(Verb::List, "nodes");
    rig.server.inject(Fault::answer(503).on(Verb::List, "nodes").after(2).times(1));
    rig.server.inject(Fault::unreachable().on(Verb::List, "nodes").after(3).times(2));
    rig.server.gap();
    rig.server.remove::<Node>(None, "node-0000");
    let mut least = usize::MAX;
    until("listed again", || {
        least = least.min(rig.store.len());
        rig.store.find(None, "node-0000").is_none()
    })
    .await;
    assert!(rig.server.count(Verb::List, "nodes") >= before + 5);
    assert_eq!(least, 1199, "a half list was shown");
    let Some(Change::Swapped(differences)) = changes.next().await else { panic!("no swap") };
    assert_eq!(
        differences,
        [Change::Gone { key: ObjectKey::cluster("node-0000"), before: Arc::new("a".into()) }]
    );
    assert_eq!(changes.try_next(), None);
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_what_is_known() {
    let server = Server::new();
    server.put(&node("a", "1"));
    let rig = Rig::synced(server).await;
    rig.server.away(true);
    until("trouble", || rig.store.problem().is_some()).await;
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    assert_eq!((rig.store.state(), rig.store.len()), (State::Synced, 1));
    rig.server.put(&node("b", "1"));
    rig.server.away(false);
    rig.shows("b", Some("1")).await;
    assert_eq!(rig.store.problem(), None);
}

#[tokio::test(start_paused = true)]
async fn a_half_open_watch_is_noticed() {
    let server = Server::new();
    server.put(&node("a", "1"));
    server.inject(Fault::latency(Duration::from_secs(1_000_000)).on(Verb::List, "nodes").times(1));
    let rig = Rig::synced(server).await;
    assert!(rig.server.count(Verb::List, "nodes") >= 2, "the silent list was waited for");
    assert_eq!(rig.store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_crd_is_waited_for_and_its_loss_keeps_the_set() {
    let server = Server::new();
    let (store, shutdown) = (Store::<i32>::new("capacityrequests"), Shutdown::new());
    tokio::spawn({
        let (store, shutdown) = (store.clone(), shutdown.clone());
        let requests = Api::<CapacityRequest>::all(server.client());
        let priority = |request: &CapacityRequest| Some(request.spec.priority);
        async move { store.run(requests, Selection::all(), priority, shutdown).await }
    });
    until("missing", || store.state() == State::Missing).await;
    let error = store.wait_synced(Duration::from_secs(11)).await.unwrap_err();
    assert!(matches!(&error, Error::NotSynced { what, .. } if what == "capacityrequests"));
    assert_eq!(server.count(Verb::List, "capacityrequests"), 3, "every five seconds");

    server.serve::<CapacityRequest>();
    server.put(&request("apps", "one"));
    store.wait_synced(Duration::from_secs(10)).await.unwrap();
    assert_eq!(store.len(), 1);
    // Without its CRD even the deletions may be missed: the watch is away meanwhile.
    server.away(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.withdraw::<CapacityRequest>();
    server.away(false);
    until("missing again", || store.state() == State::Missing).await;
    assert_eq!(store.len(), 1);
    server.serve::<CapacityRequest>();
    store.wait_synced(Duration::from_secs(10)).await.unwrap();
    assert_eq!(store.len(), 0);
}

fn request(namespace: &str, name: &str) -> CapacityRequest {
    let mut request = CapacityRequest::new(name, CapacityRequestSpec::default());
    request.metadata.namespace = Some(namespace.into());
    request
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it() {
    let server = Server::new();
    server.inject(Fault::answer(429).retry_after(40).on(Verb::List, "nodes").times(1));
    let start = tokio::time::Instant::now();
    let rig = Rig::synced(server).await;
    assert!(start.elapsed() >= Duration::from_secs(40), "{:?}", start.elapsed());
    assert_eq!(rig.server.count(Verb::List, "nodes"), 2);
}

/// Whatever happens to the server, the feed rebuilds what the store shows, and in the end both are
/// what the server has.
#[tokio::test(start_paused = true)]
async fn a_feed_and_the_store_agree_with_the_server_after_any_weather() {
    let seed = std::env::var("BIGFLEET_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("BIGFLEET_SEED={seed}");
    let mut random = seed;
    let mut draw = move |bound: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let rig = Rig::synced(Server::new()).await;
    let mut changes = rig.store.changes();
    let mut known = Items::default();
    for _ in 0..600 {
        let name = format!("node-{}", draw(40));
        match draw(12) {
            0..5 => rig.server.put(&node(&name, &format!("id-{}", draw(3)))),
            5..8 => drop(rig.server.remove::<Node>(None, &name)),
            8 => rig.server.cut_watches(),
            9 => rig.server.gap(),
            10 => rig.server.away(draw(2) == 0),
            _ => tokio::time::sleep(Duration::from_millis(draw(3000))).await,
        }
        while let Some(change) = changes.try_next() {
            replay(&mut known, &change);
        }
    }
    rig.server.away(false);
    let wanted: BTreeMap<String, String> = rig
        .server
        .all::<Node>()
        .iter()
        .filter_map(|node| Some((node.metadata.name.clone()?, project(node)?)))
        .collect();
    let shown = |items: &Items<String>| -> BTreeMap<String, String> {
        items.iter().map(|(key, id)| (key.name.to_string(), id.to_string())).collect()
    };
    until("the store agrees", || rig.store.with(shown) == wanted).await;
    while let Some(change) = changes.try_next() {
        replay(&mut known, &change);
    }
    assert_eq!(shown(&known), wanted);
}

fn replay(known: &mut Items<String>, change: &Change<String>) {
    match change {
        Change::Put { key, before, after } => {
            assert_eq!(known.insert(key.clone(), after.clone()), *before, "{key}");
        }
        Change::Gone { key, before } => {
            assert_eq!(known.remove(key).as_ref(), Some(before), "{key}");
        }
        Change::Swapped(changes) => changes.iter().for_each(|change| replay(known, change)),
    }
}
