//! What a shard wants: the real engine, on the machines that its process sees.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_engine::{
    ActionKind, CycleInput, Engine, Ledger, Phase2Options, ReleasePolicy, Time, Tracked,
};
use bigfleet_model::{ClusterId, Fingerprint, MachineId, MachineState, Need, gate};
use bigfleet_wire::v1alpha1 as wire;

use crate::{Act, World};

/// What a process remembers between two cycles, and no longer than it lives.
#[derive(Debug, Default)]
pub struct Mind {
    idle_since: BTreeMap<MachineId, Time>,
    /// For how many cycles something has been lacking.
    ages: BTreeMap<Fingerprint, i32>,
}

/// Demand of so many machines for a cluster.
fn need(cluster: &ClusterId, machines: usize) -> Result<Need, String> {
    let cpu = |amount: usize| [("cpu".to_owned(), amount.to_string())].into();
    let message = wire::CapacityNeed {
        priority: 5,
        interruption_penalty_bucket: wire::PenaltyBucket::PenaltyBucket8.into(),
        aggregate_resources: cpu(4 * machines),
        min_unit: cpu(4),
        ..wire::CapacityNeed::default()
    };
    gate::demand::need(cluster, 0, message).map_err(|refusal| refusal.to_string())
}

impl Mind {
    /// One cycle of a shard, with demand by cluster: what it does, and what it lacks goes
    /// into its next report.
    pub fn cycle(
        &mut self,
        world: &mut World,
        shard: usize,
        wanted: &BTreeMap<ClusterId, usize>,
    ) -> Result<Vec<(MachineId, Act)>, String> {
        let now = Time(i64::try_from(world.now.as_nanos()).unwrap_or(i64::MAX));
        let one = &mut world.shards[shard];
        let Some(process) = &one.process else { return Ok(Vec::new()) };
        let mut snapshot = Vec::new();
        for (id, entry) in &process.desk {
            let idle = entry.record.state == MachineState::Idle;
            let idle_since = idle.then(|| *self.idle_since.entry(id.clone()).or_insert(now));
            let machine = entry.record.clone();
            snapshot.push(Tracked { machine, idle_since, drain: None });
        }
        let idle: BTreeSet<&MachineId> = snapshot
            .iter()
            .filter(|tracked| tracked.idle_since.is_some())
            .map(|tracked| &tracked.machine.id)
            .collect();
        self.idle_since.retain(|id, _| idle.contains(id));
        let held = one.holdings.held().map(|held| held.clusters.clone()).unwrap_or_default();
        let ready: BTreeSet<ClusterId> =
            held.into_iter().filter(|cluster| one.operators.contains(cluster)).collect();
        let mut demand = Vec::new();
        for cluster in &ready {
            let machines = wanted.get(cluster).copied().unwrap_or_default();
            if machines > 0 {
                demand.push(need(cluster, machines)?);
            }
        }
        let input = CycleInput {
            snapshot,
            demand,
            pending: Vec::new(),
            ready,
            gang_ages: BTreeMap::new(),
            no_acquire: BTreeMap::new(),
            held_back: BTreeMap::new(),
            phase2: Phase2Options::default(),
            // Sooner than usual: there is more to do in an hour.
            release: ReleasePolicy { on_demand: Duration::from_secs(40), ..Default::default() },
            now,
        };
        let mut engine = Engine::load(&input);
        engine.cycle(now);
        one.lacks = self.lacks(&engine);
        let acts = engine.output().actions.into_iter().map(|action| {
            let act = match action.kind {
                ActionKind::Bootstrap(bound) => Act::Configure(bound.cluster, bound.stamp),
                ActionKind::Provision(bound) => Act::Create(Some(bound.stamp)),
                ActionKind::Preempt { .. } | ActionKind::Reclaim { .. } => Act::Drain,
                ActionKind::Delete => Act::Delete,
            };
            (action.machine, act)
        });
        Ok(acts.collect())
    }

    fn lacks(&mut self, engine: &Engine) -> Vec<wire::Shortfall> {
        let mut ledger = Ledger::default();
        ledger.update(engine);
        let before = std::mem::take(&mut self.ages);
        let shortages = ledger.reported();
        let shortfall = |shortage: &bigfleet_engine::Shortage| {
            let fingerprint = shortage.profile.fingerprint().clone();
            let age = before.get(&fingerprint).copied().unwrap_or_default() + 1;
            self.ages.insert(fingerprint, age);
            let reported = bigfleet_shard_report::shortfall(shortage);
            wire::Shortfall { age_cycles: age, ..reported }
        };
        shortages.iter().map(shortfall).collect()
    }
}
