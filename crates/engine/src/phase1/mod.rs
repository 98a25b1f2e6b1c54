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
mod outgrown;
mod share;
mod spread;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    handle::{ClusterIx, GroupIx, PoolIx, PreparedIx},
    world::{Constraint, Looked, Precedence, Prepared, Turn, Unit, World},
};

pub(crate) use credit::Reach;
pub(crate) use domain::Judged;
pub(crate) use outgrown::in_keep_order;
pub(crate) use share::{coverage, load};
pub(crate) use spread::Spread;

/// Memory that is used again every cycle.
#[derive(Default)]
pub(crate) struct Scratch {
    heads: Vec<credit::Head>,
    ranked: Vec<acquire::Ranked>,
    buckets: domain::Buckets,
    order: Vec<u32>,
    wanting: Vec<Wanting>,
    /// Clusters in which needs of the present tier and a pool found nothing free,
    /// and how many claims had ended there by then.
    dry: HashMap<(ClusterIx, PoolIx, Reach), u32, FixedState>,
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

/// A need that its first credit left short, with what tells whether there is
/// anything left for it: where supply is out, needs are many.
struct Wanting {
    need: PreparedIx,
    cluster: ClusterIx,
    pool: PoolIx,
    constraint: Constraint,
}

/// Forgets what the last cycle came to.
fn start_over(row: &mut Prepared) {
    row.was_parked = row.is_parked();
    row.domain = None;
    row.satisfiable = false;
    row.rule = 0;
    row.spread_stopped = false;
    row.looked = Looked::AtItsOwn;
    row.plan_stands = false;
    row.settled = false;
    row.short = None;
    row.folded_into = None;
}

/// Decides what is queued. Returns what was decided, in no order that means
/// anything.
pub(crate) fn assign(
    world: &mut World,
    scratch: &mut Scratch,
    mut decided: Vec<PreparedIx>,
) -> Vec<PreparedIx> {
    decided.clear();
    world.outgrown.clear();
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
            let live = self.world.is_live(unit);
            match unit {
                Unit::Need(need) => {
                    let row = &mut self.world.needs[need];
                    row.queued = false;
                    if live {
                        start_over(row);
                    }
                }
                Unit::Gangs(gangs) => self.world.gangs[gangs].queued = false,
            }
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
        self.world.view += 1;
        self.scratch.dry.clear();
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
        let outgrown = self.world.outgrown.len();
        for &need in &needs {
            self.keep_outgrown(need);
        }
        let mut wanting = std::mem::take(&mut self.scratch.wanting);
        wanting.clear();
        wanting.extend(folds.iter().chain(&needs).filter_map(|need| self.wanting(*need)));
        for one in &wanting {
            let cluster = &self.world.names.clusters[one.cluster];
            if cluster.open.is_empty() && one.constraint != Constraint::Spread {
                continue;
            }
            if self.world.needs[one.need].is_homeless() {
                self.choose_domain(one.need, Reach::All);
            }
            self.credit(one.need, Reach::All);
        }
        // C: everybody acquires.
        self.world.view += 1;
        let mut as_planned = true;
        for one in &wanting {
            let planned = one.constraint <= Constraint::Same;
            if planned || !self.world.is_exhausted(one.pool) {
                self.acquire(one.need, &mut as_planned);
            }
        }
        self.scratch.wanting = wanting;
        for &need in others {
            if self.world.needs[need].constraint == Constraint::Plain {
                break;
            }
            self.balance(need);
        }
        self.let_outgrown_go(outgrown);
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

    /// A need that may still take something.
    fn wanting(&self, need: PreparedIx) -> Option<Wanting> {
        let row = &self.world.needs[need];
        let wants = (!row.is_covered() || row.is_homeless()) && !row.is_quiet();
        wants.then_some(Wanting {
            need,
            cluster: row.cluster,
            pool: row.pool,
            constraint: row.constraint,
        })
    }

    /// After the last tier each held need still short is credited with what nobody
    /// in its cluster claimed (§4.3): surplus that serves it stays.
    fn credit_held(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        self.world.view += 1;
        self.scratch.dry.clear();
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
        let accounts = &self.world.names.accounts;
        self.own_accounts(need, |account| claimed += accounts[account].claimed as usize);
        claimed
    }

    /// Who saw nothing but its own machines need not be asked again.
    fn settle(&mut self) {
        for &need in &self.decided {
            // What another took today may be its own again tomorrow.
            let robbed = self.owned_claims(need) != self.world.needs[need].credits.len();
            let row = &mut self.world.needs[need];
            row.tidy = row.looked != Looked::Borrowed && !robbed && row.gangs.is_none();
            // One that was parked will not be in the next cycle.
            let moving =
                row.looked != Looked::AtItsOwn || !row.picks.is_empty() || row.was_parked || robbed;
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
            let fold_settled = row.folded.is_empty() || fold.settled;
            if fold_settled && row.members.iter().all(settled) {
                let (cluster, tier) = (fold.cluster, self.world.precedence(row.fold));
                self.world.gangs[gangs].settled = true;
                self.world.names.clusters[cluster].begin_rest(tier);
            }
        }
    }
}
