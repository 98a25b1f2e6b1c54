//! A real shard with a fake provider and a scripted operator, and its own metrics.

use std::{sync::Arc, time::Duration};

use bigfleet_dashboard::{Config, Target};
use bigfleet_net::{http::HttpServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_provider::{
    Identity, Stamped,
    fake::{Fake, FakeOptions, Seed},
};
use bigfleet_scripted::{
    coordinator::Coordinator,
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::{Options, Running, Setup, Supply, start};
use bigfleet_wire::v1alpha1::CapacityNeed;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

use crate::{
    rig::{PATIENCE, Viewed, lead, loopback},
    stream::Reader,
};

/// A shard with twelve machines.
pub(crate) struct Living {
    pub(crate) running: Running,
    clock: JoinHandle<()>,
    pub(crate) addr: String,
    registry: Registry,
}

impl Living {
    pub(crate) async fn start(security: Security) -> Self {
        let fake = Fake::new(FakeOptions::instant());
        fake.seed(&Seed { idle: 4, speculative: 8, ..Seed::default() }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let supply: Arc<dyn Supply> =
            Arc::new(Stamped::new(fake.clone(), Identity::new("shard-0", 3)));
        let options = Options {
            id: "shard-0".to_owned(),
            cycle_interval: Duration::from_millis(100),
            ..Options::default()
        };
        let setup = Setup::in_memory(options, 3, supply, listener).unwrap();
        let mut registry = Registry::default();
        setup.metrics.register(&mut registry);
        let running = start(Setup { own_thread: true, security, ..setup });
        let clock = tokio::spawn(async move { fake.run().await });
        Self { running, clock, addr, registry }
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.clock.abort();
    }
}

struct Fleet {
    running: Running,
    clock: JoinHandle<()>,
    _coordinator: Coordinator,
    _operator: Operator,
    viewed: Viewed,
}

pub(crate) fn need(priority: i32, cpu: &str) -> CapacityNeed {
    CapacityNeed {
        aggregate_resources: [("cpu".to_owned(), cpu.to_owned())].into(),
        min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
        priority,
        interruption_penalty_bucket: 1,
        reclamation_penalty_bucket: 1,
        ..CapacityNeed::default()
    }
}

impl Fleet {
    /// Demand that is met, and some that no machine will ever meet.
    async fn start() -> Self {
        let Living { running, clock, addr, registry } = Living::start(Security::Plaintext).await;
        let metrics = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::new("shard-0", metrics.local_addr().unwrap().to_string());
        let server = HttpServer::new(registry, Readiness::new("a test"));
        tokio::spawn(server.serve(metrics, Shutdown::new()));
        let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
        lead(&coordinator, &[("shard-0", &addr)]);
        let operator = OperatorOptions::new("prod-a");
        let operator = Operator::connect(&addr, &Security::Plaintext, operator).await.unwrap();
        let mut never = need(2_000, "5");
        never.min_unit = [("cpu".to_owned(), "100000".to_owned())].into();
        operator.roll_up(vec![need(1_000, "2"), never]).await.unwrap();
        let viewed = Viewed::start(Config {
            coordinator: vec![coordinator.addr().to_owned()],
            scrape: vec![target],
            ..loopback()
        })
        .await;
        Self { running, clock, _coordinator: coordinator, _operator: operator, viewed }
    }

    /// The answer of a route once it is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answered = self.viewed.get(path).await;
            if wanted(&answered.body) {
                return answered.body;
            }
            assert!(Instant::now() < deadline, "{path}: {}", answered.text);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn stop(self) {
        self.running.stop().await;
        self.clock.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_shard_is_seen_from_all_sides() {
    let fleet = Fleet::start().await;
    let satisfied = |one: &Value| one["satisfied"] == true;
    let needs = fleet.until("/api/v1/needs?shard=shard-0", |body| {
        let needs = body["needs"].as_array();
        needs.is_some_and(|needs| needs.len() == 2 && needs.iter().any(satisfied))
    });
    let needs = needs.await;
    let unmet = needs["needs"].as_array().unwrap().iter().find(|one| !satisfied(one)).unwrap();
    assert_eq!(
        (&unmet["reason"], &needs["rebuilding"]),
        (&"NO_MATCHING_SUPPLY".into(), &false.into())
    );
    let fingerprint = unmet["profileFingerprint"].as_str().unwrap();
    let path = format!("/api/v1/explain?shard=shard-0&cluster=prod-a&fingerprint={fingerprint}");
    let explained = fleet.viewed.ok(&path).await;
    assert_eq!(explained["need"]["reason"], unmet["reason"]);
    assert!(explained["funnel"]["matching"].as_i64().unwrap() > 0, "{explained}");

    let configured = "/api/v1/machines?shard=shard-0&state=configured";
    let machines = fleet.until(configured, |body| body["total"].as_i64() > Some(0)).await;
    let id = machines["machines"][0]["id"].as_str().unwrap();
    let machine = fleet.viewed.ok(&format!("/api/v1/machines/shard-0/{id}")).await;
    assert_eq!(machine["machine"]["cluster"], "prod-a");
    assert!(!machine["transitions"].as_array().unwrap().is_empty());
    let sessions = fleet.viewed.ok("/api/v1/sessions?shard=shard-0").await;
    assert_eq!(sessions["sessions"][0]["clusterId"], "prod-a");

    let decisions = fleet.viewed.ok("/api/v1/decisions?shard=shard-0&kind=Bootstrap").await;
    let first = &decisions["decisions"][0];
    assert_eq!(
        (&first["kind"], &decisions["more"]),
        (&"Bootstrap".into(), &false.into()),
        "{decisions}"
    );
    let after = first["sequence"].as_str().unwrap();
    let rest = fleet.viewed.ok(&format!("/api/v1/decisions?shard=shard-0&after={after}")).await;
    assert!(
        rest["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["sequence"] != first["sequence"])
    );
    let money = fleet.viewed.ok("/api/v1/finops/shard?shard=shard-0").await;
    assert_eq!(money["machines"], 12, "{money}");
    fleet.viewed.ok("/api/v1/finops/savings?shard=shard-0").await;

    let what_if = "/api/v1/whatif?shard=shard-0&cluster=prod-a&need=\
        %7B%22aggregateResources%22%3A%7B%22cpu%22%3A%221%22%7D%2C%22priority%22%3A1000%7D";
    let fits = fleet.viewed.ok(what_if).await;
    assert_eq!(fits["satisfied"], true, "{fits}");
    // Another comes too soon for the shard, and waits for its turn.
    let another = what_if.replace("1000", "1001");
    assert_eq!(fleet.viewed.ok(&another).await["satisfied"], true);

    let mut reader = Reader::open(&fleet.viewed, "summary,needs:shard-0", None).await;
    let (one, other) = (reader.next_of("summary").await, reader.next_of("summary").await);
    assert!(one.data["cycle"].as_i64() < other.data["cycle"].as_i64());
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_need_no_prometheus() {
    let fleet = Fleet::start().await;
    let known = |body: &Value| body["shards"] == 1 && body["machines"].as_f64() == Some(12.0);
    let overview = fleet.until("/api/v1/fleet/overview", known).await;
    assert_eq!(overview["clusters"], 1.0, "{overview}");
    assert!(
        overview["cycleP99Seconds"].as_f64().is_some_and(|seconds| seconds > 0.0),
        "{overview}"
    );
    assert!(overview["sampledAtUnixNanos"].is_i64(), "{overview}");
    let shard = fleet.viewed.ok("/api/v1/shards/shard-0").await;
    assert!(shard["cycleP99ByPhaseSeconds"]["phase1"].is_number(), "{shard}");
    assert_eq!((&shard["occConflictPerSec"], &shard["live"]), (&0.0.into(), &true.into()));
    assert_eq!(fleet.viewed.ok("/api/v1/config").await["metricsBy"], "scrape");
    let snapshot = fleet.viewed.ok("/api/v1/finops/snapshot").await;
    assert_eq!(snapshot["totals"]["machines"], 12.0, "{snapshot}");
    assert_eq!(snapshot["demandByBucket"][1], 2.0, "{snapshot}");
    let trends = fleet.viewed.ok("/api/v1/shards/shard-0/trends?duration=1m&step=5s").await;
    let last = trends["machinesByState"]["idle"].as_array().unwrap().last().unwrap();
    assert!(last.is_number(), "{trends}");
    fleet.stop().await;
}
