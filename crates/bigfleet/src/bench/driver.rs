//! What the scenarios drive: machines and roll-ups in, decisions out, one cycle
//! after the other. The only file that knows how the engine is called.

use std::time::{Duration, Instant};

use bigfleet_engine::{
    Action, ActionCounts, Engine, Phase, Phase2Options, ReleasePolicy, Time, Tracked,
};
use bigfleet_model::{ClusterId, Need};

use super::{progress::Building, provider::completed};

/// Time between two cycles of a shard.
const INTERVAL: Duration = Duration::from_secs(5);

/// What a cycle may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Everything, as in the first cycle.
    Full,
    /// What changed, where the engine can tell.
    Incremental,
}

/// What Phases 1, 2 and 3 took; none where the engine does not tell them apart.
pub(super) type Phases = [Option<Duration>; 3];

/// An engine with its world.
pub(super) struct Driver {
    engine: Engine,
    now: Time,
    building: Option<Building>,
    /// The last cycle was a full pass that nobody asked for.
    full_by_rule: bool,
}

impl Driver {
    /// With an engine that may use so many threads. It is sequential.
    pub(super) fn new(_threads: u32) -> Self {
        let engine = Engine::new(Phase2Options::default(), ReleasePolicy::default());
        Self { engine, now: Time::default(), building: None, full_by_rule: false }
    }

    /// Shows how many machines it has.
    pub(super) fn shown(self, building: Building) -> Self {
        Self { building: Some(building), ..self }
    }

    /// How many threads a cycle really uses.
    pub(super) const fn threads(&self) -> u32 {
        1
    }

    /// A machine appears or changes.
    pub(super) fn upsert(&mut self, tracked: &Tracked) {
        self.engine.upsert(tracked);
        if let Some(building) = &self.building {
            building.has(self.engine.machines());
        }
    }

    /// As a shard takes in what changed between two cycles.
    pub(super) fn upsert_all(&mut self, machines: &[Tracked]) {
        let seen: Vec<_> = machines.iter().map(|tracked| (tracked, None)).collect();
        self.engine.upsert_all(&seen);
    }

    /// A roll-up: the cluster wants this, each identity once, and nothing else.
    pub(super) fn replace(&mut self, cluster: &ClusterId, needs: &[Need]) {
        self.engine.replace(cluster, needs);
    }

    /// Panics unless the world holds so many machines and distinct needs: a
    /// silently rejected or merged seed would make the numbers meaningless.
    pub(super) fn assert_counts(&mut self, machines: usize, needs: usize) {
        assert_eq!(self.machines(), machines, "machines of the scenario");
        assert_eq!(self.needs(), needs, "needs of the scenario");
    }

    pub(super) fn machines(&self) -> usize {
        self.engine.machines()
    }

    pub(super) fn needs(&self) -> usize {
        self.engine.needs()
    }

    /// Whether gangs that fit a machine fold.
    pub(super) fn set_folding(&mut self, folding: bool) {
        self.engine.set_folding(folding);
    }

    /// Puts what changed in its place, as a cycle does before it decides.
    pub(super) fn prepare(&mut self) {
        self.engine.prepare();
    }

    /// Decides one cycle and tells what its phases took.
    pub(super) fn cycle(&mut self, pass: Pass) -> Phases {
        self.building = None;
        if pass == Pass::Full {
            self.engine.question_everything();
        }
        let mut phases = Phases::default();
        let mut since = Instant::now();
        self.engine.cycle_observed(self.now, &mut |phase| {
            let at = match phase {
                Phase::Prepared => None,
                Phase::Phase1 => Some(0),
                Phase::Phase2 => Some(1),
                Phase::Phase3 => Some(2),
            };
            let now = Instant::now();
            if let Some(at) = at {
                phases[at] = Some(now - since);
            }
            since = now;
        });
        self.full_by_rule = pass == Pass::Incremental && self.engine.was_full_pass();
        phases
    }

    /// Whether a full pass came since this was last asked that nobody asked for, but
    /// the rule that every hundredth cycle is one (engine chapter §11).
    pub(super) fn had_full_pass_by_rule(&mut self) -> bool {
        std::mem::take(&mut self.full_by_rule)
    }

    /// Renews stamps from claims (engine chapter §1.7).
    pub(super) fn restamp(&mut self) {
        self.engine.restamp();
    }

    /// The machines of the last decision as an instant provider leaves them. The
    /// clock moves on by one interval.
    pub(super) fn completions(&mut self) -> Vec<Tracked> {
        self.now = self.now.after(INTERVAL);
        let complete = |action: &Action| {
            let tracked = self.engine.tracked(&action.machine)?;
            Some(completed(tracked, &action.kind, self.now))
        };
        self.engine.actions().iter().filter_map(complete).collect()
    }

    pub(super) fn actions(&self) -> Vec<Action> {
        self.engine.actions()
    }

    pub(super) fn counts(&self) -> ActionCounts {
        self.engine.counts()
    }

    /// Needs that the last decision left short.
    pub(super) fn short(&self) -> usize {
        self.engine.short()
    }

    /// A linear read of the records that a cycle reads: the unit of ratios.
    pub(super) fn scan(&self) -> u64 {
        self.engine.scan()
    }
}
