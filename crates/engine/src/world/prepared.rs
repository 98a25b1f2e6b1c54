//! A need as the phases see it: one that its cluster sent, or a fold of several.

use bigfleet_model::{Group, Totals};

use super::profile::Constraint;
use crate::{
    handle::{
        AccountIx, ClusterIx, DomainIx, GroupIx, MachineIx, PoolIx, PreparedIx, ProfileIx, RunIx,
    },
    input::NoAcquire,
};

/// What was paid attention to when a machine was picked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) machine: MachineIx,
    pub(crate) run: RunIx,
    /// Place in the run.
    pub(crate) at: u32,
    /// Effective cost for the need.
    pub(crate) cost: f64,
    pub(crate) runner_up: Option<f64>,
}

/// A need through the cycle, and what it came to in the last one.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) constraint: Constraint,
    pub(crate) cluster: ClusterIx,
    pub(crate) profile: ProfileIx,
    pub(crate) account: AccountIx,
    pub(crate) pool: PoolIx,
    /// The gangs with which it may fold.
    pub(crate) gangs: Option<GroupIx>,
    pub(crate) group: Group,
    pub(crate) arrival: i64,
    pub(crate) aggregate: Totals,
    pub(crate) age: u32,
    pub(crate) held: Option<NoAcquire>,
    /// The fold that serves it.
    pub(crate) folded_into: Option<PreparedIx>,
    /// Of a fold, in serving order; empty if it does not stand.
    pub(crate) members: Vec<PreparedIx>,
    /// Gone; its number is free.
    pub(crate) removed: bool,
    /// Number of the roll-up that last named it.
    pub(crate) roll_up: u32,

    /// Parked in the last cycle: the age has grown since.
    pub(crate) was_parked: bool,
    pub(crate) domain: Option<DomainIx>,
    pub(crate) satisfiable: bool,
    /// Rule that decided the domain; 0 without a contest.
    pub(crate) rule: u8,
    /// Sum of what its machines contribute.
    pub(crate) covered: Totals,
    /// Machines it is credited with.
    pub(crate) credits: Vec<MachineIx>,
    /// Machines it acquires.
    pub(crate) picks: Vec<Pick>,
    /// `picks` is what it would take if nothing changed since it planned.
    pub(crate) plan_stands: bool,
    /// A hard spread stopped acquisition while candidates remained.
    pub(crate) spread_stopped: bool,
    /// Supply that it shares with others mattered: next cycle it may come out
    /// differently.
    pub(crate) looked_around: bool,
    /// Nothing but its own machines mattered: until one of them changes, or it
    /// changes itself, it comes out the same.
    pub(crate) settled: bool,
    /// Is among the needs to be decided.
    pub(crate) queued: bool,
    /// How many of its machines are not Configured yet.
    pub(crate) unready: u32,
    /// Is in the list of needs with such machines.
    pub(crate) listed_unready: bool,
    /// Row of the last cycle's shortfalls, if it was left short.
    pub(crate) short: Option<u32>,
}

impl Prepared {
    /// Gone quiet after too many hopeless cycles, but for a probe now and then
    /// (§4.1). Only gangs have an age.
    pub(crate) fn is_parked(&self) -> bool {
        const PARK_AFTER: u32 = 8;
        const PROBE_EVERY: u32 = 32;
        self.age >= PARK_AFTER && !self.age.is_multiple_of(PROBE_EVERY)
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.is_parked() || self.held.is_some()
    }

    /// A gang that found no domain: it has nowhere to look for machines.
    pub(crate) fn is_homeless(&self) -> bool {
        self.constraint == Constraint::Same && self.domain.is_none()
    }

    pub(crate) fn is_fold(&self) -> bool {
        self.constraint == Constraint::Folded
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.covered.covers(&self.aggregate)
    }

    pub(crate) fn residual(&self) -> Totals {
        self.aggregate.sub_sat(&self.covered)
    }

    /// Every machine it counts on.
    pub(crate) fn claims(&self) -> impl Iterator<Item = MachineIx> + '_ {
        self.credits.iter().copied().chain(self.picks.iter().map(|pick| pick.machine))
    }
}

/// Gangs of one tier, cluster, folded profile and aggregate.
#[derive(Debug)]
pub(crate) struct GangRow {
    pub(crate) members: Vec<PreparedIx>,
    /// The need that they fold into.
    pub(crate) fold: PreparedIx,
    pub(crate) settled: bool,
    pub(crate) queued: bool,
}

/// Whether a contribution lowers some positive dimension of a residual.
pub(crate) fn lowers(residual: &Totals, contribution: &Totals) -> bool {
    residual.iter().any(|(dimension, _)| contribution.get(dimension) > 0)
}
