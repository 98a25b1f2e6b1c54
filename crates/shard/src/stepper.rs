//! A shard without timers and without a network: whoever holds it says when the
//! provider is read and when it decides. For measurements.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_engine::ActionKind;
use bigfleet_model::{ClusterId, MachineId};
use bigfleet_net::readiness::Readiness;
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use tokio::task::JoinSet;

use crate::{
    actuation::{self, Actuation},
    audit::Audit,
    cycle::Cycle,
    execute,
    fence::Fence,
    hints::Hints,
    metrics::{Metrics, Phase},
    options::Options,
    reconcile::Reader,
    session::{RollUpAnswer, SessionOptions, Sessions},
    shard::{Parts, Shard},
    supply::Supply,
};

/// Why there is no shard to step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Decisions cannot be remembered.
    #[error("the audit ring: {0}")]
    Audit(#[from] io::Error),
    /// The brake.
    #[error(transparent)]
    Actuation(#[from] actuation::Error),
}

/// What one cycle took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Merging what the provider told.
    pub reconcile: Duration,
    /// Giving the engine what changed.
    pub take_in: Duration,
    /// The three phases.
    pub decide: Duration,
    /// Renewing stamps, rails, queue.
    pub enqueue: Duration,
    /// What others may see of it.
    pub publish: Duration,
    /// All of it.
    pub whole: Duration,
    /// Actions decided.
    pub actions: usize,
    /// Actions handed to the workers.
    pub enqueued: usize,
    /// Everything was decided anew, as every hundredth cycle does.
    pub full_pass: bool,
}

/// A shard that takes one step at a time.
pub struct Stepper {
    shard: Arc<Shard>,
    cycle: Cycle,
    reader: Reader,
    /// Workers end with it.
    _workers: JoinSet<()>,
}

impl Stepper {
    /// With its workers on the runtime of the caller, and nothing else.
    pub fn new(options: Options, supply: Arc<dyn Supply>) -> Result<Self, Error> {
        let metrics = Arc::new(Metrics::default());
        let audit = Arc::new(Audit::open(1, None, &metrics)?);
        let forced = options.actuation.clone();
        let actuation = Arc::new(Actuation::open(None, forced, audit.clone(), &metrics)?);
        let concurrency = options.execute_concurrency.max(1);
        let readiness = Readiness::new("the provider has not been listed yet");
        let shard = Arc::new(Shard::new(Parts {
            options,
            epoch: 1,
            supply,
            shared: None,
            sessions: Sessions::new(SessionOptions::default()),
            fence: Fence::new(readiness, &metrics),
            actuation,
            audit,
            metrics,
        }));
        let mut workers: JoinSet<_> =
            (0..concurrency).map(|_| execute::work(shard.clone())).collect();
        let (hints, crier) = Hints::new();
        workers.spawn(crier.run(shard.clone()));
        let cycle = Cycle::new(hints);
        Ok(Self { shard, cycle, reader: Reader::default(), _workers: workers })
    }

    /// Reads the provider and leaves out what is known, as the reconciler does beside
    /// the cycle.
    pub async fn read(&mut self, incremental: bool) {
        self.reader.list(&self.shard, incremental).await;
    }

    /// One cycle: merges what was read, decides, hands out.
    pub async fn step(&mut self) -> Step {
        let began = Instant::now();
        let enqueued = self.cycle.run(&self.shard).await;
        let whole = began.elapsed();
        let of = |wanted: &[Phase]| -> Duration {
            let laps = self.cycle.laps.iter().filter(|(phase, _)| wanted.contains(phase));
            laps.map(|(_, took)| *took).sum()
        };
        let told: Duration = self.cycle.laps.iter().map(|(_, took)| *took).sum();
        let engine = &self.shard.decider.read().await.engine;
        Step {
            reconcile: of(&[Phase::Reconcile]),
            take_in: of(&[Phase::Snapread]),
            decide: of(&[Phase::Phase1, Phase::Phase2, Phase::Phase3]),
            enqueue: of(&[Phase::Emit, Phase::Execute]),
            publish: whole.saturating_sub(told),
            whole,
            actions: engine.counts().sum(),
            enqueued,
            full_pass: engine.was_full_pass(),
        }
    }

    /// A cluster's whole demand; whether it counts from the next step on.
    pub fn roll_up(&self, cluster: &ClusterId, message: ClusterCapacityNeeds) -> bool {
        let wall = self.shard.clock.wall();
        let answer = self.shard.needs.ingest(cluster, message, wall, 0, &|| true);
        answer == RollUpAnswer::Accepted
    }

    /// Waits until the workers have done what was handed to them.
    pub async fn settle(&self) {
        while self.shard.queue.depth() + self.shard.queue.running() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Machines that the last step takes from their clusters. No operator is there to
    /// drain them: whoever steps brings about what would come of it.
    pub async fn reclaims(&self) -> Vec<MachineId> {
        let actions = self.shard.decider.read().await.engine.actions();
        let reclaimed = actions.into_iter().filter(|action| {
            matches!(action.kind, ActionKind::Reclaim { .. } | ActionKind::Preempt { .. })
        });
        reclaimed.map(|action| action.machine).collect()
    }

    /// Machines and needs that the engine knows.
    pub async fn size(&self) -> (usize, usize) {
        let decider = self.shard.decider.read().await;
        (decider.engine.machines(), decider.engine.needs())
    }

    /// A linear read of the records that a cycle reads: the unit of ratios.
    pub async fn scan(&self) -> u64 {
        self.shard.decider.read().await.engine.scan()
    }
}
