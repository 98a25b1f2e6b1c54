//! A need as the phases see it: one that its cluster sent, or a fold of several.

use bigfleet_model::Totals;

use super::{Few, profile::Constraint};
use crate::{
    handle::{
        AccountIx, ClusterIx, DomainIx, GroupIx, KeyIx, MachineIx, PoolIx, PreparedIx, ProfileIx,
        RunIx, StampIx,
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

/// How far a need looked in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Nothing but its own machines mattered.
    AtItsOwn,
    /// Supply that it shares with others mattered: next cycle it may come out
    /// differently.
    Around,
    /// So, and it may count on machines that are not its own.
    Borrowed,
}

/// A need through the cycle, and what it came to in the last one. Three cache
/// lines: what every need is asked, what it wants and has, and which machines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Prepared {
    pub(crate) constraint: Constraint,
    pub(crate) held: Option<NoAcquire>,
    /// Rule that decided the domain; 0 without a contest.
    pub(crate) rule: u8,
    /// Gone; its number is free.
    pub(crate) removed: bool,
    /// Parked in the last cycle: the age has grown since.
    pub(crate) was_parked: bool,
    pub(crate) satisfiable: bool,
    /// `picks` is what it would take if nothing changed since it planned.
    pub(crate) plan_stands: bool,
    /// A hard spread stopped acquisition while candidates remained.
    pub(crate) spread_stopped: bool,
    /// What mattered besides itself.
    pub(crate) looked: Looked,
    /// Nothing but its own machines mattered: until one of them changes, or it
    /// changes itself, it comes out the same.
    pub(crate) settled: bool,
    /// In the last cycle it was credited with its own machines only, and nobody
    /// else with any of them.
    pub(crate) tidy: bool,
    /// Its machines all contribute to whatever it wants: it passes over none.
    pub(crate) even: bool,
    /// It waits for its turn with its own machines claimed.
    pub(crate) kept: bool,
    /// Some of `credits` are no longer claimed.
    pub(crate) has_gaps: bool,
    /// Is among the needs to be decided.
    pub(crate) queued: bool,
    /// Is in the list of needs with machines that are not Configured yet.
    pub(crate) listed_unready: bool,
    pub(crate) cluster: ClusterIx,
    pub(crate) profile: ProfileIx,
    pub(crate) account: AccountIx,
    pub(crate) pool: PoolIx,
    /// The gangs with which it may fold.
    pub(crate) gangs: Option<GroupIx>,
    /// The fold that serves it.
    pub(crate) folded_into: Option<PreparedIx>,
    pub(crate) domain: Option<DomainIx>,
    pub(crate) age: u32,
    pub(crate) arrival: i64,
    /// Number of the roll-up that last named it.
    pub(crate) roll_up: u32,
    /// Number of the stamp that its machines carry, once it is known.
    pub(crate) stamp: Option<StampIx>,

    pub(crate) aggregate: Totals,
    /// Sum of what its machines contribute.
    pub(crate) covered: Totals,

    /// Machines it is credited with.
    pub(crate) credits: Few,
    /// Machines it acquires.
    pub(crate) picks: Vec<Pick>,
    /// Fingerprint and group.
    pub(crate) key: KeyIx,
    /// How many of its machines are not Configured yet.
    pub(crate) unready: u32,
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
#[derive(Clone, Debug)]
pub(crate) struct GangRow {
    pub(crate) members: Vec<PreparedIx>,
    /// The need that they fold into.
    pub(crate) fold: PreparedIx,
    /// Those of them that did, in serving order.
    pub(crate) folded: Vec<PreparedIx>,
    pub(crate) settled: bool,
    pub(crate) queued: bool,
}

/// Whether a contribution lowers some positive dimension of a residual.
pub(crate) fn lowers(residual: &Totals, contribution: &Totals) -> bool {
    residual.meets(contribution)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_need_takes_three_cache_lines() {
        assert_eq!(size_of::<super::Prepared>(), 192);
    }
}
