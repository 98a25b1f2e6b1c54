//! Phase 2: priority inversions (§7). Closes residuals by draining machines of
//! strictly lower priority. It moves nothing: a victim drains to Idle and a later
//! Phase 1 acquires it.

mod score;
mod standing;
mod target;

use std::{cmp::Reverse, collections::BTreeSet};

use bigfleet_model::{
    Totals,
    grace::{VOLUNTARY_GRACE, drain_grace},
};

use crate::{
    phase1::{Constraint, Prepared, coverage, load},
    world::{DomainId, World},
};

pub(crate) use standing::Standing;
use target::Target;

/// A machine that is drained for a need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) machine: usize,
    /// Index of the prepared need.
    pub(crate) need: usize,
    /// How far the need stands above the machine's workload.
    pub(crate) gap: i64,
}

/// How a need with a residual came out of Phase 2.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    pub(crate) need: usize,
    pub(crate) residual: Totals,
    pub(crate) preempted: bool,
}

/// What Phase 2 decided.
#[derive(Default)]
pub(crate) struct Inversions {
    pub(crate) victims: Vec<Victim>,
    /// Of every need that Phase 1 left short, in serving order.
    pub(crate) resolutions: Vec<Resolution>,
}

/// Resolves the residuals of `prepared`, in serving order.
pub(crate) fn invert(
    world: &World<'_>,
    prepared: &mut [Prepared],
    standing: &Standing,
) -> Inversions {
    let mut phase = Phase2 { world, standing, taken: vec![false; world.machines.len()], prepared };
    phase.run()
}

struct Phase2<'w, 'a, 'p> {
    world: &'w World<'a>,
    standing: &'w Standing,
    /// Reserved or picked, by machine.
    taken: Vec<bool>,
    prepared: &'p mut [Prepared],
}

impl Phase2<'_, '_, '_> {
    fn run(&mut self) -> Inversions {
        let short: Vec<usize> = (0..self.prepared.len())
            .filter(|at| !self.prepared[*at].residual().is_zero())
            .collect();
        let reserved: Vec<Vec<usize>> = short.iter().map(|at| self.reserve_own(*at)).collect();
        let mut inversions = Inversions::default();
        for (&at, reserved) in short.iter().zip(reserved) {
            let resolution = self.resolve(at, &reserved, &mut inversions.victims);
            inversions.resolutions.push(resolution);
        }
        inversions
    }

    /// What was preempted for this very need: otherwise a higher need would take
    /// the drain of a pickier one, which would then evict once more.
    fn reserve_own(&mut self, at: usize) -> Vec<usize> {
        let need = &self.prepared[at];
        if need.is_quiet() {
            return Vec::new();
        }
        let mut target = Target::of(self.world, need, self.standing);
        let mut reserved = Vec::new();
        for &machine in &self.standing.draining {
            if self.drains_for(need, machine) && self.may_take(&target, machine) {
                target.take(self.world, machine);
                self.taken[machine] = true;
                reserved.push(machine);
            }
        }
        reserved
    }

    fn priority(&self, need: &Prepared) -> i32 {
        self.world.profiles.row(need.profile).profile.priority()
    }

    /// Whether a machine was preempted for this very need.
    fn drains_for(&self, need: &Prepared, machine: usize) -> bool {
        let preemptor = self.world.machines[machine].drain.preemptor;
        need.identity.is_some_and(|key| preemptor == Some((need.cluster, key)))
    }

    fn may_take(&self, target: &Target, machine: usize) -> bool {
        let row = &self.world.machines[machine];
        !self.taken[machine] && row.held_back.is_none() && target.wants(row.class)
    }

    fn resolve(&mut self, at: usize, reserved: &[usize], victims: &mut Vec<Victim>) -> Resolution {
        let short =
            |need: &Prepared| Resolution { need: at, residual: need.residual(), preempted: false };
        if self.prepared[at].is_quiet() {
            return short(&self.prepared[at]);
        }
        if self.prepared[at].is_homeless() && !self.clear_domain(at, reserved) {
            return short(&self.prepared[at]);
        }
        let need = &self.prepared[at];
        let mut target = Target::of(self.world, need, self.standing);
        for &machine in reserved {
            // A gang counts only on its domain.
            if need.usable(self.world, self.world.machines[machine].class) {
                target.take(self.world, machine);
            }
        }
        self.take_incoming(at, &mut target);
        let (excess, picked) = self.take_outgoing(at, &mut target);
        self.conclude(at, target, excess, picked, victims)
    }

    /// Step 1: what drains already, or is about to.
    fn take_incoming(&mut self, at: usize, target: &mut Target) {
        for machine in self.incoming(&self.prepared[at], target) {
            if self.may_take(target, machine) {
                self.taken[machine] = true;
                target.take(self.world, machine);
            }
        }
    }

    /// Draining machines by id, but for those that drain for nobody at least as
    /// important and take longer than the best victim would; and excess that is
    /// reclaimed this cycle, if even that is not longer.
    fn incoming(&self, need: &Prepared, target: &Target) -> Vec<usize> {
        let priority = self.priority(need);
        let victims = self.standing.victims(self.world, need, priority);
        let best = victims.iter().find(|machine| self.may_take(target, **machine));
        let limit = best.map(|machine| drain_grace(self.standing.gap(priority, *machine)));
        let in_time = |machine: &usize| {
            let drain = self.world.machines[*machine].drain;
            let for_lesser = drain.preemptor_priority.is_none_or(|other| other < priority);
            let remaining = drain.deadline.map(|deadline| deadline.since(self.world.input.now));
            let late = limit.zip(remaining).is_some_and(|(limit, remaining)| remaining > limit);
            !(for_lesser && late)
        };
        let mut incoming: Vec<usize> =
            self.standing.draining.iter().copied().filter(in_time).collect();
        if limit.is_none_or(|limit| VOLUNTARY_GRACE <= limit) {
            let reclaimed = |machine: &usize| {
                Standing::stamp_priority(self.world, *machine) >= Some(priority)
                    && !self.standing.awaited[*machine]
            };
            incoming.extend(self.standing.excess.iter().copied().filter(reclaimed));
        }
        incoming
    }

    /// Steps 2 and 3: excess of lower priority, then victims.
    fn take_outgoing(&mut self, at: usize, target: &mut Target) -> (Vec<usize>, Vec<usize>) {
        let need = &self.prepared[at];
        let priority = self.priority(need);
        let (mut excess, mut victims) = (Vec::new(), Vec::new());
        for machine in self.standing.lower_excess(self.world, priority) {
            if self.may_take(target, machine) {
                self.taken[machine] = true;
                target.take(self.world, machine);
                excess.push(machine);
            }
        }
        for machine in self.standing.victims(self.world, need, priority) {
            if self.may_take(target, machine) {
                self.taken[machine] = true;
                target.take(self.world, machine);
                victims.push(machine);
            }
        }
        (excess, victims)
    }

    /// Steps 4 and 5: prune what is redundant; a gang that still cannot assemble
    /// evicts nobody.
    fn conclude(
        &mut self,
        at: usize,
        mut target: Target,
        mut excess: Vec<usize>,
        mut picked: Vec<usize>,
        victims: &mut Vec<Victim>,
    ) -> Resolution {
        let need = &self.prepared[at];
        let spans = need.constraint == Constraint::Same && !need.unit.covers(&need.aggregate);
        if target.residual().is_zero() {
            for picks in [&mut picked, &mut excess] {
                for place in (0..picks.len()).rev() {
                    if target.can_spare(self.world, picks[place]) {
                        let machine = picks.remove(place);
                        self.taken[machine] = false;
                        target.give_back(self.world, machine);
                    }
                }
            }
        } else if spans {
            for machine in excess.drain(..).chain(picked.drain(..)) {
                self.taken[machine] = false;
                target.give_back(self.world, machine);
            }
        }
        let priority = self.priority(need);
        for machine in excess.iter().chain(&picked) {
            let gap = self.standing.gap(priority, *machine);
            victims.push(Victim { machine: *machine, need: at, gap });
        }
        Resolution {
            need: at,
            residual: target.residual(),
            preempted: !excess.is_empty() || !picked.is_empty(),
        }
    }

    /// A gang without any creditable or acquirable machine takes a domain whose
    /// incoming, lower-priority excess and victims together cover it.
    fn clear_domain(&mut self, at: usize, reserved: &[usize]) -> bool {
        let domains: BTreeSet<DomainId> = self
            .world
            .profiles
            .row(self.prepared[at].profile)
            .same
            .iter()
            .flatten()
            .copied()
            .collect();
        let mut best = None;
        for domain in domains {
            self.prepared[at].domain = Some(domain);
            let judged =
                self.judge_domain(&self.prepared[at], reserved).map(|order| (order, domain));
            best = [best, judged].into_iter().flatten().min();
        }
        self.prepared[at].domain = best.map(|(_, domain)| domain);
        best.is_some()
    }

    /// How the need's present domain compares: more that drains for it, more that
    /// drains at all, a tighter fit. None if the domain cannot cover the need.
    fn judge_domain(
        &self,
        need: &Prepared,
        reserved: &[usize],
    ) -> Option<(Reverse<i128>, Reverse<i128>, i128)> {
        let wanted = &need.aggregate;
        let whole = Target::of(self.world, need, self.standing);
        let mut target = Target::of(self.world, need, self.standing);
        let inside = |machine: &usize| need.usable(self.world, self.world.machines[*machine].class);
        let mut drains: BTreeSet<usize> = reserved.iter().copied().filter(inside).collect();
        drains.iter().for_each(|machine| target.take(self.world, *machine));
        let free = |machine: &usize| self.may_take(&whole, *machine);
        drains.extend(self.incoming(need, &target).into_iter().filter(free));
        let for_it: BTreeSet<usize> =
            drains.iter().copied().filter(|machine| self.drains_for(need, *machine)).collect();
        let mut all = drains.clone();
        let priority = self.priority(need);
        all.extend(self.standing.lower_excess(self.world, priority).filter(free));
        all.extend(self.standing.victims(self.world, need, priority).into_iter().filter(free));
        let sum = |machines: &BTreeSet<usize>| {
            let mut total = Totals::zero();
            for machine in machines {
                total.add_assign(self.world.capacity(self.world.machines[*machine].class));
            }
            total
        };
        let total = sum(&all);
        total.covers(wanted).then(|| {
            let cover = |machines| Reverse(coverage(&sum(machines), wanted));
            (cover(&for_it), cover(&drains), load(&total, wanted))
        })
    }
}
