//! What a cycle decides from (engine chapter §3).

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    time::Duration,
};

use bigfleet_model::{ClusterId, Fingerprint, Group, Machine, MachineId, Need};

use crate::action::Action;

/// An instant in nanoseconds of any one clock that all times of a cycle share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// How long ago `earlier` was; nothing if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Later by `duration`; the last instant if that does not fit.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// One cycle's picture. The order of lists means nothing.
#[derive(Clone, Debug, Default)]
pub struct CycleInput {
    /// Every machine of the shard.
    pub snapshot: Vec<Tracked>,
    /// What all clusters want; each identity once.
    pub demand: Vec<Need>,
    /// Actions queued or executing but not yet visible in machine state.
    pub pending: Vec<Action>,
    /// Clusters that have reported a roll-up to this process, even an empty one.
    pub ready: BTreeSet<ClusterId>,
    /// How long gangs have been hopeless, in cycles.
    pub gang_ages: BTreeMap<GangKey, u32>,
    /// Needs for which no node can be bootstrapped now.
    pub no_acquire: BTreeMap<NeedKey, NoAcquire>,
    /// Machines that cannot be acquired now.
    pub held_back: BTreeMap<MachineId, HeldBack>,
    /// Weights of the victim score.
    pub phase2: Phase2Options,
    /// When idle machines are given back.
    pub release: ReleasePolicy,
    /// Read once.
    pub now: Time,
}

/// A machine with what only this process knows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// The machine.
    pub machine: Machine,
    /// When it last became idle.
    pub idle_since: Option<Time>,
    /// Its drain, if it is draining and this process began it.
    pub drain: Option<Drain>,
}

/// A drain under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// When the workload must be gone.
    pub deadline: Option<Time>,
    /// Priority of the need it drains for; none for a reclaim.
    pub preemptor_priority: Option<i32>,
    /// The need it drains for; none for a reclaim.
    pub preemptor: Option<NeedKey>,
}

/// Identity of a need.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NeedKey {
    /// Who asks.
    pub cluster: ClusterId,
    /// What machines must be like.
    pub fingerprint: Fingerprint,
    /// The gang, or empty.
    pub group: Group,
}

impl NeedKey {
    /// Of a need.
    pub fn of(need: &Need) -> Self {
        Self {
            cluster: need.cluster.clone(),
            fingerprint: need.profile.fingerprint().clone(),
            group: need.group.clone(),
        }
    }
}

/// Identity of a gang, in the order in which ages are printed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GangKey {
    /// Whose gang.
    pub cluster: ClusterId,
    /// Which gang.
    pub group: Group,
    /// Its profile.
    pub fingerprint: Fingerprint,
}

/// Why a need may not acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAcquire {
    /// Its cluster has no session.
    NoSession,
    /// Its operator refused to give a bootstrap blob.
    BootstrapRefused,
}

/// Why a machine may not be acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// Its provider fails on it.
    ProviderFailing,
    /// A quota is used up.
    Quota,
}

/// Weights of the victim score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase2Options {
    /// Of the priority gap.
    pub weight_priority: f64,
    /// Of a quick drain.
    pub weight_drain: f64,
    /// Of a low interruption penalty.
    pub weight_interruption: f64,
    /// Of a low reclamation penalty.
    pub weight_reclamation: f64,
    /// How long a drain is expected to take, in seconds.
    pub estimated_drain_seconds: f64,
}

impl Default for Phase2Options {
    fn default() -> Self {
        Self {
            weight_priority: 1.0,
            weight_drain: 0.1,
            weight_interruption: 0.1,
            weight_reclamation: 0.1,
            estimated_drain_seconds: 30.0,
        }
    }
}

/// How long idle machines are kept; zero keeps them for ever. There is no field
/// for owned hardware, so no setting can delete it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasePolicy {
    /// On-demand machines.
    pub on_demand: Duration,
    /// Spot machines.
    pub spot: Duration,
}

impl Default for ReleasePolicy {
    fn default() -> Self {
        Self { on_demand: Duration::from_secs(600), spot: Duration::from_secs(60) }
    }
}

/// Brings needs of one identity together (engine chapter §1.6).
pub fn merge(needs: Vec<Need>) -> Vec<Need> {
    let mut by_key: BTreeMap<NeedKey, Need> = BTreeMap::new();
    for need in needs {
        match by_key.entry(NeedKey::of(&need)) {
            Entry::Occupied(mut known) => known.get_mut().absorb(&need),
            Entry::Vacant(place) => drop(place.insert(need)),
        }
    }
    by_key.into_values().collect()
}
