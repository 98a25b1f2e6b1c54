//! Restarts, two controllers at once, stale caches, refusals, silence.

use std::time::Duration;

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::memory::{Fault, Server, Verb};
use bigfleet_scripted::random::Random;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::site::{NAMESPACE, Running, by_pod, pod, server, within};

const SEEDS: u64 = 12;
const ROUNDS: u64 = 12;

fn seeds() -> Vec<u64> {
    match std::env::var("BIGFLEET_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=SEEDS).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn pods_inv_12_one_request_per_pod_whatever_happens() {
    for seed in seeds() {
        println!("replay with BIGFLEET_SEED={seed}");
        Chaos { random: Random::new(seed), server: server(), made: 0 }.run().await;
    }
}

struct Chaos {
    random: Random,
    server: Server,
    made: u64,
}

impl Chaos {
    async fn run(mut self) {
        let watch = tokio::spawn(never_two(self.server.clone()));
        let mut controllers = vec![self.start()];
        for round in 0..ROUNDS {
            for _ in 0..1 + self.random.below(6) {
                self.disturb(&mut controllers).await;
                self.change();
                let pause = Duration::from_millis(self.random.below(400));
                tokio::time::sleep(pause).await;
            }
            self.server.away(false);
            self.server.heal();
            let server = &self.server;
            let what = format!("round {round}: {:?}", missing(server));
            within(Duration::from_secs(5), &what, || missing(server).is_empty()).await;
            assert!(!watch.is_finished(), "two requests of one pod");
        }
        for controller in controllers {
            controller.crash().await;
        }
        watch.abort();
    }

    fn start(&mut self) -> Running {
        Running::start(self.server.client(), "one", false)
    }

    async fn disturb(&mut self, controllers: &mut Vec<Running>) {
        let server = &self.server;
        let plural = ["capacityrequests", "pods"][self.random.below(2) as usize];
        let times = 1 + self.random.below(8) as u32;
        match self.random.below(11) {
            0 => server.gap(),
            1 => server.cut_watches(),
            2 => server.away(true),
            3 => server.away(false),
            4 => server.inject(Fault::answer(500).times(times)),
            5 => {
                server.inject(Fault::answer(409).on(Verb::Create, "capacityrequests").times(times))
            }
            6 => server.inject(Fault::answer(429).retry_after(1).times(1)),
            7 => {
                let slow = Fault::latency(Duration::from_millis(self.random.below(900)));
                server.inject(slow.on(Verb::Watch, plural).times(times));
            }
            8 => server.inject(Fault::unreachable().times(times)),
            9 => {
                controllers.remove(0).crash().await;
                let next = self.start();
                controllers.push(next);
            }
            // Two at once, as when a lease is lost unseen.
            _ if controllers.len() < 3 => {
                let next = self.start();
                controllers.push(next);
            }
            _ => controllers.remove(0).crash().await,
        }
    }

    /// Something happens in the cluster.
    fn change(&mut self) {
        for _ in 0..self.random.below(5) {
            let pods: Vec<Pod> = self.server.all();
            let any = pods.get(self.random.below(pods.len().max(1) as u64) as usize);
            match (self.random.below(8), any) {
                (0, Some(gone)) => self.remove(gone),
                (1, Some(one)) => self.put(one, &json!({"status": {"phase": "Succeeded"}})),
                (2, Some(one)) => {
                    let cpu = format!("{}", 1 + self.random.below(9));
                    let spec = json!({"containers": [
                        {"name": "c", "resources": {"requests": {"cpu": cpu}}},
                    ]});
                    self.put(one, &json!({"spec": spec}));
                }
                (3, Some(one)) => {
                    // By hand.
                    let uid = one.uid().unwrap();
                    for request in by_pod(&self.server).remove(&uid).into_iter().flatten() {
                        let name = request.name_any();
                        self.server.remove::<CapacityRequest>(Some(NAMESPACE), &name);
                    }
                }
                (4, Some(one)) => {
                    // Another of the same name.
                    let name = one.name_any();
                    self.remove(one);
                    self.server.put(&pod(&name, &json!({})));
                }
                _ => {
                    self.made += 1;
                    self.server.put(&pod(&format!("pod-{}", self.made), &json!({})));
                }
            }
        }
    }

    fn put(&self, one: &Pod, patch: &Value) {
        let mut value = serde_json::to_value(one).unwrap();
        for (part, fields) in patch.as_object().unwrap() {
            for (name, field) in fields.as_object().unwrap() {
                value[part][name] = field.clone();
            }
        }
        self.server.put::<Pod>(&serde_json::from_value(value).unwrap());
    }

    /// With what the collector would take along.
    fn remove(&self, one: &Pod) {
        self.server.remove::<Pod>(Some(NAMESPACE), &one.name_any());
        for request in by_pod(&self.server).remove(&one.uid().unwrap()).into_iter().flatten() {
            self.server.remove::<CapacityRequest>(Some(NAMESPACE), &request.name_any());
        }
    }
}

async fn never_two(server: Server) {
    loop {
        for (uid, requests) in by_pod(&server) {
            let names: Vec<String> = requests.iter().map(ResourceExt::name_any).collect();
            assert!(names.len() <= 1, "pod {uid} has {names:?}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What is not as it should be. A request that was made for a pod just gone is the collector's.
fn missing(server: &Server) -> Vec<String> {
    let mut requests = by_pod(server);
    let mut missing = Vec::new();
    for pod in server.all::<Pod>() {
        let spec = serde_json::to_value(&pod).unwrap();
        let over = spec["status"]["phase"] == "Succeeded";
        let cpu = &spec["spec"]["containers"][0]["resources"]["requests"]["cpu"];
        let one = requests.remove(&pod.uid().unwrap());
        let name = pod.name_any();
        match one.as_deref() {
            None if over => {}
            Some([one]) if !over && one.spec.resources["cpu"].as_str() == cpu => {}
            other => missing.push(format!("{name}: over {over}, cpu {cpu}, has {other:?}")),
        }
    }
    missing
}

#[tokio::test(start_paused = true)]
async fn pods_inv_15_nothing_is_written_when_nothing_changes() {
    let server = server();
    for at in 0..50 {
        let patch = match at % 5 {
            0 => {
                json!({"metadata": {"annotations": {"bigfleet.lucy.sh/reclamation-penalty": "x"}}})
            }
            1 => json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
            2 => json!({"status": {"phase": "Failed"}}),
            3 => json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
            _ => json!({}),
        };
        server.put(&pod(&format!("pod-{at}"), &patch));
    }
    let controller = Running::start(server.client(), "one", true);
    within(Duration::from_secs(30), "all is settled", || controller.metrics.synced.get() == 1)
        .await;
    assert_eq!(server.number_of::<CapacityRequest>(), 20);
    // Events are written when there is time for them.
    tokio::time::sleep(Duration::from_secs(10)).await;
    server.record();
    tokio::time::sleep(Duration::from_secs(660)).await;
    let calls = server.calls();
    let reads = [Verb::Get, Verb::List, Verb::Watch];
    let writes: Vec<_> = calls
        .iter()
        .filter(|call| !reads.contains(&call.verb) && call.plural != "leases")
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
    let renewals = calls.iter().filter(|call| call.plural == "leases").count();
    assert!(renewals > 100, "the clock did run: {renewals}");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_orphan_goes_and_a_stray_is_not_doubled() {
    let server = server();
    server.put(&pod("web-0", &json!({})));
    let uid = server.get::<Pod>(Some(NAMESPACE), "web-0").unwrap().uid().unwrap();
    let request = |name: &str, pod: &str, uid: &str| {
        serde_json::from_value::<CapacityRequest>(json!({
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": {"bigfleet.lucy.sh/owned-by-pod": uid},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid},
                ],
            },
            "spec": {"priority": 0, "resources": {}},
        }))
        .unwrap()
    };
    server.put(&request("of-an-older-version", "web-0", &uid));
    server.put(&request("cr-pod-lost-0123456789", "lost", "lost"));
    let watch = tokio::spawn(never_two(server.clone()));
    let controller = Running::start(server.client(), "one", false);
    within(Duration::from_secs(5), "one is left and right", || {
        let all = server.all::<CapacityRequest>();
        let [one] = all.as_slice() else { return false };
        one.name_any() == "of-an-older-version" && one.spec.resources.contains_key("cpu")
    })
    .await;
    assert!(!watch.is_finished(), "two requests of one pod");
    watch.abort();
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lingering_pod_is_over_in_the_end() {
    let server = server();
    let soon = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(298);
    let soon = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    server.put(&pod("slow", &json!({"metadata": {"deletionTimestamp": soon}})));
    let controller = Running::start(server.client(), "one", false);
    within(Duration::from_secs(5), "it still counts", || {
        server.number_of::<CapacityRequest>() == 1
    })
    .await;
    // The wall clock is real: wait for it in real time, with a deadline in virtual time.
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while server.number_of::<CapacityRequest>() == 1 {
        assert!(std::time::Instant::now() < deadline, "it never ended");
        tokio::time::sleep(Duration::from_millis(100)).await;
        tokio::task::yield_now().await;
    }
    controller.stop().await;
}
