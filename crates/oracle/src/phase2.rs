//! Phase 2: priority inversions (§7).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_model::{
    MachineState, Totals,
    grace::{VOLUNTARY_GRACE, drain_grace, priority_gap},
    order::release_order,
};

use crate::{
    cycle::Cycle,
    need::Domain,
    phase3::awaited,
    share::{cov, load},
};

/// What Phase 2 did.
pub(crate) struct Inversion {
    /// Which need takes a machine once it has drained, without evicting it.
    reserved_by: Vec<Option<usize>>,
    /// For which need a machine is preempted.
    pub(crate) victim_of: Vec<Option<usize>>,
    /// What is still missing, of the needs that Phase 2 did not close.
    pub(crate) unresolved: BTreeMap<usize, Totals>,
    /// Domains taken here by gangs that found none in Phase 1.
    pub(crate) domains: BTreeMap<usize, Domain>,
}

impl Inversion {
    /// Some pick was made for the need.
    pub(crate) fn preempted(&self, need: usize) -> bool {
        self.victim_of.contains(&Some(need))
    }
}

/// §7.
pub(crate) fn invert(cycle: &Cycle<'_>) -> Inversion {
    let machines = cycle.machines.len();
    let mut phase = Phase {
        cycle,
        done: Inversion {
            reserved_by: vec![None; machines],
            victim_of: vec![None; machines],
            unresolved: BTreeMap::new(),
            domains: BTreeMap::new(),
        },
    };
    let unsatisfied: Vec<usize> =
        (0..cycle.needs.len()).filter(|need| !cycle.residual(*need).is_zero()).collect();
    for need in unsatisfied.iter().copied().filter(|need| !cycle.needs[*need].quiet()) {
        phase.reserve_own_incoming(need);
    }
    for need in unsatisfied {
        phase.resolve(need);
    }
    phase.done
}

/// Effective priority of a Configured machine: that of the need that claimed it
/// this cycle, else the stamp's (§7).
pub(crate) fn effective_priority(cycle: &Cycle<'_>, machine: usize) -> Option<i32> {
    match cycle.claimed_by[machine].or(cycle.outgrown_by[machine]) {
        Some(need) => Some(cycle.needs[need].profile.priority()),
        None => stamp_priority(cycle, machine),
    }
}

fn stamp_priority(cycle: &Cycle<'_>, machine: usize) -> Option<i32> {
    cycle.machine(machine).stamp.as_ref().and_then(|stamp| stamp.priority)
}

/// What draining the machine for the need leaves its workload (§2, §7).
pub(crate) fn grace(cycle: &Cycle<'_>, need: usize, machine: usize) -> Duration {
    let priority = cycle.needs[need].profile.priority();
    drain_grace(priority_gap(priority, effective_priority(cycle, machine)))
}

struct Phase<'a, 'b> {
    cycle: &'a Cycle<'b>,
    done: Inversion,
}

impl Phase<'_, '_> {
    /// A gang's domain, of Phase 1 or taken here.
    fn domain(&self, need: usize) -> Option<&Domain> {
        self.cycle.needs[need].domain.as_ref().or_else(|| self.done.domains.get(&need))
    }

    fn ready(&self, machine: usize) -> bool {
        let cluster = &self.cycle.machine(machine).cluster;
        cluster.as_ref().is_some_and(|cluster| self.cycle.input.ready.contains(cluster))
    }

    /// Unclaimed Configured machine of a ready cluster.
    fn excess(&self, machine: usize) -> bool {
        self.cycle.machine(machine).state == MachineState::Configured
            && self.cycle.is_left(machine)
            && self.ready(machine)
    }

    /// Configured with an effective priority strictly below the need's, and
    /// eligible: not without any stamp in a cluster that is not ready (§7).
    fn victim(&self, need: usize, machine: usize) -> bool {
        let record = self.cycle.machine(machine);
        record.state == MachineState::Configured
            // An unknown priority is below every priority (§1.7), as None is.
            && effective_priority(self.cycle, machine)
                < Some(self.cycle.needs[need].profile.priority())
            && (record.stamp.is_some() || self.ready(machine))
    }

    fn draining(&self, machine: usize) -> bool {
        self.cycle.machine(machine).state == MachineState::Draining
    }

    fn drains_for(&self, need: usize, machine: usize) -> bool {
        let drain = &self.cycle.machines[machine].drain;
        self.draining(machine)
            && drain
                .as_ref()
                .and_then(|drain| drain.preemptor.as_ref())
                .is_some_and(|preemptor| *preemptor == self.cycle.needs[need].key())
    }

    fn taken(&self, machine: usize) -> bool {
        self.done.reserved_by[machine].is_some() || self.done.victim_of[machine].is_some()
    }

    /// What every step asks of a machine: not yet taken, not held back, usable,
    /// lowers what is missing, and lies in a domain open to a spread need (§7).
    fn passes(&self, need: usize, machine: usize, residual: &Totals) -> bool {
        !self.taken(machine)
            && !self.cycle.held_back(machine)
            && self.cycle.usable(need, machine)
            && self.cycle.lowers(need, machine, residual)
            && self.open(need, machine)
    }

    /// A DoNotSchedule need takes from a domain only while its claims there and
    /// what it reserved and picked there ≤ min over domains of its claims +
    /// max_skew − 1 (§7).
    fn open(&self, need: usize, machine: usize) -> bool {
        let cycle = self.cycle;
        if cycle.needs[need].spread().is_none() {
            return true;
        }
        let Some(value) = cycle.spread_value(need, machine) else { return false };
        let mut others = cycle.acquirable(need);
        others.extend(cycle.all().filter(|other| {
            cycle.usable(need, *other)
                && !cycle.held_back(*other)
                && (self.draining(*other) || self.excess(*other) || self.victim(need, *other))
        }));
        let claims = cycle.claims(need);
        let of_claims = cycle.spread_counts(need, &claims, &others);
        let least = of_claims.values().copied().min().unwrap_or(0);
        let mut counted = claims;
        counted.extend(cycle.all().filter(|other| {
            self.done.reserved_by[*other] == Some(need) || self.done.victim_of[*other] == Some(need)
        }));
        let counts = cycle.spread_counts(need, &counted, &[]);
        counts.get(value).copied().unwrap_or(0) < least + cycle.max_skew(need)
    }

    /// In the domain, if one is given; a gang without one yet may look anywhere.
    fn inside(&self, need: usize, machine: usize, domain: Option<&Domain>) -> bool {
        let prepared = &self.cycle.needs[need];
        domain.is_none() || prepared.within(domain, self.cycle.machine(machine))
    }

    /// Before all: the Draining machines that were preempted for the need, ID asc
    /// (§7).
    fn reserve_own_incoming(&mut self, need: usize) {
        let domain = self.cycle.needs[need].domain.clone();
        let mut residual = self.cycle.residual(need);
        for machine in self.cycle.all() {
            if self.drains_for(need, machine)
                && self.inside(need, machine, domain.as_ref())
                && self.passes(need, machine, &residual)
            {
                self.done.reserved_by[machine] = Some(need);
                residual.sub_sat_assign(&self.cycle.contribution(need, machine));
            }
        }
    }

    /// What is missing beside what is reserved in the domain.
    fn residual_after_reservations(&self, need: usize, domain: Option<&Domain>) -> Totals {
        let mut machines = self.cycle.claims(need);
        machines.extend(self.cycle.all().filter(|machine| {
            self.done.reserved_by[*machine] == Some(need) && self.inside(need, *machine, domain)
        }));
        self.cycle.residual_with(need, &machines)
    }

    /// Steps 1 to 5 for one need (§7).
    fn resolve(&mut self, need: usize) {
        let cycle = self.cycle;
        let prepared = &cycle.needs[need];
        if prepared.quiet() {
            self.done.unresolved.insert(need, cycle.residual(need));
            return;
        }
        if prepared.same() && prepared.domain.is_none() {
            let Some(domain) = self.clear_domain(need) else {
                self.done.unresolved.insert(need, cycle.residual(need));
                return;
            };
            self.done.domains.insert(need, domain);
        }
        let domain = self.domain(need).cloned();
        let domain = domain.as_ref();

        // 1. Incoming first.
        let mut residual = self.residual_after_reservations(need, domain);
        for machine in self.incoming(need, &residual, domain) {
            if self.passes(need, machine, &residual) {
                self.done.reserved_by[machine] = Some(need);
                residual.sub_sat_assign(&cycle.contribution(need, machine));
            }
        }
        // 2. Excess next.
        let mut excess_picks = Vec::new();
        for machine in self.lower_excess(need, domain) {
            if self.passes(need, machine, &residual) {
                self.done.victim_of[machine] = Some(need);
                residual.sub_sat_assign(&cycle.contribution(need, machine));
                excess_picks.push(machine);
            }
        }
        // 3. Victims.
        let mut victim_picks = Vec::new();
        for machine in self.victims(need, domain) {
            if self.passes(need, machine, &residual) {
                self.done.victim_of[machine] = Some(need);
                residual.sub_sat_assign(&cycle.contribution(need, machine));
                victim_picks.push(machine);
            }
        }
        let mut picks: Vec<usize> = [&excess_picks[..], &victim_picks].concat();
        let reserved = self.residual_after_reservations(need, domain);
        if residual.is_zero() {
            // 4. Prune: victims lowest score first, then excess last picked first,
            // which is the order of picking backwards.
            for machine in picks.clone().into_iter().rev() {
                let mut without = reserved.clone();
                for other in picks.iter().filter(|other| **other != machine) {
                    without.sub_sat_assign(&cycle.contribution(need, *other));
                }
                if without.is_zero() {
                    self.done.victim_of[machine] = None;
                    picks.retain(|other| *other != machine);
                }
            }
            return;
        }
        if prepared.same() && prepared.spanning() {
            // 5. No evictions for a gang that still cannot assemble.
            for machine in picks {
                self.done.victim_of[machine] = None;
            }
            residual = reserved;
        }
        self.done.unresolved.insert(need, residual);
    }

    /// Step 1: unreserved Draining machines, ID asc, that do not come too late;
    /// then, if a reclaim is quick enough, excess that Phase 3 reclaims (§7).
    fn incoming(&self, need: usize, residual: &Totals, domain: Option<&Domain>) -> Vec<usize> {
        let cycle = self.cycle;
        let priority = cycle.needs[need].profile.priority();
        let limit = self
            .victims(need, domain)
            .into_iter()
            .find(|machine| self.passes(need, *machine, residual))
            .map(|machine| grace(cycle, need, machine));
        let too_late = |machine: usize| {
            let Some(drain) = &cycle.machines[machine].drain else { return false };
            let for_nobody_as_important =
                drain.preemptor_priority.is_none_or(|preemptor| preemptor < priority);
            let longer = match (drain.deadline, limit) {
                (Some(deadline), Some(limit)) => deadline.since(cycle.input.now) > limit,
                _ => false,
            };
            for_nobody_as_important && longer
        };
        let mut incoming: Vec<usize> = cycle
            .all()
            .filter(|machine| self.draining(*machine) && !too_late(*machine))
            .filter(|machine| self.inside(need, *machine, domain))
            .collect();
        if limit.is_none_or(|limit| VOLUNTARY_GRACE <= limit) {
            let mut excess: Vec<usize> = cycle
                .all()
                .filter(|machine| self.excess(*machine))
                .filter(|machine| stamp_priority(cycle, *machine) >= Some(priority))
                .filter(|machine| !awaited(cycle, *machine))
                .filter(|machine| self.inside(need, *machine, domain))
                .collect();
            excess.sort_by(|a, b| release_order(cycle.machine(*a), cycle.machine(*b)));
            incoming.extend(excess);
        }
        incoming
    }

    /// Step 2: excess with a stamp priority below the need's, release order (§7).
    fn lower_excess(&self, need: usize, domain: Option<&Domain>) -> Vec<usize> {
        let cycle = self.cycle;
        let priority = cycle.needs[need].profile.priority();
        let mut excess: Vec<usize> = cycle
            .all()
            .filter(|machine| self.excess(*machine))
            .filter(|machine| stamp_priority(cycle, *machine) < Some(priority))
            .filter(|machine| self.inside(need, *machine, domain))
            .collect();
        excess.sort_by(|a, b| release_order(cycle.machine(*a), cycle.machine(*b)));
        excess
    }

    /// Step 3: victims by score desc, ID asc (§7).
    fn victims(&self, need: usize, domain: Option<&Domain>) -> Vec<usize> {
        let cycle = self.cycle;
        let mut victims: Vec<usize> = cycle
            .all()
            .filter(|machine| self.victim(need, *machine) && !self.taken(*machine))
            .filter(|machine| self.inside(need, *machine, domain))
            .collect();
        victims.sort_by(|a, b| {
            let score = |machine: usize| victim_score(cycle, need, machine);
            score(*b)
                .total_cmp(&score(*a))
                .then_with(|| cycle.machine(*a).id.cmp(&cycle.machine(*b).id))
        });
        victims
    }

    /// For a gang that found no domain: one whose incoming, lower-priority excess
    /// and victims together cover its aggregate; larger cov of what drains for it,
    /// larger cov of all that drains, smaller load, smaller value (§7).
    fn clear_domain(&self, need: usize) -> Option<Domain> {
        let cycle = self.cycle;
        let prepared = &cycle.needs[need];
        let aggregate = &prepared.aggregate;
        let sum = |machines: &BTreeSet<usize>| {
            machines.iter().fold(Totals::zero(), |mut sum, machine| {
                sum.add_assign(&cycle.contribution(need, *machine));
                sum
            })
        };
        let values: BTreeSet<Domain> = cycle
            .all()
            .filter(|machine| cycle.usable(need, *machine))
            .filter_map(|machine| prepared.domain_of(cycle.machine(machine)))
            .collect();
        values
            .into_iter()
            .filter_map(|value| {
                let domain = Some(&value);
                let reserved = cycle.all().filter(|machine| {
                    self.done.reserved_by[*machine] == Some(need)
                        && self.inside(need, *machine, domain)
                });
                let residual = self.residual_after_reservations(need, domain);
                let passing = |machines: Vec<usize>| {
                    let passes = |machine: &usize| self.passes(need, *machine, aggregate);
                    machines.into_iter().filter(passes).collect::<Vec<usize>>()
                };
                let mut drains: BTreeSet<usize> = reserved.collect();
                drains.extend(passing(self.incoming(need, &residual, domain)));
                let for_it: BTreeSet<usize> =
                    drains.iter().copied().filter(|m| self.drains_for(need, *m)).collect();
                let mut all = drains.clone();
                all.extend(passing(self.lower_excess(need, domain)));
                all.extend(passing(self.victims(need, domain)));
                let total = sum(&all);
                total.covers(aggregate).then(|| {
                    let key = (
                        Reverse(cov(&sum(&for_it), aggregate)),
                        Reverse(cov(&sum(&drains), aggregate)),
                        load(&total, aggregate),
                    );
                    (key, value)
                })
            })
            .min()
            .map(|(_, value)| value)
    }
}

/// Higher = better victim (§2). Penalties like the priority: the claimant's, else
/// the stamp's (§7).
fn victim_score(cycle: &Cycle<'_>, need: usize, machine: usize) -> f64 {
    let options = &cycle.input.phase2;
    let (interruption, reclamation) = match cycle.claimed_by[machine].or(cycle.outgrown_by[machine])
    {
        Some(claimant) => {
            let profile = &cycle.needs[claimant].profile;
            (profile.interruption().dollars(), profile.reclamation().dollars())
        }
        None => cycle
            .machine(machine)
            .stamp
            .as_ref()
            .map_or((0.0, 0.0), |stamp| (stamp.interruption, stamp.reclamation)),
    };
    let priority = cycle.needs[need].profile.priority();
    let gap = priority_gap(priority, effective_priority(cycle, machine));
    gap as f64 * options.weight_priority
        + options.weight_drain / options.estimated_drain_seconds.max(1.0)
        + options.weight_interruption / interruption.max(0.01)
        + options.weight_reclamation / reclamation.max(0.01)
}
