//! A shard with its peers, all on one runtime whose clock jumps when everybody
//! waits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_model::{CapacityType, MachineState};
use bigfleet_net::tls::Security;
use bigfleet_provider::{
    fake::{Fake, FakeOptions, LoggedCall, Method, Offer, PerKind, Seed},
    protocol::Kind,
};
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::{Options, Running, Setup, metrics::Metrics, start};
use bigfleet_wire::v1alpha1::CapacityNeed;
use tokio::{net::TcpListener, time::Instant};

use crate::watched::{Knobs, Watched};

/// A shard and its provider.
pub(crate) struct Rig {
    pub(crate) fake: Fake,
    watched: Watched,
    pub(crate) addr: String,
    pub(crate) metrics: Arc<Metrics>,
    running: Running,
    clock: tokio::task::JoinHandle<()>,
}

/// The asynchronous provider: every call takes its time.
pub(crate) fn slow() -> FakeOptions {
    let latency = PerKind {
        create: Duration::from_secs(40),
        configure: Duration::from_secs(20),
        drain: Duration::from_secs(15),
        delete: Duration::from_secs(10),
    };
    FakeOptions { latency, ..FakeOptions::default() }
}

impl Rig {
    pub(crate) async fn start(options: Options, fake: FakeOptions, seed: &Seed) -> Self {
        let fake = Fake::new(fake);
        fake.seed(seed).expect("the catalogue passes the gate");
        Self::over(options, fake, 1).await
    }

    /// A shard on a provider that is there already.
    pub(crate) async fn over(options: Options, fake: Fake, epoch: i64) -> Self {
        let watched = Watched::new(fake.clone(), epoch);
        Self::on(options, fake, watched, epoch, Security::Plaintext).await
    }

    /// A shard that asks everybody for a certificate.
    pub(crate) async fn secured(options: Options, fake: Fake, security: Security) -> Self {
        let watched = Watched::new(fake.clone(), 1);
        Self::on(options, fake, watched, 1, security).await
    }

    /// A shard whose provider is down.
    pub(crate) async fn blind(options: Options, fake: Fake, epoch: i64) -> Self {
        let watched = Watched::new(fake.clone(), epoch);
        watched.knobs().down = true;
        Self::on(options, fake, watched, epoch, Security::Plaintext).await
    }

    async fn on(
        options: Options,
        fake: Fake,
        watched: Watched,
        epoch: i64,
        security: Security,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let addr = listener.local_addr().expect("bound").to_string();
        let setup = Setup::in_memory(options, epoch, Arc::new(watched.clone()), listener);
        let setup = Setup { security, ..setup.expect("nothing to open") };
        let metrics = setup.metrics.clone();
        let running = start(setup);
        let ticking = fake.clone();
        let clock = tokio::spawn(async move { ticking.run().await });
        Self { fake, watched, addr, metrics, running, clock }
    }

    pub(crate) async fn operator(&self, cluster: &str) -> Operator {
        let options = OperatorOptions::new(cluster);
        Operator::connect(&self.addr, &Security::Plaintext, options).await.expect("a session")
    }

    pub(crate) fn knobs(&self) -> std::sync::MutexGuard<'_, Knobs> {
        self.watched.knobs()
    }

    /// Mutations so far, one a line.
    pub(crate) fn told(&self) -> String {
        let calls = self.fake.calls().into_iter().filter(|call| call.token.is_some());
        let line = |call: LoggedCall| {
            format!("\n  {:?} {:?} {} {:?}", call.at, call.method, call.machine, call.outcome)
        };
        calls.map(line).collect()
    }

    /// Mutations of a kind so far.
    pub(crate) fn calls(&self, kind: Kind) -> Vec<LoggedCall> {
        let calls = self.fake.calls().into_iter();
        calls.filter(|call| call.method == Method::Mutate(kind)).collect()
    }

    pub(crate) fn count(&self, state: MachineState) -> usize {
        self.fake.count(state)
    }

    /// Lets time pass until something is so.
    pub(crate) async fn until(&self, what: &str, mut so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(3600);
        while !so(self) {
            assert!(Instant::now() < deadline, "never: {what}; mutations {}", self.told());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The wall's clock jumps, back or ahead.
    pub(crate) fn skew_wall(&self, by: Duration, back: bool) {
        let nanos = i64::try_from(by.as_nanos()).expect("not for ever");
        self.running.skew_wall(if back { -nanos } else { nanos });
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// The process is killed; the provider goes on.
    pub(crate) async fn kill(self) -> Fake {
        drop(self.running);
        self.clock.abort();
        self.fake
    }

    /// The process ends; the provider goes on.
    pub(crate) async fn stop(self) -> Fake {
        self.running.stop().await;
        self.clock.abort();
        self.fake
    }
}

/// A machine with so many cores.
pub(crate) fn offer(instance_type: &str, zone: &str, cores: u32) -> Offer {
    let resources = [("cpu", cores.to_string()), ("memory", format!("{}Gi", 4 * cores))];
    Offer {
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        labels: BTreeMap::new(),
        resources: resources.map(|(name, amount)| (name.to_owned(), amount)).into(),
        allocatable: BTreeMap::new(),
        capacity_type: CapacityType::OnDemand,
        price_per_hour: f64::from(cores),
        interruption_probability: 0.0,
    }
}

/// What a cluster with so many pods of so many millicores asks for.
pub(crate) fn pods(cluster: &str, pods: usize, cpu_millis: i64) -> Vec<CapacityNeed> {
    pods_of(cluster, pods, &Shape::new(cpu_millis, 1 << 30))
}

/// What a cluster with so many pods of a shape asks for.
pub(crate) fn pods_of(cluster: &str, pods: usize, shape: &Shape) -> Vec<CapacityNeed> {
    let mut cluster = Cluster::new(cluster, 0);
    cluster.deploy(shape, pods);
    cluster.roll_up().needs
}
