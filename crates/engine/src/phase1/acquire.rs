//! Acquisition (§6.4): before every pick the candidates are ranked anew, by what
//! a share of the need costs on them.

use std::{cmp::Ordering, collections::BTreeMap};

use bigfleet_model::{Totals, cost::effective_cost};

use super::{
    Phase1,
    prepared::{Claim, Constraint, Pick, Prepared, lowers},
    share::{load, worst_billionths, worst_share},
    spread::Spread,
};
use crate::world::{RunKind, World};

/// What is taken from each run, by plans that are not claims yet.
pub(crate) type Used = BTreeMap<usize, usize>;

/// A pick that is not claimed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) run: usize,
    pub(crate) machine: usize,
    pub(crate) cost: f64,
    pub(crate) runner_up: Option<f64>,
}

/// Picks, and whether a spread stopped them while candidates remained.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) picks: Vec<Planned>,
    pub(crate) spread_stopped: bool,
}

impl Plan {
    pub(crate) fn use_up(&self, used: &mut Used) {
        for pick in &self.picks {
            *used.entry(pick.run).or_insert(0) += 1;
        }
    }
}

/// A run as it stands in the ranking for one pick.
struct Ranked {
    run: usize,
    kind: RunKind,
    share: f64,
    cost_per_share: f64,
    unasked_scarce: usize,
    /// Order among owned machines, which cost nothing; equal for all others.
    fit: Fit,
    cost: f64,
    price: f64,
    machine: usize,
}

/// Machines that cover the rest alone come first, the tightest before; then the
/// others, the larger share before.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Alone(i128),
    Partly(std::cmp::Reverse<i128>),
}

impl Ranked {
    fn order(&self, other: &Self) -> Ordering {
        self.kind
            .cmp(&other.kind)
            .then_with(|| self.cost_per_share.total_cmp(&other.cost_per_share))
            .then_with(|| self.unasked_scarce.cmp(&other.unasked_scarce))
            .then_with(|| self.fit.cmp(&other.fit))
            .then_with(|| self.cost.total_cmp(&other.cost))
            .then_with(|| self.price.total_cmp(&other.price))
            .then_with(|| self.machine.cmp(&other.machine))
    }
}

/// Picks until the need is covered or nothing is left, beyond what is `used`,
/// then trims.
pub(crate) fn plan(world: &World<'_>, need: &Prepared, used: &Used) -> Plan {
    let mut residual = need.residual();
    let mut plan = Plan::default();
    let mut spread =
        (need.constraint == Constraint::Spread).then(|| Spread::over(world, need, &[]));
    let skew_before = spread.as_ref().map_or(0, Spread::skew);
    let mut taken = used.clone();
    while !residual.is_zero() {
        let candidates = candidates(world, need, &residual, &taken);
        let admissible: Vec<&Ranked> = candidates
            .iter()
            .filter(|one| {
                let class = world.runs[one.run].class;
                spread.as_ref().is_none_or(|spread| spread.admits(class))
            })
            .collect();
        let Some(first) = admissible.iter().min_by(|a, b| a.order(b)) else {
            plan.spread_stopped = !candidates.is_empty();
            break;
        };
        let second = admissible.iter().filter(|one| one.run != first.run).min_by(|a, b| a.order(b));
        let runner_up = second
            .map(|second| second.cost_per_share * first.share)
            .filter(|cost| cost.is_finite());
        let class = world.runs[first.run].class;
        residual.sub_sat_assign(need.contribution(world.capacity(class)).as_ref());
        if let Some(spread) = &mut spread {
            spread.add(class);
        }
        *taken.entry(first.run).or_insert(0) += 1;
        plan.picks.push(Planned {
            run: first.run,
            machine: first.machine,
            cost: first.cost,
            runner_up,
        });
    }
    if residual.is_zero() {
        trim(world, need, &mut plan.picks, spread, skew_before);
    }
    plan
}

fn candidates(world: &World<'_>, need: &Prepared, residual: &Totals, taken: &Used) -> Vec<Ranked> {
    let profile = world.profiles.row(need.profile);
    let rank = |&number: &usize| {
        let run = &world.runs[number];
        let machine = run.nth_free(&world.members, taken.get(&number).copied().unwrap_or(0))?;
        if !need.usable(world, run.class) {
            return None;
        }
        if need.constraint == Constraint::Spread {
            need.spread_domain(world, run.class)?;
        }
        let class = &world.classes[run.class];
        let contribution = need.contribution(&class.capacity);
        if !lowers(residual, &contribution) {
            return None;
        }
        let share = worst_share(&contribution, residual);
        let cost = effective_cost(class.price, class.probability, profile.penalty);
        let cost_per_share = if share == 0.0 { f64::INFINITY } else { cost / share };
        // Only what costs nothing is compared by its fit.
        let fit = if cost_per_share != 0.0 {
            Fit::Alone(0)
        } else if contribution.covers(residual) {
            Fit::Alone(load(&contribution, residual))
        } else {
            Fit::Partly(std::cmp::Reverse(worst_billionths(&contribution, residual)))
        };
        Some(Ranked {
            run: number,
            kind: run.kind,
            share,
            cost_per_share,
            unasked_scarce: class.unasked_scarce(|dimension| {
                need.aggregate.get(dimension) > 0 || need.unit.get(dimension) > 0
            }),
            fit,
            cost,
            price: class.price,
            machine,
        })
    };
    let runs = profile.classes.iter().flat_map(|class| &world.acquirable_of[*class]);
    runs.filter_map(rank).collect()
}

/// Drops what the need does not need after all: what is bought first, the
/// dearest first, as long as the need stays covered and its spread no worse.
fn trim(
    world: &World<'_>,
    need: &Prepared,
    picks: &mut Vec<Planned>,
    mut spread: Option<Spread>,
    skew_before: u32,
) {
    let contribution =
        |pick: &Planned| need.contribution(world.capacity(world.runs[pick.run].class)).into_owned();
    let mut covered = need.covered.clone();
    for pick in picks.iter() {
        covered.add_assign(&contribution(pick));
    }
    let mut order: Vec<usize> = (0..picks.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |at: usize| {
            let run = &world.runs[picks[at].run];
            (run.kind, picks[at].cost, world.classes[run.class].price, picks[at].machine)
        };
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0)
            .then_with(|| b.1.total_cmp(&a.1))
            .then_with(|| b.2.total_cmp(&a.2))
            .then_with(|| b.3.cmp(&a.3))
    });
    let mut dropped = vec![false; picks.len()];
    for at in order {
        let without = covered.sub_sat(&contribution(&picks[at]));
        if !without.covers(&need.aggregate) {
            continue;
        }
        let class = world.runs[picks[at].run].class;
        if let Some(spread) = &mut spread {
            spread.remove(class);
            if spread.skew() > spread.max_skew().max(skew_before) {
                spread.add(class);
                continue;
            }
        }
        covered = without;
        dropped[at] = true;
    }
    let mut at = 0;
    picks.retain(|_| {
        at += 1;
        !dropped[at - 1]
    });
}

impl Phase1<'_, '_> {
    /// Plans and claims.
    pub(super) fn acquire(&mut self, need: &mut Prepared) {
        let plan = plan(self.world, need, &Used::new());
        need.spread_stopped = plan.spread_stopped;
        for planned in plan.picks {
            let claim: Claim = self.claim(planned.run, 0);
            let class = self.world.runs[planned.run].class;
            need.covered.add_assign(need.contribution(self.world.capacity(class)).as_ref());
            need.picks.push(Pick { claim, cost: planned.cost, runner_up: planned.runner_up });
        }
    }
}
