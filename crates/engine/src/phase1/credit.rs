//! Credit of bound supply (§6.1): what is bound counts, own machines first.

use std::cmp::Reverse;

use bigfleet_model::Totals;

use super::{Phase1, Spread};
use crate::{
    handle::{AccountIx, MachineIx, PreparedIx, RunIx},
    world::{Constraint, KeepLevel, Looked, lowers},
};

/// Which machines of its cluster a need may be credited with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Its own only.
    Own,
    /// Its own, and what no other need of the tier owns.
    Free,
    /// All that is left.
    All,
}

impl Reach {
    /// Before every owner has chosen: a quiet need counts only on its own.
    pub(crate) fn at_first(quiet: bool) -> Self {
        if quiet { Self::Own } else { Self::Free }
    }
}

/// The next machine of a run in a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) run: RunIx,
    level: KeepLevel,
    /// Place in the run, and label of the machine there.
    at: u32,
    label: u64,
    /// A settled need of a lower tier counts on the run: taking from it makes
    /// that need look again.
    taken_from: Option<PreparedIx>,
}

impl Head {
    pub(super) fn is_taken_from(&self) -> bool {
        self.taken_from.is_some()
    }
}

impl Phase1<'_> {
    /// Walks own machines, then free ones, each bound before bought, then in keep
    /// order, until the need is covered.
    pub(super) fn credit(&mut self, need: PreparedIx, reach: Reach) {
        if self.world.needs[need].kept {
            self.resume(need);
        }
        let row = &self.world.needs[need];
        if row.is_homeless() || row.is_covered() {
            return;
        }
        let mut residual = row.residual();
        let mut heads = std::mem::take(&mut self.scratch.heads);
        heads.clear();
        self.own_heads(need, &mut heads);
        self.world.needs[need].even &= self.are_even(need, &heads);
        self.walk(need, &mut residual, &mut heads, None);
        if !residual.is_zero() && reach != Reach::Own {
            let before = self.world.needs[need].credits.len();
            let mut spread = (self.world.needs[need].constraint == Constraint::Spread)
                .then(|| self.spread_of_all(need, reach));
            heads.clear();
            if !self.is_dry(need, reach) {
                self.free_heads(need, reach, &mut heads);
                self.note_dry(need, reach, heads.is_empty());
            }
            self.walk(need, &mut residual, &mut heads, spread.as_mut());
            let row = &mut self.world.needs[need];
            if row.credits.len() > before {
                row.looked = Looked::Borrowed;
                self.give_back_surplus(need);
            }
        }
        self.scratch.heads = heads;
    }

    /// Whether machines of all these runs contribute to whatever the need wants.
    fn are_even(&self, need: PreparedIx, heads: &[Head]) -> bool {
        let row = &self.world.needs[need];
        heads.iter().all(|head| {
            let class = &self.world.classes[self.world.runs[head.run].class];
            class.capacity.spans(&row.aggregate)
        })
    }

    /// Goes on from what the need kept: of its own machines it took the first
    /// ones, as many as it then needed.
    fn resume(&mut self, need: PreparedIx) {
        let world = &mut *self.world;
        world.end_rest(need);
        let row = &mut world.needs[need];
        let has_gaps = std::mem::take(&mut row.has_gaps);
        let mut credits = std::mem::take(&mut row.credits);
        if has_gaps {
            credits.retain(|machine| world.machines.rows[*machine].claimant == Some(need));
        }
        while let Some(&last) = credits.last() {
            let class = world.machines.rows[last].class;
            let row = &mut world.needs[need];
            let contribution = world.pools[row.pool].contribution(&world.classes[class].capacity);
            let without = row.covered.sub_sat(contribution.as_ref());
            if !without.covers(&row.aggregate) {
                break;
            }
            row.covered = without;
            credits.pop();
            world.unclaim_last(last);
        }
        world.needs[need].credits = credits;
    }

    /// Counts over what the need claims, could acquire, or be credited with,
    /// whoever owns it.
    fn spread_of_all(&self, need: PreparedIx, reach: Reach) -> Spread {
        let world = &*self.world;
        let row = &world.needs[need];
        let mut spread = Spread::over(world, need);
        let creditable = |run: &RunIx| {
            let owner = world.runs[*run].account.and_then(|account| world.owner(account));
            let settled = owner.filter(|owner| world.is_settled(*owner));
            world.runs[*run].has_unclaimed()
                || settled.is_some_and(|owner| self.comes_after(owner, need, reach))
        };
        let usable = &world.pools[row.pool].usable;
        for shelf in world.names.clusters[row.cluster].shelves.among(usable) {
            if shelf.runs.iter().any(creditable) {
                spread.widen(world, need, shelf.class);
            }
        }
        for run in &world.names.accounts[row.account].runs {
            let run = &world.runs[*run];
            if run.has_unclaimed() && world.usable(row, run.class) {
                spread.widen(world, need, run.class);
            }
        }
        spread
    }

    /// Whether a settled need claims its machines only after another has looked:
    /// in a lower tier, or later in the first round of the same.
    fn comes_after(&self, settled: PreparedIx, need: PreparedIx, reach: Reach) -> bool {
        let world = &*self.world;
        let turn =
            |need: PreparedIx| (Reverse(world.precedence(need)), world.needs[need].constraint);
        let order = turn(settled).cmp(&turn(need)).then_with(|| world.serving_order(settled, need));
        let lower = world.precedence(settled) < world.precedence(need);
        !self.all_served && order.is_gt() && (lower || reach == Reach::Free)
    }

    /// Accounts whose stamps make a machine the need's own: of a fold also those
    /// of its members.
    pub(super) fn own_accounts(&self, need: PreparedIx, mut each: impl FnMut(AccountIx)) {
        let row = &self.world.needs[need];
        each(row.account);
        for member in self.world.folded(row) {
            each(self.world.needs[*member].account);
        }
    }

    /// Usable own runs with something that nobody else claims.
    pub(super) fn own_heads(&self, need: PreparedIx, heads: &mut Vec<Head>) {
        let row = &self.world.needs[need];
        // What a need keeps is still its to choose from.
        let itself = row.kept.then_some(need);
        self.own_accounts(need, |account| {
            let account = &self.world.names.accounts[account];
            if account.claimed == account.machines && !row.kept {
                return;
            }
            for &run in &account.runs {
                let of_run = &self.world.runs[run];
                if (row.kept || of_run.has_unclaimed()) && self.world.usable(row, of_run.class) {
                    heads.extend(self.head(run, itself));
                }
            }
        });
    }

    /// Whether another need of the tier, cluster and pool found nothing, and no claim
    /// has ended there since: what one does not find is not there for another.
    fn is_dry(&self, need: PreparedIx, reach: Reach) -> bool {
        let row = &self.world.needs[need];
        let known = self.scratch.dry.get(&(row.cluster, row.pool, reach));
        known.is_some_and(|returns| *returns == self.world.names.clusters[row.cluster].returns)
    }

    fn note_dry(&mut self, need: PreparedIx, reach: Reach, dry: bool) {
        let row = &self.world.needs[need];
        // A gang looks into one domain only.
        if !dry || row.constraint == Constraint::Same {
            return;
        }
        let mut left_own = false;
        self.own_accounts(need, |account| {
            let account = &self.world.names.accounts[account];
            left_own |= account.claimed < account.machines;
        });
        // What it passed over of its own may serve another.
        if !left_own {
            let returns = self.world.names.clusters[row.cluster].returns;
            self.scratch.dry.insert((row.cluster, row.pool, reach), returns);
        }
    }

    /// Usable runs of the cluster that are neither own nor, unless all is left,
    /// owned by another need of the tier.
    pub(super) fn free_heads(&self, need: PreparedIx, reach: Reach, heads: &mut Vec<Head>) {
        if reach == Reach::Own {
            return;
        }
        let world = &*self.world;
        let row = &world.needs[need];
        let cluster = &world.names.clusters[row.cluster];
        // Whoever still looks for what is left has had all that lower tiers hold,
        // but for what its spread closed.
        let had_all = reach == Reach::All && row.constraint != Constraint::Spread;
        if self.all_served || had_all || !cluster.rests_below(world.precedence(need)) {
            // Nobody can be robbed: only what is unclaimed counts.
            let usable = |run: &&RunIx| world.usable(row, world.runs[**run].class);
            for &run in cluster.open.iter().filter(usable) {
                heads.extend(self.free_head(need, reach, run));
            }
            return;
        }
        for shelf in cluster.shelves.among(&world.pools[row.pool].usable) {
            if world.usable(row, shelf.class) {
                heads.extend(shelf.runs.iter().filter_map(|run| self.free_head(need, reach, *run)));
            }
        }
    }

    fn free_head(&self, need: PreparedIx, reach: Reach, run: RunIx) -> Option<Head> {
        let world = &*self.world;
        let row = &world.needs[need];
        let Some(account) = world.runs[run].account else { return self.head(run, None) };
        if account == row.account || self.is_own(need, account) {
            return None;
        }
        let tier = world.precedence(need);
        let owner = world.owner(account);
        let of_tier = owner.filter(|owner| world.precedence(*owner) == tier);
        if reach == Reach::Free && of_tier.is_some() {
            return None;
        }
        let lower = owner.filter(|owner| world.precedence(*owner) < tier);
        let settled = lower.filter(|owner| !self.all_served && world.is_settled(*owner));
        self.head(run, settled)
    }

    /// Whether a fold's member has this account.
    fn is_own(&self, need: PreparedIx, account: AccountIx) -> bool {
        let owner = self.world.names.accounts[account].need;
        owner.is_some_and(|owner| self.world.needs[owner].folded_into == Some(need))
    }

    /// The first machine of a run that may be taken. A settled need claims only
    /// its own, and nobody else claims them: from it the first one is taken.
    fn head(&self, run: RunIx, taken_from: Option<PreparedIx>) -> Option<Head> {
        let world = &*self.world;
        let row = &world.runs[run];
        let at = match taken_from {
            Some(_) => 0,
            None => world.unclaimed_from(run, row.next),
        };
        let machine = *row.members.get(at as usize)?;
        Some(Head {
            run,
            level: world.keep_level(run),
            at,
            label: world.machines.rows[machine].label,
            taken_from,
        })
    }

    /// One pass over the machines of these runs: what lowers nothing, or lies in
    /// a domain that its spread does not admit, is passed over.
    fn walk(
        &mut self,
        need: PreparedIx,
        residual: &mut Totals,
        heads: &mut [Head],
        mut spread: Option<&mut Spread>,
    ) {
        heads.sort_unstable_by(|a, b| a.level.cmp(&b.level).then_with(|| a.label.cmp(&b.label)));
        let mut start = 0;
        while start < heads.len() && !residual.is_zero() {
            let level = heads[start].level;
            let alike = heads[start..].iter().take_while(|head| head.level.cmp(&level).is_eq());
            let end = start + alike.count();
            self.walk_level(need, residual, &mut heads[start..end], spread.as_deref_mut());
            start = end;
        }
    }

    /// Machines of equal price and worth, by id.
    fn walk_level(
        &mut self,
        need: PreparedIx,
        residual: &mut Totals,
        heads: &mut [Head],
        mut spread: Option<&mut Spread>,
    ) {
        // In id order: the first of the heap is the next machine.
        let mut order = std::mem::take(&mut self.scratch.merge);
        order.clear();
        order.extend(heads.iter().enumerate().map(|(at, head)| Reverse((head.label, at))));
        while let Some(Reverse((_, first))) = order.pop() {
            let head = heads[first];
            let class = self.world.runs[head.run].class;
            let pool = &self.world.pools[self.world.needs[need].pool];
            let contribution = pool.contribution(&self.world.classes[class].capacity).into_owned();
            // The label up to which this run alone goes on.
            let bound = order.peek().map_or(u64::MAX, |Reverse((label, _))| *label);
            let mut head = head;
            while head.label < bound {
                if residual.is_zero() {
                    self.scratch.merge = order;
                    return;
                }
                // What lowers nothing now never will: a residual only shrinks.
                if !lowers(residual, &contribution) {
                    head.label = u64::MAX;
                    break;
                }
                let admitted = spread.as_ref().is_none_or(|spread| {
                    spread.admits(self.world.domain(&self.world.needs[need], class))
                });
                if admitted {
                    let machine = self.world.runs[head.run].members[head.at as usize];
                    if let Some(lower) = head.taken_from.take() {
                        self.world.rob(lower);
                    }
                    self.take(need, machine, &contribution, residual);
                    if let Some(spread) = spread.as_deref_mut() {
                        spread.add(self.world.domain(&self.world.needs[need], class));
                    }
                    let run = &mut self.world.runs[head.run];
                    if run.next == head.at {
                        run.next += 1;
                    }
                }
                let lower = head.taken_from;
                head.at = match lower {
                    Some(_) => head.at + 1,
                    None => self.world.unclaimed_from(head.run, head.at + 1),
                };
                head.label = self.world.runs[head.run]
                    .members
                    .get(head.at as usize)
                    .map_or(u64::MAX, |machine| self.world.machines.rows[*machine].label);
            }
            heads[first] = head;
            if head.label != u64::MAX {
                order.push(Reverse((head.label, first)));
            }
        }
        self.scratch.merge = order;
    }

    fn take(
        &mut self,
        need: PreparedIx,
        machine: MachineIx,
        contribution: &Totals,
        residual: &mut Totals,
    ) {
        self.world.claim(machine, need);
        let row = &mut self.world.needs[need];
        row.credits.push(machine);
        row.plan_stands = false;
        row.covered.add_assign(contribution);
        residual.sub_sat_assign(contribution);
    }

    /// Walks all claims once more by (bought last, price, id) and gives back what
    /// comes after the point of coverage: that is the set which next cycle's own
    /// walk would keep.
    fn give_back_surplus(&mut self, need: PreparedIx) {
        let world = &mut *self.world;
        let mut credits = std::mem::take(&mut world.needs[need].credits);
        let key = |machine: &MachineIx| {
            let row = &world.machines.rows[*machine];
            let kind = row.run.map(|run| world.runs[run].kind);
            (kind, world.classes[row.class].price, row.label)
        };
        credits.sort_unstable_by(|a, b| {
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)).then_with(|| a.2.cmp(&b.2))
        });
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        let mut covered = Totals::zero();
        let mut kept = 0;
        while kept < credits.len() && !covered.covers(&row.aggregate) {
            let class = world.machines.rows[credits[kept]].class;
            covered.add_assign(pool.contribution(&world.classes[class].capacity).as_ref());
            kept += 1;
        }
        for machine in credits.drain(kept..) {
            world.unclaim(machine);
        }
        let row = &mut world.needs[need];
        row.credits = credits;
        row.covered = covered;
    }
}
