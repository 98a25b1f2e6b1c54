//! Phase 1: assignment (§6). One pass over tiers from the highest to the lowest.
//! Claims are exclusive and take whole machines.
//!
//! Only what is queued is decided. A need that its own machines cover is settled:
//! whatever happens elsewhere, it comes out the same until it, one of them, or a
//! higher need that takes one of them changes. All others look at supply that they
//! share, so they are decided again every cycle, in the same order as in a pass
//! over everything.

mod acquire;
mod credit;
mod domain;
mod fold;
mod keep;
mod share;
mod spread;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::{
    handle::{GroupIx, PreparedIx},
    world::{Constraint, Precedence, Turn, Unit, World},
};

pub(crate) use credit::Reach;
pub(crate) use domain::Judged;
pub(crate) use share::{coverage, load};
pub(crate) use spread::Spread;

/// Memory that is used again every cycle.
#[derive(Default)]
pub(crate) struct Scratch {
    heads: Vec<credit::Head>,
    ranked: Vec<acquire::Ranked>,
    buckets: Vec<domain::Bucket>,
    order: Vec<u32>,
    pub(crate) turns: Vec<Turn>,
    merge: BinaryHeap<Reverse<(u64, usize)>>,
}

pub(crate) struct Phase1<'w> {
    pub(crate) world: &'w mut World,
    scratch: &'w mut Scratch,
    /// What is still to be decided, the highest tier last.
    tiers: BTreeMap<Precedence, Vec<Unit>>,
    /// Everything that was decided.
    decided: Vec<PreparedIx>,
    /// Gangs that were decided.
    gangs: Vec<GroupIx>,
    /// Held needs that are still short.
    held: Vec<PreparedIx>,
    /// Every tier has been served: what is claimed stays claimed.
    all_served: bool,
}

/// Decides what is queued. Returns what was decided, in no order that means
/// anything.
pub(crate) fn assign(
    world: &mut World,
    scratch: &mut Scratch,
    mut decided: Vec<PreparedIx>,
) -> Vec<PreparedIx> {
    decided.clear();
    let mut phase = Phase1 {
        world,
        scratch,
        tiers: BTreeMap::new(),
        decided,
        gangs: Vec::new(),
        held: Vec::new(),
        all_served: false,
    };
    phase.take_queue();
    while let Some((_, units)) = phase.tiers.pop_last() {
        phase.serve_tier(&units);
    }
    phase.credit_held();
    phase.settle();
    phase.decided
}

impl Phase1<'_> {
    /// Sorts what is queued, now or meanwhile, into tiers.
    fn take_queue(&mut self) {
        while let Some(unit) = self.world.queue.pop() {
            let live = match unit {
                Unit::Need(need) => {
                    let row = &mut self.world.needs[need];
                    row.queued = false;
                    !row.removed && row.gangs.is_none()
                }
                Unit::Gangs(gangs) => {
                    let row = &mut self.world.gangs[gangs];
                    row.queued = false;
                    !row.members.is_empty()
                }
            };
            if live {
                let tier = self.world.tier(unit);
                self.tiers.entry(tier).or_default().push(unit);
            }
        }
    }

    fn serve_tier(&mut self, units: &[Unit]) {
        let (mut groups, mut needs) = (Vec::new(), Vec::new());
        for unit in units {
            match unit {
                Unit::Need(need) => needs.push(*need),
                Unit::Gangs(gangs) => groups.push(*gangs),
            }
        }
        for need in &needs {
            self.start_over(*need);
        }
        self.world.view += 1;
        // A: folded classes, then gangs, credit bound supply.
        let folds = self.fold(&groups);
        for gangs in &groups {
            let members = &self.world.gangs[*gangs].members;
            let unfolded =
                members.iter().filter(|member| self.world.needs[**member].folded_into.is_none());
            needs.extend(unfolded);
        }
        let world = &*self.world;
        world.sort_by_turn(&mut needs, &mut self.scratch.turns, |row| row.constraint as u64);
        let same = needs.partition_point(|need| world.needs[*need].constraint == Constraint::Same);
        let (gangs, others) = needs.split_at(same);
        for &need in gangs {
            let reach = Reach::at_first(self.world.needs[need].is_quiet());
            self.choose_domain(need, reach);
            if self.world.needs[need].is_homeless() {
                continue;
            }
            self.credit(need, reach);
            if !self.world.needs[need].is_quiet() {
                self.plan(need);
            }
        }
        // B: spread and plain needs credit, then everybody takes what is left.
        for &need in others {
            self.credit(need, Reach::at_first(self.world.needs[need].is_quiet()));
        }
        let active = |world: &World, need: &PreparedIx| !world.needs[*need].is_quiet();
        for &need in folds.iter().chain(&needs) {
            if active(self.world, &need) {
                if self.world.needs[need].is_homeless() {
                    self.choose_domain(need, Reach::All);
                }
                self.credit(need, Reach::All);
            }
        }
        // C: everybody acquires.
        self.world.view += 1;
        let mut as_planned = true;
        for &need in folds.iter().chain(&needs) {
            if active(self.world, &need) {
                self.acquire(need, &mut as_planned);
            } else {
                self.world.needs[need].picks.clear();
            }
        }
        for &need in &needs {
            self.balance(need);
        }
        let held = |need: &PreparedIx| {
            let row = &self.world.needs[*need];
            row.held.is_some() && !row.is_parked() && !row.is_covered()
        };
        self.held.extend(folds.iter().chain(&needs).filter(|need| held(need)));
        self.decided.extend(folds.iter().chain(&needs));
        self.gangs.extend(groups);
        // Whoever lost a machine to this tier is decided again in its own.
        self.take_queue();
    }

    /// Forgets what the last cycle came to.
    fn start_over(&mut self, need: PreparedIx) {
        let row = &mut self.world.needs[need];
        row.was_parked = row.is_parked();
        row.domain = None;
        row.satisfiable = false;
        row.rule = 0;
        row.spread_stopped = false;
        row.looked_around = false;
        row.plan_stands = false;
        row.settled = false;
        row.short = None;
        row.folded_into = None;
    }

    /// After the last tier each held need still short is credited with what nobody
    /// in its cluster claimed (§4.3): surplus that serves it stays.
    fn credit_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        self.world.view += 1;
        self.all_served = true;
        let world = &*self.world;
        world.sort_by_order(&mut held, &mut self.scratch.turns);
        for need in held {
            if self.world.needs[need].is_homeless() {
                self.choose_domain(need, Reach::All);
            }
            self.credit(need, Reach::All);
        }
    }

    /// How many of the machines that carry its stamp are claimed, by whomever.
    fn owned_claims(&self, need: PreparedIx) -> usize {
        let mut claimed = 0;
        self.own_accounts(need, |account| {
            let runs = &self.world.names.accounts[account].runs;
            claimed += runs.iter().map(|run| self.world.runs[*run].claimed as usize).sum::<usize>();
        });
        claimed
    }

    /// Who saw nothing but its own machines need not be asked again.
    fn settle(&mut self) {
        for &need in &self.decided {
            // What another took today may be its own again tomorrow.
            let robbed = self.owned_claims(need) != self.world.needs[need].credits.len();
            let row = &mut self.world.needs[need];
            row.tidy = !row.looked_around && !robbed && row.gangs.is_none();
            // One that was parked will not be in the next cycle.
            let moving = row.looked_around || !row.picks.is_empty() || row.was_parked || robbed;
            row.settled = row.is_covered() && !moving;
            if row.settled && row.gangs.is_none() {
                let (cluster, tier) = (row.cluster, self.world.profiles[row.profile].precedence);
                self.world.names.clusters[cluster].begin_rest(tier);
            }
        }
        for &gangs in &self.gangs {
            let row = &self.world.gangs[gangs];
            let settled = |need: &PreparedIx| {
                let row = &self.world.needs[*need];
                row.folded_into.is_some() || row.settled
            };
            let fold = &self.world.needs[row.fold];
            let fold_settled = fold.members.is_empty() || fold.settled;
            if fold_settled && row.members.iter().all(settled) {
                let (cluster, tier) = (fold.cluster, self.world.precedence(row.fold));
                self.world.gangs[gangs].settled = true;
                self.world.names.clusters[cluster].begin_rest(tier);
            }
        }
    }
}
