//! Folding of gangs that fit a machine (§4.2): many of them share machines, and
//! one that fits a machine is co-located for free.

use bigfleet_model::Totals;
use smallvec::SmallVec;

use super::{Phase1, Reach, start_over};
use crate::{
    handle::{ClassIx, DomainIx, GroupIx, PreparedIx},
    input::NoAcquire,
};

/// Gangs of one group that may become one need.
struct Candidates {
    fold: PreparedIx,
    /// In the order in which they get a place; the last leave first.
    members: Vec<(Standing, PreparedIx)>,
    held: bool,
    earliest: i64,
}

/// How a gang stands in its group: singles never leave it, and who owns parts
/// leaves first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Single,
    OwnsWhole,
    OwnsNothing,
    OwnsParts,
}

impl Phase1<'_> {
    /// Folds what can be folded. Returns the folds, credited and planned, in the
    /// order in which they were planned.
    pub(super) fn fold(&mut self, groups: &[GroupIx]) -> Vec<PreparedIx> {
        let mut candidates: Vec<Candidates> = Vec::with_capacity(groups.len());
        for gangs in groups {
            let members = self.world.gangs[*gangs].members.clone();
            members.iter().for_each(|member| start_over(&mut self.world.needs[*member]));
            let fold = self.world.gangs[*gangs].fold;
            start_over(&mut self.world.needs[fold]);
            let account = self.world.needs[fold].account;
            self.world.gangs[*gangs].folded.clear();
            self.world.names.accounts[account].fold = None;
            candidates.extend(self.candidates(fold, &members));
        }
        let world = &mut *self.world;
        for one in &candidates {
            // A fold owns what carries its own stamp, as any need of the tier.
            let row = &mut world.needs[one.fold];
            row.arrival = one.earliest;
            let account = row.account;
            world.names.accounts[account].fold = Some(one.fold);
        }
        candidates.sort_unstable_by(|a, b| world.serving_order(a.fold, b.fold));
        let mut folds = Vec::new();
        for one in candidates {
            let fold = one.fold;
            self.settle_fold(one);
            if self.world.folded(&self.world.needs[fold]).is_empty() {
                let account = self.world.needs[fold].account;
                self.world.names.accounts[account].fold = None;
            } else {
                folds.push(fold);
            }
        }
        folds
    }

    /// Who of a group may fold.
    fn candidates(&self, fold: PreparedIx, gangs: &[PreparedIx]) -> Option<Candidates> {
        let world = &*self.world;
        let mut members: Vec<(Standing, PreparedIx)> = Vec::with_capacity(gangs.len());
        for &gang in gangs {
            if !self.is_served_across_machines(gang) {
                members.push((self.standing(gang), gang));
            }
        }
        let is_held = |gang: PreparedIx| world.needs[gang].held.is_some();
        let held = members.iter().all(|(_, gang)| is_held(*gang));
        if !held {
            // Held gangs of a mixed group stay ordinary needs.
            members.retain(|(_, gang)| !is_held(*gang));
        }
        if members.len() > 1 {
            members
                .sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| world.serving_order(a.1, b.1)));
        }
        let earliest = self.earliest(members.iter().map(|(_, gang)| *gang));
        (!members.is_empty()).then_some(Candidates { fold, members, held, earliest })
    }

    /// Earliest known arrival of several needs.
    fn earliest(&self, members: impl Iterator<Item = PreparedIx>) -> i64 {
        let arrival = |member| Some(self.world.needs[member].arrival).filter(|known| *known != 0);
        members.filter_map(arrival).min().unwrap_or(0)
    }

    /// Credits and plans; while the group falls short its last spanning gang
    /// leaves it and stays an ordinary need.
    fn settle_fold(&mut self, mut candidates: Candidates) {
        let fold = candidates.fold;
        while !candidates.members.is_empty() {
            self.prepare_fold(&candidates);
            self.credit(fold, Reach::at_first(candidates.held));
            if !candidates.held {
                self.plan(fold);
            }
            let found = self.units_found(fold);
            let wanted = candidates.members.len() as i128;
            let singles = candidates
                .members
                .iter()
                .rposition(|(standing, _)| *standing != Standing::Single)
                .filter(|_| found < wanted);
            let Some(last) = singles else { return };
            // A leaver that owned nothing changes nothing but the number: then as
            // many leave as found no place.
            let mut leaving = 1;
            if candidates.members[last].0 == Standing::OwnsNothing {
                let idle = candidates.members[..=last].iter().rev();
                let idle = idle.take_while(|(standing, _)| *standing == Standing::OwnsNothing);
                let short = usize::try_from(wanted - found).unwrap_or(usize::MAX);
                leaving = idle.count().min(short);
            }
            self.unplan(fold);
            self.world.release(fold);
            for (_, gang) in candidates.members.drain(last + 1 - leaving..=last) {
                self.world.needs[gang].folded_into = None;
            }
        }
        if let Some(gangs) = self.world.needs[fold].gangs {
            self.world.gangs[gangs].folded.clear();
        }
        self.world.needs[fold].aggregate = Totals::zero();
    }

    /// Whole units that the fold is credited with or plans to take.
    fn units_found(&self, fold: PreparedIx) -> i128 {
        let world = &*self.world;
        let row = &world.needs[fold];
        let pool = &world.pools[row.pool];
        let units = |machine| {
            let class = world.machines.rows[machine].class;
            pool.units(&world.classes[class].capacity)
        };
        row.claims().map(units).fold(0, i128::saturating_add)
    }

    /// Makes the fold the need that its present members add up to.
    fn prepare_fold(&mut self, candidates: &Candidates) {
        let fold = candidates.fold;
        let Some(gangs) = self.world.needs[fold].gangs else { return };
        let mut members = std::mem::take(&mut self.world.gangs[gangs].folded);
        members.clear();
        members.extend(candidates.members.iter().map(|(_, gang)| *gang));
        for member in &members {
            self.world.needs[*member].folded_into = Some(fold);
        }
        let world = &mut *self.world;
        if members.len() > 1 {
            members.sort_unstable_by(|a, b| world.serving_order(*a, *b));
        }
        let earliest = self.earliest(members.iter().copied());
        let world = &mut *self.world;
        let unit = &world.pools[world.needs[fold].pool].key.unit;
        let aggregate = unit.scale(members.len() as u64);
        let held = if candidates.held { hold_of(world, &members) } else { None };
        let row = &mut world.needs[fold];
        row.arrival = earliest;
        row.aggregate = aggregate;
        row.held = held;
        world.gangs[gangs].folded = members;
    }

    /// Gives planned machines back to the view.
    fn unplan(&mut self, need: PreparedIx) {
        let picks = std::mem::take(&mut self.world.needs[need].picks);
        for pick in &picks {
            let row = &mut self.world.runs[pick.run];
            row.cursor = row.cursor.min(pick.at);
            row.planned -= 1;
            let (class, kind) = (row.class, row.kind);
            self.recount(class, kind, false);
        }
        if !picks.is_empty() {
            // Cached heads must not lie behind the cursors.
            let pool = self.world.needs[need].pool;
            self.world.pools[pool].ranks.iter_mut().for_each(|rank| rank.view = 0);
        }
    }

    /// `min_unit` does not cover the aggregate.
    fn is_spanning(&self, gang: PreparedIx) -> bool {
        let row = &self.world.needs[gang];
        !self.world.pools[row.pool].key.unit.covers(&row.aggregate)
    }

    fn standing(&self, gang: PreparedIx) -> Standing {
        if !self.is_spanning(gang) {
            return Standing::Single;
        }
        let own = self.own_classes(gang);
        let wanted = &self.world.needs[gang].aggregate;
        if own.is_empty() {
            Standing::OwnsNothing
        } else if own.iter().any(|(class, _)| self.world.classes[*class].capacity.covers(wanted)) {
            Standing::OwnsWhole
        } else {
            Standing::OwnsParts
        }
    }

    /// Its own machines of one domain cover it together while none covers it
    /// alone: folding would evict it.
    fn is_served_across_machines(&self, gang: PreparedIx) -> bool {
        let own = self.own_classes(gang);
        let row = &self.world.needs[gang];
        let mut domains: SmallVec<[(DomainIx, Totals, bool); 2]> = SmallVec::new();
        for (class, count) in own {
            let Some(domain) = self.world.domain(row, class) else { continue };
            let capacity = &self.world.classes[class].capacity;
            let at = match domains.iter().position(|(known, ..)| *known == domain) {
                Some(at) => at,
                None => {
                    domains.push((domain, Totals::zero(), false));
                    domains.len() - 1
                }
            };
            domains[at].1.add_assign(&capacity.scale(count as u64));
            domains[at].2 |= capacity.covers(&row.aggregate);
        }
        domains.iter().any(|(_, sum, alone)| !alone && sum.covers(&row.aggregate))
    }

    /// Classes and numbers of the unclaimed machines that a gang owns and can use.
    fn own_classes(&self, gang: PreparedIx) -> SmallVec<[(ClassIx, usize); 4]> {
        let world = &*self.world;
        let row = &world.needs[gang];
        let own = |run: &crate::handle::RunIx| {
            let run = &world.runs[*run];
            let left = run.members.len() - run.claimed as usize;
            (left > 0 && world.pools[row.pool].has(run.class)).then_some((run.class, left))
        };
        world.names.accounts[row.account].runs.iter().filter_map(own).collect()
    }
}

/// Why a held fold is held: no session comes before a refusal, as in the order of
/// details.
fn hold_of(world: &crate::world::World, members: &[PreparedIx]) -> Option<NoAcquire> {
    let holds = || members.iter().filter_map(|member| world.needs[*member].held);
    holds().find(|why| *why == NoAcquire::NoSession).or_else(|| holds().next())
}
