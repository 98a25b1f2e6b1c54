//! A need as the phases see it: one that its cluster sent, or a fold of several.

use std::borrow::Cow;

use bigfleet_model::Totals;

use crate::{
    input::NoAcquire,
    world::{DomainId, Key, RunKind, World},
};

/// One machine that a need counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) run: usize,
    /// Place in the run.
    pub(crate) place: usize,
    pub(crate) machine: usize,
}

/// What was paid attention to when a machine was picked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) claim: Claim,
    /// Effective cost for the need.
    pub(crate) cost: f64,
    pub(crate) runner_up: Option<f64>,
}

/// How constrained a need is; the most constrained go first (§6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Constraint {
    Folded,
    Same,
    Spread,
    #[default]
    Plain,
}

/// Working state of a need through the cycle.
#[derive(Default)]
pub(crate) struct Prepared {
    /// Needs as sent: one, or the members of a fold in their order.
    pub(crate) members: Vec<usize>,
    pub(crate) constraint: Constraint,
    /// Its turn among the needs of its constraint: folds in the order in which
    /// they were planned, so that none takes what another counted on.
    pub(crate) turn: usize,
    pub(crate) cluster: usize,
    pub(crate) profile: usize,
    /// Its own identity; none for a fold whose identity nothing carries yet.
    pub(crate) identity: Option<Key>,
    /// Stamps that make a machine its own: of a fold also those of its members.
    pub(crate) own: Vec<Key>,
    /// Text of a fold's unit; empty if it is no fold.
    pub(crate) fold_group: String,
    pub(crate) arrival: i64,
    pub(crate) aggregate: Totals,
    /// Each machine must hold it alone.
    pub(crate) unit: Totals,
    pub(crate) parked: bool,
    pub(crate) held: Option<NoAcquire>,
    pub(crate) domain: Option<DomainId>,
    pub(crate) satisfiable: bool,
    /// Rule that decided the domain; 0 without a contest.
    pub(crate) rule: u8,
    /// Sum of what its machines contribute.
    pub(crate) covered: Totals,
    /// Credited machines.
    pub(crate) credits: Vec<Claim>,
    /// Acquired machines.
    pub(crate) picks: Vec<Pick>,
    /// A hard spread stopped acquisition while candidates remained.
    pub(crate) spread_stopped: bool,
}

impl Prepared {
    pub(crate) fn is_quiet(&self) -> bool {
        self.parked || self.held.is_some()
    }

    /// A gang that found no domain: it has nowhere to look for machines.
    pub(crate) fn is_homeless(&self) -> bool {
        self.constraint == Constraint::Same && self.domain.is_none()
    }

    pub(crate) fn is_fold(&self) -> bool {
        self.constraint == Constraint::Folded
    }

    pub(crate) fn residual(&self) -> Totals {
        self.aggregate.sub_sat(&self.covered)
    }

    /// What one machine of a class adds: all it has, or as many whole units as a
    /// fold's machine holds (§4.2).
    pub(crate) fn contribution<'c>(&self, capacity: &'c Totals) -> Cow<'c, Totals> {
        if !self.is_fold() {
            return Cow::Borrowed(capacity);
        }
        let whole = |(dimension, unit): (_, i128)| capacity.get(dimension) / unit;
        let units = self.unit.iter().map(whole).min().unwrap_or(0);
        Cow::Owned(self.unit.scale(u64::try_from(units).unwrap_or(u64::MAX)))
    }

    /// Requirements hold and the unit fits; a gang looks only into its domain.
    pub(crate) fn usable(&self, world: &World<'_>, class: usize) -> bool {
        let profile = world.profiles.row(self.profile);
        profile.matches[class]
            && world.capacity(class).covers(&self.unit)
            && (self.constraint != Constraint::Same
                || self.domain.is_none()
                || profile.same[class] == self.domain)
    }

    /// Domain of a class under the spread that this need must keep.
    pub(crate) fn spread_domain(&self, world: &World<'_>, class: usize) -> Option<DomainId> {
        world.profiles.row(self.profile).spread[class]
    }

    /// Every machine it counts on.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.credits.iter().copied().chain(self.picks.iter().map(|pick| pick.claim))
    }

    /// Picks that come from runs of a kind.
    pub(crate) fn picked(&self, world: &World<'_>, kind: RunKind) -> usize {
        self.picks.iter().filter(|pick| world.runs[pick.claim.run].kind == kind).count()
    }
}

/// Whether a contribution lowers some positive dimension of a residual.
pub(crate) fn lowers(residual: &Totals, contribution: &Totals) -> bool {
    residual.iter().any(|(dimension, _)| contribution.get(dimension) > 0)
}
