//! Everybody, and what is on its way between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_coordinator::{rebalance::Settings, state::State};
use bigfleet_model::{MachineId, MachineState};
use bigfleet_wire::v1alpha1 as wire;

use crate::{
    provider::{Answer, Call, Provider},
    shard::Shard,
    tier::{Tier, Unanswered, Working},
};

/// A report on its way, or being worked on.
#[derive(Clone, Debug)]
pub(crate) struct Rpc {
    pub(crate) shard: usize,
    pub(crate) epoch: i64,
    pub(crate) cycle: i64,
    pub(crate) at: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// It has not arrived.
    Asking(Box<wire::ShardReport>),
    /// A leader works on it: the old one, if there is one and this is true.
    Working(bool, Box<Working>),
    /// The answer has not arrived.
    Answering(Result<Box<wire::ReportAck>, Unanswered>),
}

/// A call on its way to the provider, or its answer.
#[derive(Clone, Debug)]
pub(crate) struct Flying {
    pub(crate) shard: usize,
    pub(crate) call: Call,
    pub(crate) sent: Duration,
    /// Its answer, once it has arrived.
    pub(crate) answer: Option<Answer>,
    /// Nobody waits for the answer any more.
    pub(crate) abandoned: bool,
}

/// What is remembered for the invariants alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ghost {
    /// By shard and transfer: what it let go of.
    pub(crate) let_go: BTreeMap<(usize, String), BTreeSet<MachineId>>,
    /// By shard: requirements of what it lacked and what may cross.
    pub(crate) lacked: BTreeMap<usize, BTreeSet<String>>,
    /// Mutations that the provider took, by machine: by whom, how often.
    pub(crate) taken: BTreeMap<MachineId, BTreeMap<usize, u64>>,
    /// Transfers that the real pass began.
    pub(crate) begun: u64,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct World {
    /// Virtual time.
    pub now: Duration,
    /// The one provider.
    pub provider: Provider,
    /// The coordinator.
    pub tier: Tier,
    /// A leader that is deposed and does not know it, or a whole fleet from before a
    /// restore.
    pub old: Option<Tier>,
    /// A backup of the coordinator's.
    pub backup: Option<State>,
    /// All shards.
    pub shards: Vec<Shard>,
    pub(crate) rpcs: Vec<Rpc>,
    pub(crate) calls: Vec<Flying>,
    pub(crate) ghost: Ghost,
    /// There is no clock: whatever is waited for may be over at any time.
    pub(crate) timeless: bool,
}

impl World {
    /// So many shards that have not been started, and a fleet that has just opened.
    #[must_use]
    pub fn new(shards: usize, settings: Settings) -> Self {
        Self {
            now: Duration::ZERO,
            provider: Provider::default(),
            tier: Tier::open(settings),
            old: None,
            backup: None,
            shards: (0..shards).map(|number| Shard::new(&format!("s{number}"))).collect(),
            rpcs: Vec::new(),
            calls: Vec::new(),
            ghost: Ghost::default(),
            timeless: false,
        }
    }

    /// The same without a clock.
    #[must_use]
    pub fn timeless(self) -> Self {
        Self { timeless: true, ..self }
    }

    /// Ids of all machines.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineId> {
        self.provider.machines().map(|machine| machine.id.clone()).collect()
    }

    /// Machines in a state.
    #[must_use]
    pub fn count(&self, state: MachineState) -> usize {
        self.provider.machines().filter(|machine| machine.state == state).count()
    }

    /// By machine: which shards' mutations the provider took, and how many.
    #[must_use]
    pub const fn taken(&self) -> &BTreeMap<MachineId, BTreeMap<usize, u64>> {
        &self.ghost.taken
    }

    /// Calls to the provider that are on their way, there or back.
    #[must_use]
    pub const fn calls_on_the_way(&self) -> usize {
        self.calls.len()
    }

    /// Reports that are on their way, there or back.
    #[must_use]
    pub const fn reports_on_the_way(&self) -> usize {
        self.rpcs.len()
    }

    /// Transfers that rebalancing began.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.ghost.begun
    }
}
