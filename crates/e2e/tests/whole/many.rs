//! From an empty cluster to five hundred pods and back, as a person at a terminal sees it.
//!
//! What it prints of the time from a pod to its node is meant for
//! `BIGFLEET_BIND_INTERVAL=10s BIGFLEET_BIND_PODS=60`, the interval that operators have by default.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bigfleet_crds::{CapacityRequest, UpcomingNode};
use bigfleet_e2e::{
    measure::{number, quantile},
    wait::{eventually, throughout, within},
};
use futures_util::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Event, Node, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    runtime::watcher::{self, watcher},
};
use tokio::task::JoinHandle;

use crate::site::{Flags, Site};

const PODS: u32 = 500;

/// At once, so that what is measured is ours. Machines say how many pods they take.
const CLOUD: &[&str] = &[
    "--tier={name: vm, type: m4, capacity: ON_DEMAND, count: 100, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi, pods: 110}}",
    "--latency={create: 1ms, configure: 1ms, drain: 1ms, delete: 1ms}",
    "--interruption-factor=0",
];

/// Between two pods of which each is measured; no fraction of an interval, so that they come at
/// any time in it.
const STEP: Duration = Duration::from_millis(730);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_pods_come_from_nothing_and_go_to_nothing() {
    let interval = std::env::var("BIGFLEET_BIND_INTERVAL").unwrap_or_else(|_| "1s".to_owned());
    let probes = u32::try_from(number("BIGFLEET_BIND_PODS", 15)).unwrap();
    let flags = Flags {
        provider: CLOUD.iter().map(|&flag| flag.to_owned()).collect(),
        operator: vec![format!("--rollup-interval={interval}")],
        pod_controller: Vec::new(),
    };
    let Some(mut site) = Site::start_or_skip(flags).await else { return };
    let clock = Clock::start(site.cluster.client());

    pods_without_requests_bring_no_node(&site).await;

    let began = Instant::now();
    site.create_deployment("web", PODS, Some("cpu=100m,memory=64Mi"));
    let all = usize::try_from(PODS).unwrap();
    within(Duration::from_secs(300), "all pods run", || async {
        site.cluster.running("default", "web").await == all
    })
    .await;
    println!("{PODS} pods ran after {:?}", began.elapsed());
    // Those that asked for nothing have found room.
    site.cluster.until_running("default", "idle", 3).await;
    site.cluster.delete::<Deployment>("default", "idle").await;
    eventually("one request for each pod", || async {
        site.cluster.count::<CapacityRequest>().await == all
    })
    .await;
    let nodes = site.cluster.nodes().await.len();
    assert_eq!(nodes, 13, "40 pods fill a machine");

    // Where there is room, and where each pod needs a machine of its own.
    add_one_by_one(&site, "web", PODS, probes.min(20)).await;
    site.create_deployment("probe", 0, Some("cpu=4,memory=64Mi"));
    add_one_by_one(&site, "probe", 0, probes).await;
    for (app, count) in [("web", probes.min(20)), ("probe", probes)] {
        for (whose, times) in clock.newest(app, usize::try_from(count).unwrap()) {
            let (least, most) = (times.first().unwrap(), times.last().unwrap());
            let (p50, p99) = (quantile(&times, 50), quantile(&times, 99));
            println!(
                "interval {interval}: {whose} of {count} pods of {app} came after \
                 p50 {p50:?}, p99 {p99:?} ({least:?} to {most:?})"
            );
        }
    }

    let began = Instant::now();
    site.cluster.kubectl(&["scale", "deployment", "--all", "--replicas=0"]);
    within(Duration::from_secs(300), "no request is left", || async {
        site.cluster.count::<CapacityRequest>().await == 0
    })
    .await;
    println!("no pod and no request was left after {:?}", began.elapsed());
    site.until_empty(Duration::from_secs(300)).await;
    eventually("all machines are back", || async { site.machines_away().await < 0.5 }).await;
    println!("nothing was left after {:?}", began.elapsed());

    pods_that_are_counted_bring_a_node(&mut site).await;
}

/// They ask for nothing, and nothing is what they get (engine chapter §12: a need of nothing is
/// satisfied); they run wherever others have brought a node.
async fn pods_without_requests_bring_no_node(site: &Site) {
    let cluster = &site.cluster;
    site.create_deployment("idle", 3, None);
    eventually("three acknowledged requests for nothing", || async {
        let requests = cluster.all::<CapacityRequest>().await;
        let acknowledged = |request: &CapacityRequest| {
            request.phase() == bigfleet_crds::CapacityRequestPhase::Acknowledged
                && request.spec.resources.is_empty()
        };
        requests.len() == 3 && requests.iter().all(acknowledged)
    })
    .await;
    throughout(Duration::from_secs(3), "no node comes", || async {
        cluster.count::<UpcomingNode>().await == 0 && cluster.count::<Node>().await == 0
    })
    .await;
    let events = cluster.all::<Event>().await;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("Pod"))
        .filter_map(|event| Some((event.reason.clone()?, event.message.clone()?)))
        .collect();
    println!("pods without requests are told: {told:?}");
}

/// With `--count-pods-resource` a pod asks for its place at least, and machines that say how many
/// they have can serve it.
async fn pods_that_are_counted_bring_a_node(site: &mut Site) {
    site.restart_pod_controller(&["--count-pods-resource"]).await;
    site.create_deployment("counted", PODS, None);
    site.cluster.until_running("default", "counted", usize::try_from(PODS).unwrap()).await;
    assert_eq!(site.cluster.nodes().await.len(), 5, "110 pods fill a machine");
    site.cluster.kubectl(&["delete", "deployment", "counted"]);
    site.until_empty(Duration::from_secs(120)).await;
}

/// Adds pods to a Deployment one by one and waits until all of them run.
async fn add_one_by_one(site: &Site, app: &str, from: u32, count: u32) {
    for index in 1..=count {
        site.cluster.scale("default", app, from + index).await;
        tokio::time::sleep(STEP).await;
    }
    site.cluster.until_running("default", app, usize::try_from(from + count).unwrap()).await;
}

/// When each pod was seen first, and when it had a node.
struct Clock {
    times: Arc<Mutex<HashMap<String, Times>>>,
    task: JoinHandle<()>,
}

struct Times {
    app: String,
    created: Instant,
    bound: Option<Instant>,
}

impl Clock {
    fn start(client: Client) -> Self {
        let times = Arc::<Mutex<HashMap<String, Times>>>::default();
        let task = tokio::spawn(follow(client, times.clone()));
        Self { times, task }
    }

    /// From creation to node, of the newest pods of a workload, sorted. Once from the first pod
    /// to the first place, from the second to the second and so on, which is ours; once of each
    /// pod by itself: the scheduler lets a new pod overtake those that it has put off before.
    fn newest(&self, app: &str, count: usize) -> [(&'static str, Vec<Duration>); 2] {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_app: Vec<_> = times
            .values()
            .filter(|one| one.app == app)
            .map(|one| (one.created, one.bound.expect("it runs")))
            .collect();
        of_app.sort_unstable_by_key(|(created, _)| std::cmp::Reverse(*created));
        of_app.truncate(count);
        let (mut created, mut bound): (Vec<_>, Vec<_>) = of_app.iter().copied().unzip();
        created.sort_unstable();
        bound.sort_unstable();
        let sorted = |times: &mut dyn Iterator<Item = Duration>| {
            let mut times: Vec<_> = times.collect();
            times.sort_unstable();
            times
        };
        let places = sorted(&mut created.iter().zip(&bound).map(|(from, to)| *to - *from));
        let pods = sorted(&mut of_app.iter().map(|(from, to)| *to - *from));
        [("the places", places), ("the nodes", pods)]
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(client: Client, times: Arc<Mutex<HashMap<String, Times>>>) {
    let mut events = Box::pin(watcher(Api::<Pod>::all(client), watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::InitApply(pod) | watcher::Event::Apply(pod)) = event else {
            continue;
        };
        let now = Instant::now();
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        let one = times.entry(pod.uid().unwrap_or_default()).or_insert_with(|| Times {
            app: pod.labels().get("app").cloned().unwrap_or_default(),
            created: now,
            bound: None,
        });
        if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) {
            one.bound.get_or_insert(now);
        }
    }
}
