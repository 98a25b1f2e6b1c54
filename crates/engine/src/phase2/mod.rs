//! Phase 2: priority inversions (§7). Closes residuals by draining machines of
//! strictly lower priority. It moves nothing: a victim drains to Idle and a later
//! Phase 1 acquires it.

mod clear;
mod score;
mod standing;
mod target;
mod victims;

use bigfleet_model::{
    MachineState, Totals,
    grace::{VOLUNTARY_GRACE, drain_grace, priority_gap},
};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::{
    handle::{ClassIx, DomainIx, MachineIx, PoolIx, PreparedIx},
    input::{Phase2Options, Time},
    phase1::Spread,
    world::{Constraint, DrainEnd, World},
};

use standing::Worth;
pub(crate) use standing::{Standing, excess_of, release_order};
use target::Target;
use victims::{Segment, Victims};

/// A machine that is drained for a need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) machine: MachineIx,
    pub(crate) need: PreparedIx,
    /// How far the need stands above the machine's workload.
    pub(crate) gap: i64,
}

/// How a need that Phase 1 left short came out of Phase 2.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    pub(crate) need: PreparedIx,
    pub(crate) residual: Totals,
    pub(crate) preempted: bool,
}

/// What Phase 2 decided.
#[derive(Default)]
pub(crate) struct Inversions {
    pub(crate) victims: Vec<Victim>,
    /// Of every need that Phase 1 left short, in serving order.
    pub(crate) resolutions: Vec<Resolution>,
    /// Reserved or picked.
    pub(crate) taken: HashSet<MachineIx, FixedState>,
}

impl Inversions {
    pub(crate) fn is_victim(&self, machine: MachineIx) -> bool {
        // What is reserved drains already, or is about to be reclaimed.
        self.victims.iter().any(|victim| victim.machine == machine)
    }
}

/// Resolves the residuals of `short`, which is in serving order.
pub(crate) fn invert(
    world: &mut World,
    short: &[PreparedIx],
    standing: &mut Standing,
    options: &Phase2Options,
    now: Time,
) -> Inversions {
    let mut phase = Phase2 {
        world,
        short,
        standing,
        options,
        now,
        found: Inversions::default(),
        excess: None,
        victims: HashMap::default(),
        unsure: Vec::new(),
        rigid: HashMap::default(),
    };
    phase.run();
    phase.found
}

struct Phase2<'w> {
    world: &'w mut World,
    short: &'w [PreparedIx],
    standing: &'w mut Standing,
    options: &'w Phase2Options,
    now: Time,
    found: Inversions,
    /// Unclaimed Configured machines of ready clusters, in release order.
    excess: Option<Vec<MachineIx>>,
    victims: HashMap<VictimsKey, Victims, FixedState>,
    /// Victims that the present need may yet let go of.
    unsure: Vec<(MachineIx, Segment)>,
    /// Pools in which nothing could ever move for a priority.
    rigid: HashMap<(PoolIx, i32), bool, FixedState>,
}

/// Pool, domain of a gang, priority of the preemptor.
type VictimsKey = (PoolIx, Option<DomainIx>, i32);

impl Phase2<'_> {
    fn run(&mut self) {
        let reserved: Vec<Vec<MachineIx>> =
            self.short.iter().map(|need| self.reserve_own(*need)).collect();
        for (&need, reserved) in self.short.iter().zip(reserved) {
            let resolution = self.resolve(need, &reserved);
            self.found.resolutions.push(resolution);
        }
    }

    /// What was preempted for this very need: otherwise a higher need would take
    /// the drain of a pickier one, which would then evict once more.
    fn reserve_own(&mut self, need: PreparedIx) -> Vec<MachineIx> {
        let row = &self.world.needs[need];
        let drains = &self.world.names.accounts[row.account].drains;
        if row.is_quiet() || drains.is_empty() {
            return Vec::new();
        }
        let mut drains = drains.clone();
        drains.sort_unstable_by_key(|machine| self.world.machines.rows[*machine].label);
        let mut target = self.target(need);
        let mut reserved = Vec::new();
        for machine in drains {
            if self.may_take(&target, machine) {
                target.take(self.world, machine);
                self.found.taken.insert(machine);
                reserved.push(machine);
            }
        }
        reserved
    }

    /// What the need wants, its spread widened by the domains of whatever could
    /// move for it.
    fn target(&self, need: PreparedIx) -> Target {
        let row = &self.world.needs[need];
        let spread = (row.constraint == Constraint::Spread).then(|| {
            let mut spread = Spread::over(self.world, need);
            for &class in &self.world.pools[row.pool].classes {
                let known = spread.knows(self.world.domain(row, class));
                if !known && self.has_movable(need, class) {
                    spread.widen(self.world, need, class);
                }
            }
            let min = spread.min();
            (spread, min)
        });
        Target::of(self.world, need, spread)
    }

    /// Whether a class has a machine that drains, is excess, or could be a victim.
    fn has_movable(&self, need: PreparedIx, class: ClassIx) -> bool {
        let world = &*self.world;
        let priority = world.priority(need);
        let class = &world.classes[class];
        let free = |machine: &MachineIx| world.machines.rows[*machine].held_back.is_none();
        if world.runs[class.unbound.draining].members.iter().any(free) {
            return true;
        }
        class.bound.iter().any(|run| {
            let row = &world.runs[*run];
            let ready = row.cluster.is_some_and(|cluster| world.names.clusters[cluster].ready);
            let known = row.stamp.is_some() || ready;
            row.members.iter().filter(|machine| free(machine)).any(|machine| {
                let machine = &world.machines.rows[*machine];
                let lower = || Worth::of(world, *run, machine.claimant).priority < Some(priority);
                machine.state == MachineState::Configured
                    && ((machine.claimant.is_none() && ready) || (known && lower()))
            })
        })
    }

    fn may_take(&self, target: &Target, machine: MachineIx) -> bool {
        let row = &self.world.machines.rows[machine];
        row.held_back.is_none()
            && !self.found.taken.contains(&machine)
            && target.wants(self.world, row.class)
    }

    fn resolve(&mut self, need: PreparedIx, reserved: &[MachineIx]) -> Resolution {
        let row = &self.world.needs[need];
        let homeless = row.is_homeless();
        if row.is_quiet()
            || (reserved.is_empty() && self.is_rigid(need))
            || (homeless && !self.clear_domain(need, reserved))
        {
            let residual = self.world.needs[need].residual();
            return Resolution { need, residual, preempted: false };
        }
        let mut target = self.target(need);
        for &machine in reserved {
            // A gang counts only on its domain.
            let class = self.world.machines.rows[machine].class;
            if self.world.usable(&self.world.needs[need], class) {
                target.take(self.world, machine);
            }
        }
        for machine in self.incoming(&target) {
            if target.residual().is_zero() {
                break;
            }
            if self.may_take(&target, machine) {
                self.found.taken.insert(machine);
                target.take(self.world, machine);
            }
        }
        let (excess, victims) = self.take_outgoing(&mut target);
        self.conclude(target, excess, victims)
    }

    /// Whether nothing drains, is excess, or could be a victim for the need.
    fn is_rigid(&mut self, need: PreparedIx) -> bool {
        let (pool, priority) = (self.world.needs[need].pool, self.world.priority(need));
        if let Some(known) = self.rigid.get(&(pool, priority)) {
            return *known;
        }
        let world = &*self.world;
        let still = world.pools[pool].classes.iter().all(|class| {
            let class = &world.classes[*class];
            let closed = |run: &crate::handle::RunIx| {
                let row = &world.runs[*run];
                let ready = row.cluster.is_some_and(|cluster| world.names.clusters[cluster].ready);
                !ready || excess_of(world, *run).next().is_none()
            };
            world.runs[class.unbound.draining].members.is_empty() && class.bound.iter().all(closed)
        });
        let rigid = still && self.whole_pool_has_no_victims(need);
        self.rigid.insert((pool, priority), rigid);
        rigid
    }

    fn whole_pool_has_no_victims(&mut self, need: PreparedIx) -> bool {
        let domain = self.world.needs[need].domain.take();
        let empty = Victims::of(self.world, need, self.options).is_empty();
        self.world.needs[need].domain = domain;
        empty
    }

    fn key(&self, need: PreparedIx) -> VictimsKey {
        let row = &self.world.needs[need];
        let domain = row.domain.filter(|_| row.constraint == Constraint::Same);
        (row.pool, domain, self.world.priority(need))
    }

    /// Victims of a need, to be put back with [`Self::put`].
    fn victims(&mut self, need: PreparedIx) -> Victims {
        let key = self.key(need);
        let known = self.victims.remove(&key);
        known.unwrap_or_else(|| Victims::of(self.world, need, self.options))
    }

    fn put(&mut self, need: PreparedIx, mut victims: Victims) {
        victims.rewind();
        self.victims.insert(self.key(need), victims);
    }

    /// How far a priority stands above a machine's.
    fn gap(&self, priority: i32, machine: MachineIx) -> i64 {
        let row = &self.world.machines.rows[machine];
        let worth = row.run.map(|run| Worth::of(self.world, run, row.claimant));
        priority_gap(priority, worth.and_then(|worth| worth.priority))
    }

    /// Draining machines by id, but for those that drain for nobody at least as
    /// important and take longer than the best victim would; and excess that is
    /// reclaimed this cycle, if even that is not longer.
    fn incoming(&mut self, target: &Target) -> Vec<MachineIx> {
        let need = target.need;
        let priority = self.world.priority(need);
        let limit = self.best_grace(target);
        let world = &*self.world;
        let row = &world.needs[need];
        let mut incoming: Vec<MachineIx> = Vec::new();
        for &class in &world.pools[row.pool].classes {
            if world.usable(row, class) {
                incoming.extend(&world.runs[world.classes[class].unbound.draining].members);
            }
        }
        incoming.retain(|machine| {
            let drain = world.drains.get(machine);
            let above = drain.and_then(|drain| drain.preemptor_priority);
            let for_lesser = above.is_none_or(|other| other < priority);
            let remaining = drain.and_then(|drain| match drain.end {
                DrainEnd::Unknown => None,
                DrainEnd::At(deadline) => Some(deadline.since(self.now)),
                DrainEnd::After(grace) => Some(self.now.after(grace).since(self.now)),
            });
            let late = limit.zip(remaining).is_some_and(|(limit, remaining)| remaining > limit);
            !(for_lesser && late)
        });
        incoming.sort_unstable_by_key(|machine| world.machines.rows[*machine].label);
        if limit.is_none_or(|limit| VOLUNTARY_GRACE <= limit) {
            let excess = self.excess();
            for &machine in &excess {
                if self.stamp_priority(machine) >= Some(priority) && !self.is_awaited(machine) {
                    incoming.push(machine);
                }
            }
            self.excess = Some(excess);
        }
        incoming
    }

    /// Grace that the best victim would get, if there is one.
    fn best_grace(&mut self, target: &Target) -> Option<std::time::Duration> {
        let mut victims = self.victims(target.need);
        let mut best = None;
        while let Some((machine, segment)) = victims.next(self.world) {
            if self.found.taken.contains(&machine) {
                continue;
            }
            victims.pass(segment);
            if self.may_take(target, machine) {
                best = Some(machine);
                break;
            }
        }
        self.put(target.need, victims);
        let priority = self.world.priority(target.need);
        best.map(|machine| drain_grace(self.gap(priority, machine)))
    }

    /// Takes the list of excess out, to be put back.
    fn excess(&mut self) -> Vec<MachineIx> {
        if let Some(known) = self.excess.take() {
            return known;
        }
        let world = &*self.world;
        let mut excess: Vec<MachineIx> = Vec::new();
        for (_, cluster) in world.names.clusters.iter().filter(|(_, cluster)| cluster.ready) {
            for run in &cluster.open {
                excess.extend(excess_of(world, *run));
            }
        }
        excess.sort_unstable_by(|a, b| release_order(world, *a, *b));
        excess
    }

    /// Priority in the stamp; none is below every priority.
    fn stamp_priority(&self, machine: MachineIx) -> Option<i32> {
        let stamp = self.world.machines.rows[machine].stamp?;
        self.world.names.stamps[stamp].stamp.priority
    }

    fn is_awaited(&mut self, machine: MachineIx) -> bool {
        let row = &self.world.machines.rows[machine];
        let class = row.class;
        row.cluster.is_some_and(|cluster| self.standing.is_awaited(self.world, cluster, class))
    }

    /// Steps 2 and 3: excess of lower priority, then victims.
    fn take_outgoing(&mut self, target: &mut Target) -> (Vec<MachineIx>, Vec<MachineIx>) {
        let priority = self.world.priority(target.need);
        let (mut picked_excess, mut picked) = (Vec::new(), Vec::new());
        let excess = self.excess();
        for &machine in &excess {
            if target.residual().is_zero() {
                break;
            }
            if self.stamp_priority(machine) < Some(priority) && self.may_take(target, machine) {
                self.found.taken.insert(machine);
                target.take(self.world, machine);
                picked_excess.push(machine);
            }
        }
        self.excess = Some(excess);
        let mut victims = self.victims(target.need);
        while !target.residual().is_zero()
            && let Some((machine, segment)) = victims.next(self.world)
        {
            if self.may_take(target, machine) {
                self.found.taken.insert(machine);
                target.take(self.world, machine);
                picked.push(machine);
                self.unsure.push((machine, segment));
            } else if !self.found.taken.contains(&machine) {
                victims.pass(segment);
            } else if picked_excess.contains(&machine) {
                self.unsure.push((machine, segment));
            }
        }
        self.put(target.need, victims);
        (picked_excess, picked)
    }

    /// What the need let go of serves others.
    fn give_back_unsure(&mut self, need: PreparedIx) {
        let mut victims = self.victims(need);
        for (machine, segment) in self.unsure.drain(..) {
            if !self.found.taken.contains(&machine) {
                victims.pass(segment);
            }
        }
        self.put(need, victims);
    }

    /// Steps 4 and 5: prune what is redundant; a gang that still cannot assemble
    /// evicts nobody.
    fn conclude(
        &mut self,
        mut target: Target,
        mut excess: Vec<MachineIx>,
        mut picked: Vec<MachineIx>,
    ) -> Resolution {
        let need = target.need;
        let row = &self.world.needs[need];
        let spans = row.constraint == Constraint::Same
            && !self.world.pools[row.pool].key.unit.covers(&row.aggregate);
        if target.residual().is_zero() {
            for picks in [&mut picked, &mut excess] {
                for place in (0..picks.len()).rev() {
                    if target.can_spare(self.world, picks[place]) {
                        let machine = picks.remove(place);
                        self.found.taken.remove(&machine);
                        target.give_back(self.world, machine);
                    }
                }
            }
        } else if spans {
            for machine in excess.drain(..).chain(picked.drain(..)) {
                self.found.taken.remove(&machine);
                target.give_back(self.world, machine);
            }
        }
        self.give_back_unsure(need);
        let priority = self.world.priority(need);
        for &machine in excess.iter().chain(&picked) {
            let gap = self.gap(priority, machine);
            self.found.victims.push(Victim { machine, need, gap });
        }
        Resolution {
            need,
            residual: target.residual().clone(),
            preempted: !excess.is_empty() || !picked.is_empty(),
        }
    }
}
