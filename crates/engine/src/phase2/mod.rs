//! Phase 2: priority inversions (§7). Closes residuals by draining machines of
//! strictly lower priority. It moves nothing: a victim drains to Idle and a later
//! Phase 1 acquires it.

mod standing;
mod target;

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
            let for_it = self.world.machines[machine]
                .drain
                .preemptor
                .is_some_and(|(cluster, key)| cluster == need.cluster && need.own.contains(&key));
            if for_it && self.may_take(&target, machine) {
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
        if self.prepared[at].constraint == Constraint::Same
            && self.prepared[at].domain.is_none()
            && !self.clear_domain(at, reserved)
        {
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
        let need = &self.prepared[at];
        let priority = self.priority(need);
        let victims = self.standing.victims(self.world, need, priority);
        let best = victims.iter().find(|machine| self.may_take(target, **machine));
        let limit = best.map(|machine| drain_grace(self.standing.gap(priority, *machine)));
        for machine in self.standing.draining.clone() {
            let drain = self.world.machines[machine].drain;
            let for_lesser = drain.preemptor_priority.is_none_or(|other| other < priority);
            let remaining = drain.deadline.map(|deadline| deadline.since(self.world.input.now));
            let too_late = for_lesser
                && limit.zip(remaining).is_some_and(|(limit, remaining)| remaining > limit);
            if !too_late && self.may_take(target, machine) {
                self.taken[machine] = true;
                target.take(self.world, machine);
            }
        }
        if limit.is_some_and(|limit| VOLUNTARY_GRACE > limit) {
            return;
        }
        for machine in self.standing.excess.clone() {
            let above = Standing::stamp_priority(self.world, machine) >= Some(priority);
            if above && !self.standing.awaited[machine] && self.may_take(target, machine) {
                self.taken[machine] = true;
                target.take(self.world, machine);
            }
        }
    }

    /// Steps 2 and 3: excess of lower priority, then victims.
    fn take_outgoing(&mut self, at: usize, target: &mut Target) -> (Vec<usize>, Vec<usize>) {
        let need = &self.prepared[at];
        let priority = self.priority(need);
        let (mut excess, mut victims) = (Vec::new(), Vec::new());
        for &machine in &self.standing.excess {
            let below = Standing::stamp_priority(self.world, machine) < Some(priority);
            if below && self.may_take(target, machine) {
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
        let need = &self.prepared[at];
        let profile = self.world.profiles.row(need.profile);
        let priority = self.priority(need);
        let free = |machine: &usize| {
            let row = &self.world.machines[*machine];
            !self.taken[*machine] && row.held_back.is_none() && need.usable(self.world, row.class)
        };
        let draining: Vec<usize> = self
            .standing
            .draining
            .iter()
            .copied()
            .filter(&free)
            .chain(reserved.iter().copied())
            .collect();
        let mut going: Vec<usize> = self.standing.victims(self.world, need, priority);
        let below =
            |machine: &usize| Standing::stamp_priority(self.world, *machine) < Some(priority);
        going.extend(self.standing.excess.iter().copied().filter(below));
        going.sort_unstable();
        going.dedup();
        let sum = |machines: &mut dyn Iterator<Item = usize>, domain: DomainId| {
            let mut total = Totals::zero();
            for machine in machines {
                let class = self.world.machines[machine].class;
                if profile.same[class] == Some(domain) {
                    total.add_assign(self.world.capacity(class));
                }
            }
            total
        };
        let domains = profile.same.iter().flatten().max().map_or(0, |last| last.0 + 1);
        let judge = |domain: u32| {
            let domain = DomainId(domain);
            let for_it = sum(&mut reserved.iter().copied(), domain);
            let drains = sum(&mut draining.iter().copied(), domain);
            let total = drains.add(&sum(&mut going.iter().copied().filter(|m| free(m)), domain));
            total.covers(&need.aggregate).then(|| {
                let wanted = &need.aggregate;
                (
                    std::cmp::Reverse(coverage(&for_it, wanted)),
                    std::cmp::Reverse(coverage(&drains, wanted)),
                    load(&total, wanted),
                    domain,
                )
            })
        };
        let chosen = (0..domains).filter_map(judge).min().map(|(.., domain)| domain);
        self.prepared[at].domain = chosen;
        chosen.is_some()
    }
}
