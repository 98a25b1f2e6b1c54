//! What a cycle decides (engine chapter §3, §9).

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, Fingerprint, Group, MachineId, Totals};

use crate::{action::Action, input::GangKey};

/// Number of a prepared need: its place among the verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NeedIdx(pub u32);

/// One cycle's decisions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleOutput {
    /// One per prepared need, in the total order of needs.
    pub verdicts: Vec<Verdict>,
    /// Which need counts on which machine.
    pub claims: BTreeMap<MachineId, NeedIdx>,
    /// Which need still runs on which machine that is too small for its unit: counted
    /// for nobody, and kept (§6.5).
    pub outgrown: BTreeMap<MachineId, NeedIdx>,
    /// Phase 1 and 2 by (need, machine), reclaims in release order by cluster,
    /// deletes by machine. At most one per machine.
    pub actions: Vec<Action>,
    /// What is still missing after Phase 2, by need.
    pub unresolved: Vec<Unresolved>,
    /// For the next cycle.
    pub gang_ages: BTreeMap<GangKey, u32>,
}

/// How one prepared need fared.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Who asked.
    pub cluster: ClusterId,
    /// Profile; of a fold, the folded one.
    pub fingerprint: Fingerprint,
    /// Gang; of a fold, the text of its unit.
    pub group: Group,
    /// Total wanted.
    pub aggregate: Totals,
    /// What each machine must hold alone. One unit of a fold may be a gang's sum.
    pub min_unit: Totals,
    /// Number of gangs folded into it; 0 if it is no fold.
    pub folded: u32,
    /// Nothing is missing after Phase 1.
    pub satisfied: bool,
    /// What is missing after Phase 1.
    pub deficit: Totals,
    /// Machines claimed, of any state.
    pub claimed: u32,
    /// Of these newly from Idle.
    pub bootstrap: u32,
    /// Of these newly from Speculative.
    pub provision: u32,
    /// Chosen domain of a gang: values of its keys, by key.
    pub domain: Option<BTreeMap<String, String>>,
    /// That domain could host the whole gang.
    pub satisfiable: bool,
    /// Gone quiet after too many hopeless cycles.
    pub parked: bool,
    /// Some machine, in any state and cluster, is usable for it.
    pub matching_supply_exists: bool,
    /// Hopeless cycles, after this one.
    pub gang_age: u32,
    /// What Phase 1 did for it.
    pub outcome: Outcome,
    /// Why it is unmet.
    pub reason: Option<Reason>,
    /// Finer than the reason.
    pub detail: Option<Detail>,
}

/// What is still missing after Phase 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    /// Which need.
    pub need: NeedIdx,
    /// What is missing.
    pub deficit: Totals,
    /// Phase 2 picked something for it.
    pub preempted: bool,
}

/// What Phase 1 did for a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something is missing.
    Unsatisfied,
    /// Covered without an action.
    AbsorbedBySupply,
    /// Covered, with idle machines bound and nothing bought.
    EmittedIdle,
    /// Covered, with something bought.
    EmittedSpec,
}

/// Why a need is unmet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Others went first.
    PriorityStarved,
    /// No machine of the shard could ever serve it.
    NoMatchingSupply,
    /// No domain can host it, or its spread forbids what is there.
    TopologyUnsatisfiable,
    /// Preemption freed something, but not enough.
    PreemptionExhausted,
}

/// Finer than the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its cluster has no session.
    NoSession,
    /// Its operator refused to give a bootstrap blob.
    BootstrapRefused,
    /// A hard spread stopped it while machines were there.
    SpreadUnsatisfiable,
    /// Machines that would serve are held back: their provider fails.
    ProviderFailing,
    /// Machines that would serve are held back by a quota.
    QuotaExhausted,
    /// What drains covers it.
    PreemptionUnderWay,
}
