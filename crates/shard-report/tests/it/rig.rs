//! A shard with its provider, and its client, all on one runtime whose clock jumps
//! when everybody waits.

use std::{sync::Arc, time::Duration};

use bigfleet_net::{
    readiness::Readiness,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_provider::{
    Identity, Stamped,
    fake::{Fake, FakeOptions, PerKind, Seed},
};
use bigfleet_scripted::{
    coordinator::Coordinator,
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::{
    Options as ShardOptions, ReportSide, Running, Setup, Supply, audit::Audit, metrics::Metrics,
    start,
};
use bigfleet_shard_report::{Client, Options, supervise};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    AssignDomain, CoordinatorInstruction, InstructAck, ReportAck, ShardReport,
    coordinator_instruction::Payload,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{net::TcpListener, task::JoinHandle};

/// Virtual, so it costs nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) const FLEET: &str = "6f2c.00000000";

/// A shard and its provider.
pub(crate) struct Rig {
    pub(crate) fake: Fake,
    pub(crate) addr: String,
    pub(crate) side: ReportSide,
    pub(crate) readiness: Readiness,
    pub(crate) audit: Arc<Audit>,
    metrics: Arc<Metrics>,
    running: Running,
    clock: JoinHandle<()>,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(&Seed { speculative: 20, ..Seed::default() }).await
    }

    pub(crate) async fn with(seed: &Seed) -> Self {
        Self::built(seed, false).await
    }

    /// With a thread for its cycles, as in a process.
    pub(crate) async fn threaded(seed: &Seed) -> Self {
        Self::built(seed, true).await
    }

    /// With another provider.
    pub(crate) async fn over(provider: FakeOptions, seed: &Seed) -> Self {
        Self::with_provider(provider, seed, false).await
    }

    async fn built(seed: &Seed, own_thread: bool) -> Self {
        let takes = Duration::from_secs(15);
        let latency = PerKind { create: takes, configure: takes, drain: takes, delete: takes };
        let provider = FakeOptions { latency, ..FakeOptions::default() };
        Self::with_provider(provider, seed, own_thread).await
    }

    async fn with_provider(provider: FakeOptions, seed: &Seed, own_thread: bool) -> Self {
        let fake = Fake::new(provider);
        fake.seed(seed).expect("the catalogue passes the gate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let addr = listener.local_addr().expect("bound").to_string();
        let supply: Arc<dyn Supply> =
            Arc::new(Stamped::new(fake.clone(), Identity::new("shard-7", 3)));
        let options = ShardOptions { id: "shard-7".to_owned(), ..ShardOptions::default() };
        let setup = Setup::in_memory(options, 3, supply, listener).expect("nothing to open");
        let (metrics, readiness) = (setup.metrics.clone(), setup.readiness.clone());
        let audit = setup.audit.clone();
        let running = start(Setup { own_thread, ..setup });
        let ticking = fake.clone();
        let clock = tokio::spawn(async move { ticking.run().await });
        let side = running.report_side();
        Self { fake, addr, side, readiness, audit, metrics, running, clock }
    }

    /// Starts a client to these coordinators.
    pub(crate) fn report_to(&self, addresses: &[&str]) -> Reporting {
        self.report_as(options(addresses))
    }

    pub(crate) fn report_as(&self, options: Options) -> Reporting {
        Reporting::of(Client::new(self.side.clone(), options).expect("addresses"))
    }

    pub(crate) async fn operator(&self, cluster: &str) -> Operator {
        let options = OperatorOptions::new(cluster);
        Operator::connect(&self.addr, &Security::Plaintext, options).await.expect("a session")
    }

    /// Reports so far, by outcome.
    pub(crate) fn outcomes(&self, outcome: &str) -> u64 {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let series = format!("coordinator_reports_total{{outcome=\"{outcome}\"}} ");
        let value = text.lines().find_map(|line| line.split_once(&*series)).expect("begins at 0").1;
        value.parse().expect("a number")
    }

    /// Values of the domains assigned.
    pub(crate) fn domains(&self) -> Vec<String> {
        self.side.domains().into_iter().map(|domain| domain.value).collect()
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.clock.abort();
    }
}

pub(crate) fn options(addresses: &[&str]) -> Options {
    Options {
        advertise_addr: "shard-7.test:7780".to_owned(),
        provider_addr: "provider.test:7777".to_owned(),
        ..Options::new(addresses.iter().map(|&address| address.to_owned()).collect())
    }
}

/// A client at work.
pub(crate) struct Reporting {
    stop: Shutdown,
    task: JoinHandle<()>,
}

impl Reporting {
    pub(crate) fn of(client: Client) -> Self {
        let stop = Shutdown::new();
        let task = tokio::spawn(supervise(client, stop.clone()));
        Self { stop, task }
    }

    pub(crate) async fn stop(self) {
        self.stop.request();
        self.task.await.expect("it ends in order");
    }

    /// In the middle of whatever it does.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

pub(crate) async fn coordinator() -> Coordinator {
    let coordinator = Coordinator::start(&Security::Plaintext).await.expect("loopback");
    coordinator.set_fleet(FLEET);
    coordinator
}

pub(crate) async fn next(coordinator: &Coordinator) -> ShardReport {
    coordinator.next_report(PATIENCE).await.expect("a report")
}

/// Waits until a coordinator has so many reports.
pub(crate) async fn reported(coordinator: &Coordinator, count: usize) -> Vec<ShardReport> {
    let enough = |reports: &[ShardReport]| reports.len() >= count;
    coordinator.wait_for("reports", enough, PATIENCE).await.expect("reports");
    coordinator.reports()
}

pub(crate) fn mtls(material: &Material) -> Security {
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).expect("material");
    Security::Mtls(Arc::new(tls))
}

/// Assigns a zone.
pub(crate) fn assign(id: &str, term: i64, zone: &str) -> CoordinatorInstruction {
    let (topology_key, topology_value) = ("zone".to_owned(), zone.to_owned());
    instruct(id, term, Some(Payload::AssignDomain(AssignDomain { topology_key, topology_value })))
}

pub(crate) fn instruct(id: &str, term: i64, payload: Option<Payload>) -> CoordinatorInstruction {
    CoordinatorInstruction {
        coordinator_term: term,
        sequence_number: 1,
        instruction_id: id.to_owned(),
        payload,
    }
}

/// What a report says to an instruction.
pub(crate) fn ack_of(report: &ShardReport, id: &str) -> Option<InstructAck> {
    report.instruction_acks.iter().find(|ack| ack.instruction_id == id).cloned()
}

pub(crate) fn answer(term: i64, instructions: Vec<CoordinatorInstruction>) -> ReportAck {
    ReportAck {
        coordinator_term: term,
        acknowledged: true,
        instructions,
        fleet_id: FLEET.to_owned(),
        ..ReportAck::default()
    }
}
