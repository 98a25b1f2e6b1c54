//! Acquisition (§6.4): before every pick the candidates are ranked anew, by what
//! a share of the need costs on them.

use std::cmp::{Ordering, Reverse};

use bigfleet_model::{Totals, cost::effective_cost};

use super::{
    Phase1, Spread,
    share::{load, worst_billionths, worst_share},
};
use crate::{
    handle::{PoolIx, PreparedIx, RunIx},
    world::{Constraint, Pick, RankRow, RunKind, World, lowers},
};

/// Runs that rank alike, as they stand for one pick.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// Place among the pool's ranks.
    rank: u32,
    kind: RunKind,
    share: f64,
    cost_per_share: f64,
    unasked_scarce: usize,
    /// Order among owned machines, which cost nothing; equal for all others.
    fit: Fit,
    cost: f64,
    price: f64,
    /// Label of the next machine, and place of its run.
    label: u64,
    run: usize,
    /// Can still serve: a residual only shrinks, and runs only empty.
    alive: bool,
}

/// Machines that cover the rest alone come first, the tightest before; then the
/// others, the larger share before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Alone(i128),
    Partly(Reverse<i128>),
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
            .then_with(|| self.label.cmp(&other.label))
    }

    fn judge(&mut self, contribution: &Totals, residual: &Totals) {
        self.share = worst_share(contribution, residual);
        self.cost_per_share =
            if self.share == 0.0 { f64::INFINITY } else { self.cost / self.share };
        // Only what costs nothing is compared by its fit.
        self.fit = if self.cost_per_share != 0.0 {
            Fit::Alone(0)
        } else if contribution.covers(residual) {
            Fit::Alone(load(contribution, residual))
        } else {
            Fit::Partly(Reverse(worst_billionths(contribution, residual)))
        };
    }
}

impl World {
    /// Label of the next machine of a run that is neither claimed nor planned for.
    fn head_label(&mut self, run: RunIx) -> u64 {
        let row = &self.runs[run];
        let at = if row.view == self.view { row.cursor } else { row.next };
        let at = self.unclaimed_from(run, at);
        let view = self.view;
        let row = &mut self.runs[run];
        if row.view != view {
            row.view = view;
            row.next = at;
            row.planned = 0;
        }
        row.cursor = at;
        let member = row.members.get(at as usize);
        member.map_or(u64::MAX, |machine| self.machines.rows[*machine].label)
    }

    /// Whether nothing acquirable is left for a pool's needs in the present view.
    pub(super) fn is_exhausted(&self, pool: PoolIx) -> bool {
        self.pools[pool].exhausted == Some((self.view, self.returns))
    }

    /// How many machines of a run are neither claimed nor planned for.
    pub(super) fn left(&self, run: RunIx) -> usize {
        let row = &self.runs[run];
        let planned = if row.view == self.view { row.planned } else { 0 };
        row.members.len() - (row.claimed + planned) as usize
    }
}

impl Phase1<'_> {
    /// Picks until the need is covered or nothing is left, then trims. The picks
    /// are not claimed: in this view nobody else sees them.
    pub(super) fn plan(&mut self, need: PreparedIx) {
        let row = &mut self.world.needs[need];
        let mut picks = std::mem::take(&mut row.picks);
        picks.clear();
        if row.is_covered() {
            row.picks = picks;
            row.plan_stands = true;
            return;
        }
        let pool = row.pool;
        if self.world.is_exhausted(pool) {
            let row = &mut self.world.needs[need];
            row.picks = picks;
            row.plan_stands = true;
            return;
        }
        let row = &self.world.needs[need];
        let mut residual = row.residual();
        let spread = (row.constraint == Constraint::Spread).then(|| Spread::over(self.world, need));
        let topology =
            self.world.pools[pool].key.topology.map(|topology| self.world.topologies.row(topology));
        self.world.pools[pool].rank(&self.world.classes, topology);
        let mut ranks = std::mem::take(&mut self.world.pools[pool].ranks);
        let mut ranked = std::mem::take(&mut self.scratch.ranked);
        ranked.clear();
        self.rank(need, &mut ranks, &mut ranked);
        // In one view supply only shrinks, but for what plans give back.
        if ranked.len() == ranks.len() && ranked.iter().all(|one| !one.alive) {
            self.world.pools[pool].exhausted = Some((self.world.view, self.world.returns));
        }
        let mut plan = Plan { need, picks, spread, stopped: false };
        let skew_before = plan.spread.as_ref().map_or(0, Spread::skew);
        while !residual.is_zero() {
            if !self.pick(&mut plan, &mut residual, &mut ranks, &mut ranked) {
                break;
            }
        }
        if residual.is_zero() && plan.picks.len() > 1 {
            self.trim(&mut plan, skew_before, &mut ranks);
        }
        self.world.pools[pool].ranks = ranks;
        self.scratch.ranked = ranked;
        let row = &mut self.world.needs[need];
        row.spread_stopped = plan.stopped;
        row.picks = plan.picks;
        row.plan_stands = true;
    }

    /// The ranks that the need may take from, with what stays the same for every
    /// pick.
    fn rank(&mut self, need: PreparedIx, ranks: &mut [RankRow], ranked: &mut Vec<Ranked>) {
        let row = &self.world.needs[need];
        let pool = &self.world.pools[row.pool];
        let domain = match (row.constraint, row.domain) {
            (Constraint::Same, Some(domain)) => pool.place(domain),
            _ => None,
        };
        let penalty = self.world.profiles[row.profile].penalty;
        let rank = |at: u32| {
            let class = &self.world.classes[ranks[at as usize].sample];
            let asked =
                |dimension| row.aggregate.get(dimension) > 0 || pool.key.unit.get(dimension) > 0;
            Ranked {
                rank: at,
                kind: ranks[at as usize].kind,
                share: 0.0,
                cost_per_share: 0.0,
                unasked_scarce: class.scarce.iter().filter(|d| !asked(**d)).count(),
                fit: Fit::Alone(0),
                cost: effective_cost(class.price, class.probability, penalty),
                price: class.price,
                label: u64::MAX,
                run: 0,
                alive: true,
            }
        };
        match domain {
            Some(place) => {
                ranked.extend(pool.domains[place as usize].ranks.iter().map(|at| rank(*at)));
            }
            None => ranked.extend((0..ranks.len() as u32).map(rank)),
        }
        for one in ranked {
            self.find_head(one, &mut ranks[one.rank as usize]);
        }
    }

    /// Finds the next machine of a rank.
    fn find_head(&mut self, one: &mut Ranked, rank: &mut RankRow) {
        if rank.view != self.world.view {
            rank.view = self.world.view;
            rank.heads.clear();
            rank.heads.extend(rank.runs.iter().map(|run| self.world.head_label(*run)));
        }
        loop {
            (one.label, one.run) = (u64::MAX, 0);
            for (at, &label) in rank.heads.iter().enumerate() {
                if label < one.label {
                    (one.label, one.run) = (label, at);
                }
            }
            one.alive = one.label != u64::MAX;
            if !one.alive {
                return;
            }
            // Others may have taken it meanwhile.
            let label = self.world.head_label(rank.runs[one.run]);
            if label == one.label {
                return;
            }
            rank.heads[one.run] = label;
        }
    }

    /// One pick; false if there is none.
    fn pick(
        &mut self,
        plan: &mut Plan,
        residual: &mut Totals,
        ranks: &mut [RankRow],
        ranked: &mut [Ranked],
    ) -> bool {
        let (mut first, mut second): (Option<usize>, Option<usize>) = (None, None);
        let mut shut_out = false;
        for at in 0..ranked.len() {
            if !ranked[at].alive {
                continue;
            }
            let rank = &ranks[ranked[at].rank as usize];
            if !lowers(residual, &rank.contribution) {
                ranked[at].alive = false;
                continue;
            }
            if let Some(spread) = &plan.spread {
                let row = &self.world.needs[plan.need];
                if !spread.admits(self.world.domain(row, rank.sample)) {
                    shut_out = true;
                    continue;
                }
            }
            ranked[at].judge(&rank.contribution, residual);
            let before = |other: Option<usize>| {
                other.is_none_or(|other| ranked[at].order(&ranked[other]).is_lt())
            };
            if before(first) {
                (second, first) = (first, Some(at));
            } else if before(second) {
                second = Some(at);
            }
        }
        let Some(first) = first else {
            plan.stopped = shut_out;
            return false;
        };
        let one = &ranked[first];
        let rank = &mut ranks[one.rank as usize];
        let run = rank.runs[one.run];
        // The next class of the same rank costs the same; else the next rank.
        let has_sibling = (0..rank.heads.len()).any(|at| {
            at != one.run && rank.heads[at] != u64::MAX && {
                let label = self.world.head_label(rank.runs[at]);
                rank.heads[at] = label;
                label != u64::MAX
            }
        });
        let next = if has_sibling {
            Some(one.cost_per_share)
        } else {
            second.map(|second| ranked[second].cost_per_share)
        };
        let runner_up = next.map(|cost| cost * one.share).filter(|cost| cost.is_finite());
        let row = &mut self.world.runs[run];
        let (at, class) = (row.cursor, row.class);
        row.cursor += 1;
        row.planned += 1;
        plan.picks.push(Pick {
            machine: row.members[at as usize],
            run,
            at,
            cost: one.cost,
            runner_up,
        });
        residual.sub_sat_assign(&rank.contribution);
        let kind = rank.kind;
        if let Some(spread) = &mut plan.spread {
            spread.add(self.world.domain(&self.world.needs[plan.need], class));
        }
        rank.heads[ranked[first].run] = self.world.head_label(run);
        self.find_head(&mut ranked[first], rank);
        self.recount(class, kind, true);
        true
    }

    /// Drops what the need does not need after all: what is bought first, the
    /// dearest first, as long as the need stays covered and its spread no worse.
    fn trim(&mut self, plan: &mut Plan, skew_before: u32, ranks: &mut [RankRow]) {
        let world = &*self.world;
        let row = &world.needs[plan.need];
        let pool = &world.pools[row.pool];
        let class = |pick: &Pick| world.runs[pick.run].class;
        let sample = class(&plan.picks[0]);
        if plan.spread.is_none() && plan.picks.iter().all(|pick| class(pick) == sample) {
            // The last of equals was needed, so each is.
            return;
        }
        let contribution = |pick: &Pick| pool.contribution(&world.classes[class(pick)].capacity);
        let mut covered = row.covered.clone();
        for pick in &plan.picks {
            covered.add_assign(contribution(pick).as_ref());
        }
        let mut order = std::mem::take(&mut self.scratch.order);
        order.clear();
        order.extend(0..plan.picks.len() as u32);
        order.sort_unstable_by(|&a, &b| {
            let key = |at: u32| {
                let pick = &plan.picks[at as usize];
                let label = world.machines.rows[pick.machine].label;
                (world.runs[pick.run].kind, pick.cost, world.classes[class(pick)].price, label)
            };
            let (a, b) = (key(a), key(b));
            b.0.cmp(&a.0)
                .then_with(|| b.1.total_cmp(&a.1))
                .then_with(|| b.2.total_cmp(&a.2))
                .then_with(|| b.3.cmp(&a.3))
        });
        let mut dropped = Vec::new();
        // What a spread keeps for the sake of balance may be needless once another
        // is gone: again, until nothing more goes.
        loop {
            let before = dropped.len();
            order.retain(|&at| {
                let pick = &plan.picks[at as usize];
                let without = covered.sub_sat(contribution(pick).as_ref());
                if !without.covers(&row.aggregate) {
                    return true;
                }
                let domain = world.domain(row, class(pick));
                if let Some(spread) = &mut plan.spread {
                    spread.remove(domain);
                    if spread.skew() > spread.max_skew().max(skew_before) {
                        spread.add(domain);
                        return true;
                    }
                }
                covered = without;
                dropped.push(at);
                false
            });
            if dropped.len() == before || plan.spread.is_none() {
                break;
            }
        }
        self.scratch.order = order;
        self.put_back(plan, dropped, ranks);
    }

    /// Unplans picks.
    fn put_back(&mut self, plan: &mut Plan, mut dropped: Vec<u32>, ranks: &mut [RankRow]) {
        dropped.sort_unstable();
        self.world.returns = self.world.returns.wrapping_add(u32::from(!dropped.is_empty()));
        for at in dropped.into_iter().rev() {
            let pick = plan.picks.remove(at as usize);
            let (view, row) = (self.world.view, &mut self.world.runs[pick.run]);
            debug_assert_eq!(row.view, view);
            row.cursor = row.cursor.min(pick.at);
            row.planned -= 1;
            let (class, kind) = (row.class, row.kind);
            self.recount(class, kind, false);
            for rank in ranks.iter_mut().filter(|rank| rank.kind == kind && rank.view == view) {
                if let Some(at) = rank.runs.iter().position(|run| *run == pick.run) {
                    rank.heads[at] =
                        rank.heads[at].min(self.world.machines.rows[pick.machine].label);
                }
            }
        }
    }

    /// Plans, unless what was planned still stands, and claims. What folds and
    /// gangs planned before stands as long as all of them take what they planned:
    /// then nobody finds the supply changed.
    pub(super) fn acquire(&mut self, need: PreparedIx, as_planned: &mut bool) {
        let row = &self.world.needs[need];
        let planner = row.constraint <= Constraint::Same;
        if row.is_homeless() || row.is_covered() {
            if !row.picks.is_empty() {
                *as_planned = false;
            }
            self.world.needs[need].picks.clear();
            return;
        }
        if !planner || !*as_planned || !row.plan_stands {
            *as_planned &= !planner;
            self.plan(need);
        }
        let picks = std::mem::take(&mut self.world.needs[need].picks);
        for pick in &picks {
            self.world.claim(pick.machine, need);
            let class = self.world.runs[pick.run].class;
            let pool = &self.world.pools[self.world.needs[need].pool];
            let contribution = pool.contribution(&self.world.classes[class].capacity).into_owned();
            self.world.needs[need].covered.add_assign(&contribution);
        }
        self.world.needs[need].picks = picks;
        self.shed(need);
    }
}

/// What one need is about to take.
struct Plan {
    need: PreparedIx,
    picks: Vec<Pick>,
    spread: Option<Spread>,
    /// The spread stopped it while candidates remained.
    stopped: bool,
}
