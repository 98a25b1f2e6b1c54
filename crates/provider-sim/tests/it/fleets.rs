//! Clouds for tests, and calls of them without a kit.

use std::path::Path;

use bigfleet_provider_kit::{Cloud, Machine, MachineState, Op, ShapeCheck, protocol::OperationId};
use bigfleet_provider_sim::{Config, Sim, config::CloudConfig};
use tokio::time::{Duration, Instant};

/// One cloud `a` in zones `z1` and `z2` with 4 spot and 4 on-demand slots and 2 idle
/// machines of metal; `more` is added to its document.
pub(crate) fn config(more: &str) -> Config {
    let text = format!(
        "
clouds:
  - name: a
    regions: [{{name: r, zones: [{{name: z1}}, {{name: z2}}]}}]
    tiers:
      - {{name: spot, type: m8, capacity: SPOT, price: 0.12, probability: 0.3, count: 4,
         resources: {{cpu: 8, memory: 32Gi}}}}
      - {{name: od, type: m8, capacity: ON_DEMAND, price: 0.38, probability: 0.3, count: 4,
         resources: {{cpu: 8, memory: 32Gi}}}}
      - {{name: metal, type: x8, capacity: BARE_METAL, count: 2, state: IDLE,
         resources: {{cpu: 8, memory: 32Gi}}}}
{more}"
    );
    Config::parse(&text).unwrap()
}

/// `a` alone, in memory.
pub(crate) fn sim(more: &str) -> Sim {
    open(&config(more).clouds[0], 0)
}

pub(crate) fn open(cloud: &CloudConfig, seed: u64) -> Sim {
    Sim::open(cloud.clone(), seed, Path::new("")).unwrap()
}

/// Five minutes from now.
pub(crate) fn op(id: &str) -> Op {
    Op {
        id: OperationId::parse(id).unwrap(),
        deadline: Instant::now() + Duration::from_secs(300),
        cancelled: Default::default(),
        attempt: 1,
    }
}

/// As the kit would pass it.
pub(crate) async fn machine(sim: &Sim, id: &str) -> Machine {
    let offers = sim.describe().await.unwrap();
    let offer = offers.iter().find(|offer| offer.id == id).unwrap();
    ShapeCheck::new("sim").machine(offer).unwrap()
}

pub(crate) async fn failed(sim: &Sim, id: &str) -> Machine {
    Machine { state: MachineState::Failed, ..machine(sim, id).await }
}
