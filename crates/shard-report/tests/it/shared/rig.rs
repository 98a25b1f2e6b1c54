//! Shards that share one provider, each with a coordinator of the test's.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use bigfleet_model::{MachineState, machine::ZONE_LABEL};
use bigfleet_net::{readiness::Readiness, tls::Security};
use bigfleet_provider::{
    Identity, Stamped,
    fake::{Fake, FakeOptions, Offer, PerKind},
    protocol::FencePolicy,
};
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    coordinator::Coordinator,
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::{
    Options as ShardOptions, Running, Setup, Sharing, Supply,
    holdings::{Holdings, file},
    metrics::Metrics,
    start,
};
use bigfleet_wire::v1alpha1::{
    Assignment, CapacityNeed, DomainAssignment, ShardReport, TransferMachine,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::{net::TcpListener, time::Instant};

use crate::rig::{PATIENCE, Reporting, coordinator};

/// Machines in two zones, on a provider that refuses older epochs.
pub(crate) fn provider() -> Fake {
    let takes = Duration::from_secs(5);
    let fake = Fake::new(FakeOptions {
        latency: PerKind::all(takes),
        fence: FencePolicy { strict_epoch: true, ..FencePolicy::default() },
        ..FakeOptions::default()
    });
    for zone in ["a", "b"] {
        for number in 0..4 {
            fake.add_idle(&format!("idle-{zone}{number}"), &offer(zone)).expect("an offer");
            fake.add_speculative(&format!("slot-{zone}{number}"), &offer(zone)).expect("an offer");
        }
    }
    fake
}

pub(crate) fn offer(zone: &str) -> Offer {
    let resources = [("cpu", "4"), ("memory", "16Gi")];
    let region = ("topology.kubernetes.io/region".to_owned(), "r".to_owned());
    Offer {
        instance_type: "t".to_owned(),
        zone: zone.to_owned(),
        labels: [region].into(),
        resources: resources.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into(),
        allocatable: Default::default(),
        capacity_type: bigfleet_model::CapacityType::OnDemand,
        price_per_hour: 1.0,
        interruption_probability: 0.0,
    }
}

/// Demand of so many whole machines.
pub(crate) fn machines(cluster: &str, count: usize) -> Vec<CapacityNeed> {
    let mut cluster = Cluster::new(cluster, 0);
    cluster.deploy(&Shape::new(4_000, 16 << 30), count);
    cluster.roll_up().needs
}

pub(crate) fn zone(value: &str) -> DomainAssignment {
    DomainAssignment {
        topology_key: ZONE_LABEL.to_owned(),
        topology_value: value.to_owned(),
        shard_id: String::new(),
    }
}

pub(crate) fn assignment(version: i64, zones: &[&str], clusters: &[&str]) -> Assignment {
    Assignment {
        version,
        digest: 1_000 + u64::try_from(version).expect("positive"),
        domains: zones.iter().map(|value| zone(value)).collect(),
        clusters: clusters.iter().map(|&cluster| cluster.to_owned()).collect(),
        ..Assignment::default()
    }
}

pub(crate) fn loan(transfer: &str, machine: &str, home: &str) -> TransferMachine {
    TransferMachine {
        transfer_id: transfer.to_owned(),
        machine_id: machine.to_owned(),
        home: Some(zone(home)),
    }
}

/// One shard.
pub(crate) struct Sharer {
    pub(crate) id: String,
    pub(crate) fake: Fake,
    pub(crate) addr: String,
    pub(crate) coordinator: Coordinator,
    pub(crate) readiness: Readiness,
    metrics: Arc<Metrics>,
    pub(crate) running: Running,
    reporting: Reporting,
    clock: tokio::task::JoinHandle<()>,
}

impl Sharer {
    pub(crate) async fn start(fake: &Fake, id: &str) -> Self {
        Self::resume(fake, id, 1, None).await
    }

    /// The process of this epoch, which goes on with a file.
    pub(crate) async fn resume(fake: &Fake, id: &str, epoch: i64, file: Option<PathBuf>) -> Self {
        let coordinator = coordinator().await;
        Self::led_by(coordinator, fake, id, epoch, file).await
    }

    pub(crate) async fn led_by(
        coordinator: Coordinator,
        fake: &Fake,
        id: &str,
        epoch: i64,
        file: Option<PathBuf>,
    ) -> Self {
        let usual = ShardOptions::default();
        Self::tuned(usual, coordinator, fake, id, epoch, file).await
    }

    /// With other flags.
    pub(crate) async fn tuned(
        options: ShardOptions,
        coordinator: Coordinator,
        fake: &Fake,
        id: &str,
        epoch: i64,
        file: Option<PathBuf>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let addr = listener.local_addr().expect("bound").to_string();
        let supply = |epoch| -> Arc<dyn Supply> {
            Arc::new(Stamped::new(fake.clone(), Identity::new(id, epoch)))
        };
        let options = ShardOptions { id: id.to_owned(), shared_provider: true, ..options };
        let setup = Setup::in_memory(options, epoch, supply(epoch), listener).expect("opens");
        let (metrics, readiness) = (setup.metrics.clone(), setup.readiness.clone());
        let read = |path: &PathBuf| file::read(path).expect("its own file");
        let holdings = file.as_ref().map_or_else(Holdings::default, read);
        let sharing = Sharing { file, holdings, predecessor: supply(epoch - 1) };
        let running = start(Setup { shared: Some(sharing), ..setup });
        let client = bigfleet_shard_report::Client::new(
            running.report_side(),
            crate::rig::options(&[coordinator.addr()]),
        );
        let reporting = Reporting::of(client.expect("addresses"));
        let ticking = fake.clone();
        let clock = tokio::spawn(async move { ticking.run().await });
        let (id, fake) = (id.to_owned(), fake.clone());
        Self { id, fake, addr, coordinator, readiness, metrics, running, reporting, clock }
    }

    /// Whoever is ours now.
    pub(crate) fn holdings(&self) -> Arc<Holdings> {
        self.running.report_side().shared().expect("it shares").holdings()
    }

    /// Gives it something, and waits until it has it.
    pub(crate) async fn assign(&self, assignment: Assignment) {
        let version = assignment.version;
        self.coordinator.assign(assignment);
        let has = |reports: &[ShardReport]| {
            reports.last().is_some_and(|last| last.assignment_version >= version)
        };
        self.coordinator.wait_for("the assignment", has, PATIENCE).await.expect("taken");
    }

    pub(crate) async fn last_report(&self) -> ShardReport {
        self.coordinator.next_report(PATIENCE).await.expect("a report")
    }

    pub(crate) async fn operator(&self, cluster: &str) -> Operator {
        let options = OperatorOptions::new(cluster);
        Operator::connect(&self.addr, &Security::Plaintext, options).await.expect("a session")
    }

    /// A metric of this shard, by the whole series.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        value.expect("exported").trim().parse().expect("a number")
    }

    /// Machines that this shard made calls for, but for the announcement of its epoch.
    pub(crate) fn touched(&self) -> BTreeSet<String> {
        touched(&self.fake, &self.id)
    }

    pub(crate) async fn stop(self) {
        self.reporting.stop().await;
        self.running.stop().await;
        self.clock.abort();
    }

    /// In the middle of whatever it does.
    pub(crate) fn kill(self) -> Coordinator {
        self.reporting.kill();
        drop(self.running);
        self.clock.abort();
        self.coordinator
    }
}

/// Machines for which a shard made calls that its provider did not refuse as old.
pub(crate) fn touched(fake: &Fake, shard: &str) -> BTreeSet<String> {
    let calls = fake.calls().into_iter().filter(|call| {
        call.token.as_ref().is_some_and(|token| &*token.shard_id == shard)
            && !call.machine.starts_with("epoch")
    });
    calls.map(|call| call.machine).collect()
}

/// Lets time pass until something is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(7_200);
    while !so() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub(crate) fn configured(fake: &Fake, cluster: &str) -> Vec<String> {
    let ids = ["a", "b"].into_iter().flat_map(|zone| {
        (0..4).flat_map(move |n| [format!("idle-{zone}{n}"), format!("slot-{zone}{n}")])
    });
    let bound = |id: &String| {
        fake.machine(id).is_some_and(|machine| {
            machine.state == MachineState::Configured && machine.cluster.as_deref() == Some(cluster)
        })
    };
    ids.filter(bound).collect()
}
