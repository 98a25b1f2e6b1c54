//! Any cloud: arbitrary errors, delays, panics, lies about time. Whatever it does,
//! the invariants hold (provider chapter §12). On a paused clock, without a network.

mod cloud;
mod view;

use std::{sync::Arc, time::Duration};

use bigfleet_net::{
    peer::{Peer, Transport},
    readiness::Readiness,
};
use bigfleet_provider_kit::{Config, Kit, MemStore, Service};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, MachineState, TransitionAck,
    capacity_provider_server::CapacityProvider,
};
use tokio::time::sleep;
use tonic::{Code, Request, Status};

use self::{
    cloud::{ChaosCloud, Truth},
    view::View,
};

/// A small generator: the same seed, the same run.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// The seeds of a random test: one if `BIGFLEET_SEED` says so, else the first few, or as
/// many as `BIGFLEET_LONG_SEEDS` asks for.
pub(crate) fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("BIGFLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BIGFLEET_LONG_SEEDS").unwrap_or(few),
    }
}

const MACHINES: u64 = 8;

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let peer = Peer::new(([127, 0, 0, 1], 1).into(), Transport::Plaintext);
    request.extensions_mut().insert(peer);
    request
}

struct World {
    random: Random,
    store: MemStore,
    truth: Arc<Truth>,
    config: Config,
    kit: Kit,
    service: Service,
    view: View,
}

impl World {
    async fn new(seed: u64) -> Self {
        let (store, truth) = (MemStore::new(), Arc::new(Truth::new(seed, MACHINES)));
        let config = Config { provider: "chaos".into(), max_inflight: 6, ..Config::default() };
        let (kit, service) = start(&store, &truth, &config).await;
        let view = View::new(&config);
        Self { random: Random::new(seed ^ 0xc4a0), store, truth, config, kit, service, view }
    }

    /// The store survives, everything else is new.
    async fn restart(mut self) -> Self {
        self.kit.stop().await;
        (self.kit, self.service) = start(&self.store, &self.truth, &self.config).await;
        self.view.restarted();
        self
    }

    async fn call(&mut self) {
        let machine_id = format!("m-{}", self.random.below(MACHINES + 1));
        let shard_id = format!("s-{}", self.random.below(2));
        let shard_epoch = self.random.below(3) as i64;
        let sequence_number = self.random.below(40) as i64;
        let kind = self.random.below(4);
        let answer = match kind {
            0 => {
                let message = CreateRequest {
                    machine_id: machine_id.clone(),
                    shard_id: shard_id.clone(),
                    shard_epoch,
                    sequence_number,
                };
                self.service.create(request(message)).await
            }
            1 => {
                let message = ConfigureRequest {
                    machine_id: machine_id.clone(),
                    cluster_id: format!("c-{}", self.random.below(2)),
                    bootstrap_blob: vec![1, 2, 3],
                    shard_id: shard_id.clone(),
                    shard_epoch,
                    sequence_number,
                    shard_metadata: [("at".to_owned(), sequence_number.to_string())].into(),
                };
                self.service.configure(request(message)).await
            }
            2 => {
                let message = DrainRequest {
                    machine_id: machine_id.clone(),
                    grace_period_seconds: self.random.below(1800) as i64,
                    shard_id: shard_id.clone(),
                    shard_epoch,
                    sequence_number,
                };
                self.service.drain(request(message)).await
            }
            _ => {
                let message = DeleteRequest {
                    machine_id: machine_id.clone(),
                    shard_id: shard_id.clone(),
                    shard_epoch,
                    sequence_number,
                };
                self.service.delete(request(message)).await
            }
        };
        let answer: Result<TransitionAck, Status> = answer.map(tonic::Response::into_inner);
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        self.view.called(&machine_id, &shard_id, (shard_epoch, sequence_number), code);
        if let Ok(ack) = &answer {
            self.view.acknowledged(kind, ack);
        }
    }

    async fn look(&mut self) {
        self.view.look(&self.service, &self.truth).await;
    }
}

async fn start(store: &MemStore, truth: &Arc<Truth>, config: &Config) -> (Kit, Service) {
    let cloud = ChaosCloud(truth.clone());
    let readiness = Readiness::new("starting");
    let kit = Kit::start(cloud, Arc::new(store.clone()), config.clone(), readiness).await.unwrap();
    let service = kit.service();
    (kit, service)
}

/// Invariants 1, 2, 4, 5, 6, 7 and 8 along the way, 2 and 3 at the end; together 9.
#[tokio::test(start_paused = true)]
async fn provider_inv_09_any_cloud_keeps_the_invariants() {
    break_a_rule();
    std::panic::set_hook(Box::new(|info| {
        // The cloud panics by the hundred; a failed check must be seen.
        if !info.to_string().contains("chaos on purpose") {
            eprintln!("{info}");
        }
    }));
    for seed in seeds(40) {
        println!("seed {seed}");
        let mut world = World::new(seed).await;
        for step in 0..300 {
            world.call().await;
            if world.random.below(3) == 0 {
                let pause = world.random.below(100);
                sleep(Duration::from_millis(pause * pause * 9)).await;
            }
            world.look().await;
            if step % 100 == 99 {
                world = world.restart().await;
                world.look().await;
            }
        }
        world.truth.be_sane();
        // Every transition and every repair, with its retries, has ended by then.
        for _ in 0..120 {
            sleep(Duration::from_secs(150)).await;
            world.look().await;
        }
        let machines = world.view.machines().cloned().collect::<Vec<_>>();
        for machine in &machines {
            assert!(
                matches!(
                    machine.state(),
                    MachineState::Speculative | MachineState::Idle | MachineState::Configured
                ),
                "seed {seed}: {machine:?} never came to rest"
            );
            let held = world.truth.hosts(&machine.id);
            let known: Vec<_> = machine.host.iter().map(|host| host.r#ref.clone()).collect();
            assert_eq!(held, known, "seed {seed}: {}", machine.id);
        }
        world.kit.stop().await;
    }
}

/// In a child process: a mutant is a whole broken provider.
#[cfg(feature = "mutants")]
const MUTANT: &str = "BIGFLEET_TEST_MUTANT";

#[cfg(feature = "mutants")]
fn break_a_rule() {
    use bigfleet_provider::mutant::{Mutant, set};
    let name = std::env::var(MUTANT).unwrap_or_default();
    set(Mutant::ALL.iter().copied().find(|mutant| mutant.name() == name));
}

#[cfg(not(feature = "mutants"))]
fn break_a_rule() {}

/// The invariants above can fail: each of these defects is noticed.
#[cfg(feature = "mutants")]
#[test]
fn each_defect_is_noticed_under_chaos() {
    use bigfleet_provider::mutant::Mutant;
    for (mutant, invariant) in [
        (Mutant::FenceAcceptsEqual, "invariant 1"),
        (Mutant::PositionIsFenced, "invariant 1"),
        (Mutant::HostAtSpeculative, "invariant 4"),
        (Mutant::FailedWithoutText, "invariant 4"),
        (Mutant::TimeoutNeverFires, "invariant 5"),
        (Mutant::MetadataKept, "invariant"),
        (Mutant::DeltaMissesOne, "invariant 7"),
        (Mutant::ConfiguredBeforeReady, "invariant 8"),
        (Mutant::RepairOff, "never came to rest"),
    ] {
        let test = "chaos::provider_inv_09_any_cloud_keeps_the_invariants";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(MUTANT, mutant.name())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{} was not noticed", mutant.name());
        assert!(text.contains(invariant), "{}: {text}", mutant.name());
    }
}
