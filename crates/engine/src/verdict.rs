//! How the needs fared that were left short, and how long gangs have been
//! hopeless (§4.1, §9).

use bigfleet_model::Totals;

use crate::{
    handle::PreparedIx,
    input::{HeldBack, NoAcquire},
    output::{Detail, Reason},
    phase2::Resolution,
    world::{Constraint, Prepared, World, lowers},
};

/// A need that Phase 1 left short.
#[derive(Clone, Debug)]
pub(crate) struct Shortfall {
    pub(crate) need: PreparedIx,
    /// After Phase 1.
    pub(crate) deficit: Totals,
    /// After Phase 2.
    pub(crate) open: Totals,
    pub(crate) preempted: bool,
    pub(crate) reason: Reason,
    pub(crate) detail: Option<Detail>,
}

impl Shortfall {
    pub(crate) fn of(world: &World, resolution: Resolution) -> Self {
        let Resolution { need, residual, preempted } = resolution;
        let row = &world.needs[need];
        let deficit = row.residual();
        let closed = residual.is_zero();
        let hopeless =
            row.is_parked() || (row.held.is_none() && (!row.satisfiable || row.domain.is_none()));
        let reason = if row.constraint == Constraint::Same && !closed && hopeless {
            Reason::TopologyUnsatisfiable
        } else if !supply_exists(world, row) {
            Reason::NoMatchingSupply
        } else if row.spread_stopped {
            Reason::TopologyUnsatisfiable
        } else if preempted && !closed {
            Reason::PreemptionExhausted
        } else {
            Reason::PriorityStarved
        };
        let detail = detail(world, row, &deficit, closed);
        Self { need, deficit, open: residual, preempted, reason, detail }
    }
}

/// Whether some machine, in any state and cluster, is usable.
pub(crate) fn supply_exists(world: &World, need: &Prepared) -> bool {
    world.pools[need.pool].classes.iter().any(|class| world.classes[*class].machines > 0)
}

fn detail(world: &World, need: &Prepared, deficit: &Totals, closed: bool) -> Option<Detail> {
    match need.held {
        Some(NoAcquire::NoSession) => return Some(Detail::NoSession),
        Some(NoAcquire::BootstrapRefused) => return Some(Detail::BootstrapRefused),
        None => {}
    }
    if need.spread_stopped {
        return Some(Detail::SpreadUnsatisfiable);
    }
    let would_serve = |why: HeldBack| {
        world.withheld > 0
            && world.pools[need.pool].classes.iter().any(|class| {
                let row = &world.classes[*class];
                !world.runs[row.unbound.withheld[why as usize]].members.is_empty()
                && world.usable(need, *class)
                // A machine without the key of a spread is no candidate.
                && (need.constraint != Constraint::Spread || world.domain(need, *class).is_some())
                && lowers(deficit, world.pools[need.pool].contribution(&row.capacity).as_ref())
            })
    };
    if would_serve(HeldBack::ProviderFailing) {
        Some(Detail::ProviderFailing)
    } else if would_serve(HeldBack::Quota) {
        Some(Detail::QuotaExhausted)
    } else if closed {
        Some(Detail::PreemptionUnderWay)
    } else {
        None
    }
}

/// A gang that neither acquires nor could be hosted grows older; its age stands
/// still while it is held.
pub(crate) fn next_age(need: &Prepared, short: Option<&Shortfall>) -> u32 {
    let Some(short) = short.filter(|_| need.constraint == Constraint::Same) else { return 0 };
    if need.held.is_some() {
        need.age
    } else if !need.picks.is_empty() || need.satisfiable || short.open.is_zero() {
        0
    } else {
        need.age.saturating_add(1)
    }
}
