//! A whole operator against a scripted shard and a server in memory.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, capacity_request_crd};
use bigfleet_in_cluster::{Budget, Error, Paced, memory::Server};
use bigfleet_net::{readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_operator::{
    Metrics,
    hold::DemandSource,
    operator::{self, Options, Running, Setup},
    session::{Downstream, ReclaimAcks, Render},
    side::{Context, Side},
};
use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, BootstrapBlobResponse, BootstrapRequest, NodeStateUpdate, ReclaimAck,
    ReclaimInstruction,
};
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

use crate::shard::{FakeShard, PATIENCE};

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) shard: FakeShard,
    pub(crate) running: Running,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) side: Arc<Log>,
}

pub(crate) fn server() -> Server {
    let server = Server::new();
    server.serve_with::<CapacityRequest>(json!({"status": {"phase": "Pending"}}));
    server.put(&capacity_request_crd());
    server
}

pub(crate) fn options(shard: &FakeShard) -> Options {
    Options {
        cluster_id: "c-1".to_owned(),
        shard_addr: shard.name(),
        security: Security::Plaintext,
        rollup_interval: Duration::from_millis(50),
        ack_concurrency: 16,
        demand_source: DemandSource::Auto,
        pod_status: true,
        leader_elect: false,
        namespace: "bigfleet-system".to_owned(),
        identity: "operator-1".to_owned(),
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(server(), |_| {}).await
    }

    pub(crate) async fn with(server: Server, change: impl FnOnce(&mut Options)) -> Self {
        let shard = FakeShard::start(Security::Plaintext).await;
        Self::at(server, shard, change)
    }

    pub(crate) fn at(server: Server, shard: FakeShard, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options(&shard);
        change(&mut options);
        let metrics = Arc::new(Metrics::default());
        let readiness = Readiness::new("starting");
        let side = Arc::new(Log::default());
        let made = side.clone();
        let running = operator::start(Setup {
            options,
            paced: Paced::new(server.client(), Budget::new(0, 0)),
            render: Arc::new(Echo),
            side: Box::new(move |_: Context| made),
            metrics: metrics.clone(),
            readiness: readiness.clone(),
        });
        Self { server, shard, running, metrics, readiness, side }
    }

    pub(crate) fn request(&self, name: &str, spec: &Value) {
        self.server.put(&request(name, spec));
    }

    pub(crate) fn phase(&self, name: &str) -> CapacityRequestPhase {
        self.get(name).phase()
    }

    pub(crate) fn get(&self, name: &str) -> CapacityRequest {
        self.server.get(Some("team-a"), name).unwrap()
    }

    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        wait(what, || condition(self)).await;
    }

    /// So many roll-ups more are heard.
    pub(crate) async fn roll_ups(&self, more: usize) {
        let heard = self.shard.heard().roll_ups().count();
        self.shard.until("more roll-ups", |now| now.roll_ups().count() >= heard + more).await;
    }

    pub(crate) fn events(&self, reason: &str) -> Vec<Event> {
        let all = self.server.all::<Event>();
        all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).collect()
    }

    pub(crate) fn is_acknowledged(&self, name: &str) -> bool {
        self.phase(name) == CapacityRequestPhase::Acknowledged
    }
}

/// Looks again until it is so.
pub(crate) async fn wait(what: &str, condition: impl Fn() -> bool) {
    let looked = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looked).await.is_ok(), "not so in time: {what}");
}

pub(crate) fn request(name: &str, spec: &Value) -> CapacityRequest {
    let mut full = json!({"priority": 1, "resources": {"cpu": "1"}});
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let object = json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": full, "status": {"phase": "Pending"},
    });
    serde_json::from_value(object).unwrap()
}

/// Renders what it is asked for.
struct Echo;

impl Render for Echo {
    fn render(&self, request: &BootstrapRequest) -> BootstrapBlobResponse {
        BootstrapBlobResponse {
            request_id: request.request_id.clone(),
            user_data: format!("join {}", request.machine_id).into_bytes(),
            ttl_seconds: 600,
            ..Default::default()
        }
    }
}

/// Takes down what goes downstream.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) lines: Mutex<Vec<String>>,
    acks: Mutex<Option<ReclaimAcks>>,
}

impl Log {
    fn line(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|one| one == line)
    }

    /// Whether the ack waits to be sent.
    pub(crate) fn ack(&self) -> bool {
        let acks = self.acks.lock().unwrap().clone();
        acks.is_some_and(|acks| acks.send(ReclaimAck::default()))
    }
}

impl Downstream for Log {
    fn session_began(&self, acks: ReclaimAcks) {
        *self.acks.lock().unwrap() = Some(acks);
        self.line("began".to_owned());
    }

    fn session_ended(&self) {
        self.line("ended".to_owned());
    }

    fn node_state(&self, frame: NodeStateUpdate, received: u64) {
        self.line(format!("node {} {received}", frame.machine_id));
    }

    fn reclaim(&self, instruction: ReclaimInstruction, received: u64) {
        self.line(format!("reclaim {} {received}", instruction.instruction_id));
    }

    fn available_capacity(&self, frame: AvailableCapacityUpdate) {
        self.line(format!("capacity {}", frame.supersedes_key));
    }

    fn resync(&self) {
        self.line("resync".to_owned());
    }
}

impl Side for Log {
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(async move { shutdown.requested().await })
    }

    fn synced(&self, _: Duration) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn unready(&self) -> Option<String> {
        None
    }
}
